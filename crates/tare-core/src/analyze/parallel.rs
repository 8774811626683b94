//! Runs independent jobs on every CPU; each idle thread takes the next one.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Applies `work` to each job and returns the results in the order of the jobs.
pub(super) fn map<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let (taken, done) = (
        AtomicUsize::new(0),
        Mutex::new(Vec::with_capacity(jobs.len())),
    );
    let help = || {
        while let Some((place, job)) = next(&taken, jobs) {
            let result = work(job);
            done.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push((place, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            // If no thread can be created, the existing ones do all the work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, help);
        }
        help();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Takes the next job, with its index.
fn next<'j, J>(taken: &AtomicUsize, jobs: &'j [J]) -> Option<(usize, &'j J)> {
    let place = taken.fetch_add(1, Ordering::Relaxed);
    Some((place, jobs.get(place)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_done_once_and_results_keep_its_place() {
        for n in [0, 1, 2, 1_000] {
            let jobs: Vec<usize> = (0..n).collect();
            let expected: Vec<usize> = jobs.iter().map(|job| job * job).collect();
            assert_eq!(map(&jobs, |job| job * job), expected);
        }
    }
}
