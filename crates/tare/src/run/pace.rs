//! How long things take, and what still fits into the budget.
//!
//! A block is begun only if it is expected to end, and everything to be removed, within the budget. What is
//! expected is the mean of what the same workload took so far, everything around the trial included; of a
//! workload that has not run yet, the time that the study aims at. Within a block the same is asked before each
//! workload, because a machine may become slower than it was: then the block stays a part. A budget
//! below what one block takes by the plan is taken for the wish for one block, which is then done, so that a small
//! budget gives some answer rather than none; with fewer than 6 blocks the analysis says that they are too few.
//! Where few workloads are left of a block, restarting the arms would take most of its time: then those that take turns
//! do so for longer, until the restart is at most a third of the block. Longer blocks narrow what differs from slice to
//! slice, shorter ones what differs from start to start; here mostly the slices differed. It depends on times alone.
//! What it cannot see: a workload that suddenly takes longer. Then the budget is missed by its trials.

/// No workload runs so many times as long as planned, or longer than that.
const MOST_TIMES: u64 = 4;

/// Times measured so far, nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    /// For each workload: total time, and number of its trials of the planned length.
    trials: Vec<(u64, u64)>,
    /// For each workload, how many times as long as planned it runs in this block.
    lengths: Vec<u64>,
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
            lengths: vec![1; n_workloads],
            guess_ns,
            restart_ns: 0,
            removal_ns: 0,
        }
    }

    /// A trial of this workload took so long, from one to the next.
    pub(super) fn trial(&mut self, workload: usize, ns: u64) {
        let (total, count) = &mut self.trials[workload];
        *total = total.saturating_add(ns);
        *count += self.lengths[workload];
    }

    /// Every workload runs as long as planned.
    pub(super) fn as_planned(&mut self) {
        self.lengths.fill(1);
    }

    /// Has these workloads run longer, by the same whole factor, where otherwise a restart of the arms would take more
    /// than a third of the block. `n_arms` take turns; `others_ns` is what the rest of the block takes.
    pub(super) fn lengthen(&mut self, workloads: &[usize], n_arms: u64, others_ns: u64) {
        let expected_ns = workloads.iter().map(|it| self.expected_trial_ns(*it));
        let once_ns = n_arms.saturating_mul(expected_ns.sum());
        let wanted_ns = self.restart_ns.saturating_mul(2).saturating_sub(others_ns);
        let times = wanted_ns.div_ceil(once_ns.max(1)).clamp(1, MOST_TIMES);
        for workload in workloads {
            self.lengths[*workload] = times;
        }
    }

    /// How many times as long as planned this workload runs in this block.
    pub(super) fn length(&self, workload: usize) -> u64 {
        self.lengths[workload]
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
            (total, count) => (total / count).saturating_mul(self.lengths[workload]),
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

    #[test]
    fn what_is_left_of_a_block_runs_longer_until_a_restart_is_a_third_of_it() {
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
        // What it took is what is expected of a trial as it was planned.
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
