//! Threads that work in batches: started once, released at the same moment.
//!
//! The thread that releases the others and waits for them times the batch, so each batch includes one synchronisation
//! of all threads at each end: some tens of microseconds, so a batch has to be long in comparison.
//! Limits: does not control the processors on which the threads run; that depends on the arm.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;

use crate::meter::ProbeError;

/// A team of threads.
#[derive(Debug)]
pub struct Team {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    gate: Barrier,
    /// Operations of each thread in the next batch; 0 ends the threads.
    operations: AtomicU64,
}

impl Team {
    /// Starts `n_threads` threads; in each batch every thread calls `work` with its number and its number of
    /// operations.
    pub fn new(
        n_threads: usize,
        work: impl Fn(usize, u64) + Send + Sync + 'static,
    ) -> Result<Self, ProbeError> {
        let shared = Arc::new(Shared {
            gate: Barrier::new(n_threads + 1),
            operations: AtomicU64::new(0),
        });
        let work = Arc::new(work);
        // A thread that waits at the gate cannot be ended, so all are started before the first waits there: they wait
        // for a start signal, which is `STOP` if one of them could not be started.
        let (started, mut threads) = (Arc::new(AtomicU64::new(0)), Vec::new());
        for number in 0..n_threads {
            let (shared, work, signal) = (shared.clone(), work.clone(), started.clone());
            let thread = std::thread::Builder::new()
                .name("tare-team".into())
                .spawn(move || {
                    while signal.load(Ordering::Acquire) == 0 {
                        std::thread::yield_now();
                    }
                    if signal.load(Ordering::Acquire) == GO {
                        serve(&shared, number, &*work);
                    }
                });
            match thread {
                Ok(thread) => threads.push(thread),
                Err(error) => {
                    started.store(STOP, Ordering::Release);
                    for thread in threads {
                        let _ = thread.join();
                    }
                    return Err(ProbeError::system("start a thread", &error));
                }
            }
        }
        started.store(GO, Ordering::Release);
        Ok(Self { shared, threads })
    }

    /// Makes every thread perform `operations`, and waits for all.
    pub fn run(&self, operations: u64) {
        self.shared
            .operations
            .store(operations.max(1), Ordering::Release);
        self.shared.gate.wait();
        self.shared.gate.wait();
    }
}

/// Start signals of the threads.
const GO: u64 = 1;
const STOP: u64 = 2;

fn serve(shared: &Shared, number: usize, work: &(impl Fn(usize, u64) + ?Sized)) {
    loop {
        shared.gate.wait();
        let operations = shared.operations.load(Ordering::Acquire);
        if operations == 0 {
            return;
        }
        work(number, operations);
        shared.gate.wait();
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.operations.store(0, Ordering::Release);
        self.shared.gate.wait();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_does_its_part_in_every_batch() {
        let done = Arc::new([const { AtomicU64::new(0) }; 3]);
        let seen = done.clone();
        let team = Team::new(3, move |number, operations| {
            seen[number].fetch_add(operations, Ordering::Relaxed);
        })
        .unwrap();
        team.run(5);
        team.run(7);
        drop(team);
        for count in &*done {
            assert_eq!(count.load(Ordering::Relaxed), 12);
        }
    }

    #[test]
    fn a_team_that_never_worked_goes_home() {
        drop(Team::new(2, |_, _| {}).unwrap());
    }
}
