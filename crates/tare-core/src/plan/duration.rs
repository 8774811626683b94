//! How long a study takes, before it is begun.
//!
//! The budget is what a run keeps to, so it is the answer where there is one. Without it: every planned trial,
//! at the time that a trial aims at. A run ends sooner where it is precise sooner, or where an arm is missing.
//! What it cannot see: what a tool needs besides its measurement, and the starting of arms.

use tare_model::Study;

/// The most that a study is expected to take, nanoseconds.
pub fn expected_ns(study: &Study) -> u64 {
    study
        .budget_ns
        .unwrap_or_else(|| study.block_ns().saturating_mul(u64::from(study.blocks_max)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::study;

    #[test]
    fn a_budget_is_what_a_study_takes() {
        let study = Study {
            budget_ns: Some(90_000_000_000),
            ..study(2, 2, 1)
        };
        assert_eq!(expected_ns(&study), 90_000_000_000);
    }

    #[test]
    fn without_a_budget_every_planned_trial_counts() {
        // Two workloads, the host and its copy, eight blocks.
        let study = Study {
            trial_ns: 50_000_000,
            settle_ns: 10_000_000,
            blocks_max: 8,
            ..study(2, 2, 1)
        };
        assert_eq!(expected_ns(&study), 2 * 2 * 8 * 60_000_000);
    }
}
