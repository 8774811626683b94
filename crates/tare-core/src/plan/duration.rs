//! Estimates how long a study takes, before it starts.
//!
//! A run keeps to its budget, so that is the answer if there is one. Without it: every planned trial, at the target
//! time of a trial. A run ends sooner if it is precise sooner, or if an arm is missing.
//! Limits: ignores what a tool needs in addition to its measurement, and the time to start arms.

use tare_model::Study;

/// The longest expected duration of a study, in nanoseconds.
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
    fn expected_duration_equals_study_budget() {
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
