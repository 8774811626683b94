//! Predicts how long rounds and proofs of a search take, so that as many arms as fit are run.
//!
//! Limits: the speed of an arm that has not run yet is unknown. The plan assumes that parts that together are
//! everything remove the whole slowdown, and that one arm of a proof removes at least half of it.

use super::super::FEWEST;
use super::super::pace::Pace;
use super::ContainerQuestion;

/// The number of arms for which a round leaves time in the next one.
pub(super) const NEXT_ARMS: usize = 3;

/// The predicted durations.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pace: Pace,
    /// Both sides, plus the copy if the running container itself is one of them.
    n_base: u64,
}

impl Costs {
    pub(super) fn new(asks: &ContainerQuestion, pace: Pace) -> Self {
        Self {
            pace,
            n_base: 2 + u64::from(asks.copy.is_some()),
        }
    }

    /// The same with a plain container in addition.
    pub(super) fn with_floor(self, has_floor: bool) -> Self {
        Self {
            n_base: self.n_base + u64::from(has_floor),
            ..self
        }
    }

    pub(super) fn slower_ns(self) -> u64 {
        self.pace.env_ns.max(self.pace.host_ns)
    }

    /// A block of the arms that every study has.
    pub(super) fn base_ns(self) -> u64 {
        self.pace.host_ns + (self.n_base - 1) * self.pace.env_ns
    }

    /// A round of this many parts: one is as fast as the baseline, or all together are faster by as much.
    pub(super) fn round_ns(self, n_parts: usize, blocks: u32) -> u64 {
        let n_parts = n_parts as u64;
        let lives_ns = (self.n_base + n_parts) * self.pace.life_ns;
        let taken_ns = if n_parts > 1 {
            self.slower_ns() - self.pace.host_ns
        } else {
            0
        };
        let block_ns = self.base_ns() + n_parts * self.slower_ns() - taken_ns;
        lives_ns + u64::from(blocks) * block_ns
    }

    /// A proof of this many arms: one removes half of the slowdown, or nothing is proved; the others may be as slow
    /// as the whole.
    pub(super) fn proof_ns(self, n_arms: usize) -> u64 {
        let n_arms = n_arms as u64;
        let one_ns = self.pace.host_ns.midpoint(self.slower_ns());
        let arms_ns = n_arms * self.slower_ns() - (self.slower_ns() - one_ns) * n_arms.min(1);
        (self.n_base + n_arms) * self.pace.life_ns + u64::from(FEWEST) * (self.base_ns() + arms_ns)
    }
}

/// The largest number up to `most` whose predicted time fits.
pub(super) fn fitting(most: usize, left_ns: u64, of: impl Fn(usize) -> u64) -> usize {
    (1..=most)
        .rev()
        .find(|number| of(*number) <= left_ns)
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn costs(host_ns: u64, env_ns: u64) -> Costs {
        let pace = Pace {
            host_ns,
            env_ns,
            life_ns: SECOND,
        };
        Costs::new(&ContainerQuestion::default(), pace)
    }

    #[test]
    fn round_cost_counts_one_slow_and_one_fast_part() {
        // In addition to both sides: one part as slow as the whole, the other as fast as the baseline.
        assert_eq!(
            costs(SECOND, 5 * SECOND).round_ns(2, 4),
            (2 + 2) * SECOND + 4 * (1 + 5 + 1 + 5) * SECOND
        );
        assert_eq!(
            costs(SECOND, 5 * SECOND).proof_ns(1),
            (2 + 1) * SECOND + 6 * (1 + 5 + 3) * SECOND
        );
        assert_eq!(
            costs(SECOND, 5 * SECOND).proof_ns(3),
            (2 + 3) * SECOND + 6 * (1 + 5 + 3 + 5 + 5) * SECOND
        );
        // Without a slowdown no arm is predicted to be faster.
        assert_eq!(
            costs(5 * SECOND, SECOND).round_ns(2, 1),
            4 * SECOND + (5 + 1 + 2 * 5) * SECOND
        );
    }

    #[test]
    fn fitting_gives_as_many_arms_as_time_allows() {
        let of = |number: usize| 10 * number as u64;
        assert_eq!(fitting(6, 100, of), 6);
        assert_eq!(fitting(6, 35, of), 3);
        assert_eq!(fitting(6, 9, of), 0);
    }
}
