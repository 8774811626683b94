//! How long things take, and what still fits into the budget.
//!
//! A block is begun only if it is expected to end, and everything to be removed, within the budget. What is
//! expected is the mean of what the same workload took so far, everything around the trial included; of a
//! workload that has not run yet, the time that the study aims at. Within a block the same is asked before each
//! workload, because a machine may become slower than it was: then the block stays a part. A budget
//! below what one block takes by the plan is taken for the wish for one block, which is then done, so that a small
//! budget gives some answer rather than none; with fewer than 6 blocks the analysis says that they are too few.
//! What it cannot see: a workload that suddenly takes longer. Then the budget is missed by its trials.

/// Times measured so far, nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// For each workload: total time and number of its trials.
    trials: Vec<(u64, u64)>,
    /// What a trial is taken for before there is one.
    guess_ns: u64,
    /// The last restart of all arms.
    restart_ns: u64,
    /// What removing everything is taken for.
    removal_ns: u64,
}

impl Pace {
    pub(super) fn new(n_workloads: usize, guess_ns: u64) -> Self {
        Self {
            trials: vec![(0, 0); n_workloads],
            guess_ns,
            restart_ns: 0,
            removal_ns: 0,
        }
    }

    /// A trial of this workload took so long, from one to the next.
    pub(super) fn trial(&mut self, workload: usize, ns: u64) {
        let (total, count) = &mut self.trials[workload];
        *total = total.saturating_add(ns);
        *count += 1;
    }

    /// Restarting all arms took so long; stopping them alone, as far as it was seen, so long. Before it was seen,
    /// removing is taken to last as long as starting did.
    pub(super) fn restart(&mut self, restart_ns: u64, stopping_ns: Option<u64>) {
        self.restart_ns = restart_ns;
        self.removal_ns = stopping_ns.unwrap_or(restart_ns);
    }

    /// What a trial of this workload is expected to take.
    pub(super) fn expected_trial_ns(&self, workload: usize) -> u64 {
        match self.trials[workload] {
            (_, 0) => self.guess_ns,
            (total, count) => total / count,
        }
    }

    /// What a block is expected to take: its trials, and a restart of the arms if it begins with one.
    pub(super) fn expected_block_ns(
        &self,
        workloads: impl Iterator<Item = usize>,
        has_restart: bool,
    ) -> u64 {
        let restart_ns = if has_restart { self.restart_ns } else { 0 };
        workloads
            .map(|workload| self.expected_trial_ns(workload))
            .fold(restart_ns, u64::saturating_add)
    }

    /// What a restart of all arms is expected to take.
    pub(super) fn expected_restart_ns(&self) -> u64 {
        self.restart_ns
    }

    /// What removing everything is expected to take.
    pub(super) fn expected_removal_ns(&self) -> u64 {
        self.removal_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_expected_to_take_the_mean_of_its_workloads_so_far() {
        let mut pace = Pace::new(2, 100);
        assert_eq!(pace.expected_block_ns([0, 1, 1].into_iter(), false), 300);
        pace.trial(1, 10);
        pace.trial(1, 30);
        assert_eq!(pace.expected_block_ns([0, 1, 1].into_iter(), false), 140);
        pace.restart(5, None);
        assert_eq!(pace.expected_removal_ns(), 5);
        assert_eq!(pace.expected_block_ns([1].into_iter(), true), 25);
        pace.restart(7, Some(2));
        assert_eq!(pace.expected_block_ns([1].into_iter(), true), 27);
        assert_eq!(pace.expected_removal_ns(), 2);
    }
}
