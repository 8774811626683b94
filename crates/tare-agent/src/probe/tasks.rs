//! `tasks`: the most frequent operations of a task-based program: calling a task, handing one to another thread,
//! sharing a table.
//!
//! Inside the timed regions: `task.call.time`, creating an asynchronous function's state and polling it once, which
//! is ready immediately (no system call); `task.run.time`, handing a task to a waiting thread and waiting for its
//! answer (two wake-ups); `task.insert.time`, inserting a number into a table of 16 parts, each with a separate lock,
//! from two threads, 10 000 per batch. Outside: starting threads, making tables.
//! Known bias: the channel between the threads is the standard library's, which spins briefly before it sleeps. The
//! table starts empty, so it grows within the timed region, as it does in a program.
//! Correspondence: "Empty Async Method Invocation", "Running Multiple Tasks Synchronously" and "Concurrent Insertions
//! To Dictionary" of a published comparison of containers (2019).
//! Source: ours.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::hint::black_box;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tare_model::{Failure, Params, Unit};

use crate::meter::{Meter, ProbeError};
use crate::team::Team;

super::probe! {
    "tasks": "calling an asynchronous function, handing a task to a waiting thread, inserting into a shared table";
    revision 1, cut KERNEL
}

const THREADS: usize = 2;
/// Parts of the table.
const PARTS: usize = 16;
/// Insertions of both threads per batch.
const INSERTIONS: u64 = 10_000;

/// A table without a random hash key, so that the same numbers go to the same buckets everywhere.
type Table = HashMap<u64, u64, BuildHasherDefault<DefaultHasher>>;

#[expect(
    clippy::unused_async,
    reason = "a function without anything to wait for is what is measured"
)]
async fn nothing(value: u64) -> u64 {
    value
}

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let mut context = Context::from_waker(Waker::noop());
    meter.loops("task.call.time", 0.2, |times| {
        for number in 0..times {
            let task = pin!(black_box(nothing(number)));
            match task.poll(&mut context) {
                Poll::Ready(value) => black_box(value),
                Poll::Pending => return Err(void("a task without anything to wait for waited")),
            };
        }
        Ok(())
    })?;
    hand_over(meter)?;
    insert(meter)
}

fn void(problem: &str) -> ProbeError {
    ProbeError::Failed(Failure::Void(problem.to_owned()))
}

/// Hands tasks one by one to a waiting thread.
fn hand_over(meter: &mut Meter) -> Result<(), ProbeError> {
    type Task = Box<dyn FnOnce() -> u64 + Send>;
    let (send, tasks) = mpsc::channel::<Task>();
    let (reply, answers) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .spawn(move || {
            for task in tasks {
                if reply.send(task()).is_err() {
                    return;
                }
            }
        })
        .map_err(|error| ProbeError::system("start a thread", &error))?;
    let measured = meter.loops("task.run.time", 0.4, |times| {
        for number in 0..times {
            let sent = send.send(Box::new(move || number));
            if sent.is_err() || answers.recv() != Ok(number) {
                return Err(void("a task did not come back"));
            }
        }
        Ok(())
    });
    drop(send);
    let _ = thread.join();
    measured
}

/// Inserts different numbers into one table from both threads.
fn insert(meter: &mut Meter) -> Result<(), ProbeError> {
    let empty = || -> Vec<Mutex<Table>> { (0..PARTS).map(|_| Mutex::default()).collect() };
    let table = Arc::new(Mutex::new(Arc::new(empty())));
    let shared = table.clone();
    let team = Team::new(THREADS, move |number, times| {
        let parts = lock(&shared).clone();
        let from = number as u64 * times;
        for key in from..from + times {
            let place = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
            lock(&parts[place % PARTS]).insert(key, key);
        }
    })?;
    let once = || -> Result<f64, ProbeError> {
        let parts = Arc::new(empty());
        *lock(&table) = parts.clone();
        let start = Instant::now();
        team.run(INSERTIONS / THREADS as u64);
        let value = start.elapsed().as_nanos() as f64 / INSERTIONS as f64;
        let n_entries: usize = parts.iter().map(|part| lock(part).len()).sum();
        if n_entries as u64 != INSERTIONS {
            return Err(void("an insertion was lost"));
        }
        Ok(value)
    };
    once()?;
    let rounds = meter.self_timed(0.4, || Ok([once()?]))?;
    let values = rounds.into_iter().flatten().collect();
    meter.record("task.insert.time", Unit::Nanosecond, values, INSERTIONS);
    Ok(())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
