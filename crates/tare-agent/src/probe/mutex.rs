//! `mutex`: acquires and releases a lock, alone and contended by another thread.
//!
//! Inside the timed region: for `lock.mutex.time` and `lock.read.time`, `k` times acquiring and releasing an
//! uncontended mutex, or the shared side of an uncontended reader-writer lock (no system call); for
//! `lock.contended.time`, two threads that acquire one mutex `k` times each and increment a counter under it, the
//! time divided by all `2k`, including the futex calls. Outside: starting the threads.
//! Known bias: a batch of the contended part includes one synchronisation of the threads at each end. The count is
//! checked after each batch, so that every operation has been done. On one processor the threads rarely collide,
//! which is typical of such an arm.
//! Correspondence: "Lock with Mutex" and "MultiTasking with lock" of a published comparison of containers (2019),
//! whose first test skips its work after waiting for 50 ms; here nothing is skipped.
//! Source: Drepper, "Futexes Are Tricky" (2011).

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tare_model::{Failure, Params};

use crate::meter::{Meter, ProbeError};
use crate::team::Team;

super::probe! {
    "mutex": "taking and giving back a mutex alone, the shared side of a lock, and a mutex that two threads want";
    revision 1, cut KERNEL
}

const THREADS: usize = 2;

fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let mutex = Mutex::new(0u64);
    meter.loops("lock.mutex.time", 0.25, |times| {
        for _ in 0..times {
            *black_box(&mutex)
                .lock()
                .unwrap_or_else(PoisonError::into_inner) += 1;
        }
        Ok(())
    })?;
    let lock = RwLock::new(1u64);
    meter.loops("lock.read.time", 0.25, |times| {
        for _ in 0..times {
            black_box(
                *black_box(&lock)
                    .read()
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
        Ok(())
    })?;
    let count = Arc::new(Mutex::new(0u64));
    let counted = count.clone();
    let team = Team::new(THREADS, move |_, times| {
        for _ in 0..times {
            *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        }
    })?;
    meter.loops("lock.contended.time", 0.5, |times| {
        let each = times.div_ceil(THREADS as u64);
        *count.lock().unwrap_or_else(PoisonError::into_inner) = 0;
        team.run(each);
        let done = *count.lock().unwrap_or_else(PoisonError::into_inner);
        if done == each * THREADS as u64 {
            return Ok(());
        }
        Err(ProbeError::Failed(Failure::Void(format!(
            "{done} operations were done instead of {}",
            each * THREADS as u64
        ))))
    })
}
