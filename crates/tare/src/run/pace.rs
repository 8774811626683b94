//! Predicts durations, to decide what still fits into the budget.
//!
//! A block starts only if it and the cleanup are expected to fit into the budget. The prediction is the workload's
//! mean so far, including everything around the trial; for a workload that has not run yet, the study's target time.
//! The same check precedes each workload within a block, because a machine may become slower; then the block stays
//! incomplete. A budget below the planned duration of one block counts as a request for one block, which is then run,
//! so that a small budget gives some answer; with fewer than 6 blocks the analysis says that they are too few.
//!
//! If few workloads of a block are left, restarting the arms would take most of its time. The interleaved ones then
//! run longer, until the restart is at most a third of the block. Longer blocks average out differences between
//! slices, shorter ones differences between starts; here mostly the slices differed. The decision depends on times
//! alone.
//! Limits: a workload that suddenly takes longer overruns the budget by its trials.

/// Most times as long as planned that a workload runs.
const MOST_TIMES: u64 = 4;

/// Times measured so far, nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// For each workload: total time, and number of trials of the planned length.
    trials: Vec<(u64, u64)>,
    /// For each workload, its length in this block as a multiple of the plan.
    lengths: Vec<u64>,
    /// Expected duration of a trial before any has run.
    guess_ns: u64,
    /// Duration of the last restart of all arms.
    pub(super) restart_ns: u64,
    /// Expected duration of the cleanup.
    pub(super) removal_ns: u64,
}

impl Pace {
    pub(super) fn new(n_workloads: usize, guess_ns: u64) -> Self {
        Self {
            trials: vec![(0, 0); n_workloads],
            lengths: vec![1; n_workloads],
            guess_ns,
            restart_ns: 0,
            removal_ns: 0,
        }
    }

    /// Records the time from one trial of this workload to the next.
    pub(super) fn trial(&mut self, workload: usize, ns: u64) {
        let (total, count) = &mut self.trials[workload];
        *total = total.saturating_add(ns);
        *count += self.lengths[workload];
    }

    /// Resets every workload to its planned length.
    pub(super) fn as_planned(&mut self) {
        self.lengths.fill(1);
    }

    /// Lengthens these workloads by the same whole factor if a restart of the arms would otherwise take more than a
    /// third of the block. `n_arms` alternate; `others_ns` is the time of the rest of the block.
    pub(super) fn lengthen(&mut self, workloads: &[usize], n_arms: u64, others_ns: u64) {
        let expected_ns = workloads.iter().map(|it| self.expected_trial_ns(*it));
        let once_ns = n_arms.saturating_mul(expected_ns.sum());
        let wanted_ns = self.restart_ns.saturating_mul(2).saturating_sub(others_ns);
        let times = wanted_ns.div_ceil(once_ns.max(1)).clamp(1, MOST_TIMES);
        for workload in workloads {
            self.lengths[*workload] = times;
        }
    }

    /// Length of this workload in this block, as a multiple of the plan.
    pub(super) fn length(&self, workload: usize) -> u64 {
        self.lengths[workload]
    }

    /// Records the duration of a restart of all arms, and of stopping them, if measured. Before that, the cleanup is
    /// expected to take as long as starting.
    pub(super) fn restart(&mut self, restart_ns: u64, stopping_ns: Option<u64>) {
        self.restart_ns = restart_ns;
        self.removal_ns = stopping_ns.unwrap_or(restart_ns);
    }

    /// Expected duration of a trial of this workload.
    pub(super) fn expected_trial_ns(&self, workload: usize) -> u64 {
        match self.trials[workload] {
            (_, 0) => self.guess_ns,
            (total, count) => (total / count).saturating_mul(self.lengths[workload]),
        }
    }

    /// Expected duration of a block: its trials, and a restart of the arms if it begins with one.
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expected_block_time_sums_workload_means() {
        let mut pace = Pace::new(2, 100);
        assert_eq!(pace.expected_block_ns([0, 1, 1].into_iter(), false), 300);
        pace.trial(1, 10);
        pace.trial(1, 30);
        assert_eq!(pace.expected_block_ns([0, 1, 1].into_iter(), false), 140);
        pace.restart(5, None);
        assert_eq!(pace.removal_ns, 5);
        assert_eq!(pace.expected_block_ns([1].into_iter(), true), 25);
        pace.restart(7, Some(2));
        assert_eq!(pace.expected_block_ns([1].into_iter(), true), 27);
        assert_eq!(pace.removal_ns, 2);
    }

    #[test]
    fn trials_lengthen_until_restart_is_third_of_block() {
        let mut pace = Pace::new(2, 100);
        pace.restart(500, None);
        let mut times = |workloads: &[usize], others_ns| {
            pace.as_planned();
            pace.lengthen(workloads, 4, others_ns);
            (pace.length(0), pace.length(1))
        };
        assert_eq!(times(&[0], 0), (3, 1));
        assert_eq!(times(&[0, 1], 0), (2, 2));
        assert_eq!(times(&[1], 900), (1, 1));
        // A longer trial predicts trials of the planned length in proportion.
        pace.as_planned();
        pace.lengthen(&[0], 4, 0);
        pace.trial(0, 330);
        assert_eq!(pace.expected_trial_ns(0), 330);
        pace.as_planned();
        assert_eq!(pace.expected_trial_ns(0), 110);
        pace.restart(1_000_000, None);
        pace.lengthen(&[0], 4, 0);
        assert_eq!(pace.length(0), MOST_TIMES);
    }
}
