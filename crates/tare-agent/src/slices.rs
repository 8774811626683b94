//! Cuts a stream of finished operations into slices of time and keeps the count of each.
//!
//! I/O is not a loop whose length could be doubled: several requests are in flight, and the other side sets the pace.
//! So nothing is calibrated here. The operations continue, and whenever a slice has lasted long enough its count and
//! its exact duration are kept; a value is count over duration, without rounding at either end. The first slice is
//! warm-up and is dropped. If arms are interleaved, a turn is a warm-up of a tenth of the slice, followed by one
//! slice that is kept ([`Meter::stream`]); nothing may be in flight between turns.
//! Limits: does not see how long a single operation took within a slice.

use std::time::{Duration, Instant};

use tare_model::{whole_ns, whole_part};

use crate::meter::{Meter, ProbeError};

/// Number of slices per share of time.
const SLICES: u32 = 24;
/// Fewest slices to keep, however long the operations are.
const FEWEST: usize = 5;
/// Shortest slice: two thousand times the cost of a slow clock reading.
const SHORTEST: Duration = Duration::from_micros(100);

/// The result of one slice of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Number of operations or bytes finished in it.
    pub count: u64,
    /// Its duration, nanoseconds; never 0.
    pub lasted_ns: u64,
}

/// Collects slices while operations finish.
#[derive(Debug)]
pub struct Slices {
    share: Duration,
    slice: Duration,
    warm_up: Duration,
    fewest: usize,
    begin: Instant,
    mark: Instant,
    count_at_mark: u64,
    is_warm: bool,
    kept: Vec<Slice>,
}

impl Slices {
    /// Starts now, for `share_ns` of timed work after the warm-up.
    pub fn start(share_ns: u64) -> Self {
        let share = Duration::from_nanos(share_ns);
        let now = Instant::now();
        let slice = (share / SLICES).max(SHORTEST);
        Self {
            share,
            slice,
            warm_up: slice,
            fewest: FEWEST,
            begin: now,
            mark: now,
            count_at_mark: 0,
            is_warm: false,
            kept: Vec::with_capacity(2 * SLICES as usize),
        }
    }

    /// Starts now, for one slice of about `slice_ns` including its warm-up.
    fn one(slice_ns: u64) -> Self {
        let slice = Duration::from_nanos(slice_ns);
        Self {
            share: Duration::ZERO,
            slice: slice * 9 / 10,
            warm_up: slice / 10,
            fewest: 1,
            ..Self::start(0)
        }
    }

    /// Records the number of finished operations since the start. Returns whether to continue.
    pub fn advance(&mut self, count: u64) -> bool {
        let now = Instant::now();
        let lasted = now - self.mark;
        let aim = if self.is_warm {
            self.slice
        } else {
            self.warm_up
        };
        if lasted < aim || count == self.count_at_mark {
            return true;
        }
        if self.is_warm {
            self.kept.push(Slice {
                count: count - self.count_at_mark,
                lasted_ns: whole_ns(lasted),
            });
        } else {
            self.is_warm = true;
            self.begin = now;
        }
        self.mark = now;
        self.count_at_mark = count;
        self.kept.len() < self.fewest || now - self.begin < self.share
    }

    /// Returns the kept slices.
    pub fn into_inner(self) -> Vec<Slice> {
        self.kept
    }
}

impl Meter {
    /// Times a stream of operations with `share` of the trial's time, 0 to 1. `work` does operations and reports them
    /// with [`Slices::advance`] until that returns `false`; if arms are interleaved, it is called once per turn.
    ///
    /// # Errors
    /// Those of `work`, or the other arms are gone.
    pub fn stream(
        &mut self,
        share: f64,
        mut work: impl FnMut(&mut Slices) -> Result<(), ProbeError>,
    ) -> Result<Vec<Slice>, ProbeError> {
        let Some(slice_ns) = self.slice_ns() else {
            let begin = Instant::now();
            let mut slices = Slices::start(whole_part(self.target_ns() as f64 * share));
            work(&mut slices)?;
            self.count_timed(begin.elapsed());
            return Ok(slices.into_inner());
        };
        let mut rounds = self.rounds(share)?;
        let mut kept = Vec::new();
        while rounds.another(self)? {
            let mut slices = Slices::one(slice_ns);
            work(&mut slices)?;
            kept.extend(slices.into_inner());
        }
        Ok(kept)
    }
}

/// Returns the nanoseconds per operation of each slice.
pub fn times_ns(slices: &[Slice]) -> Vec<f64> {
    slices
        .iter()
        .map(|slice| slice.lasted_ns as f64 / slice.count as f64)
        .collect()
}

/// Returns the rate per second of each slice, with each count multiplied by `unit`.
pub fn rates(slices: &[Slice], unit: u64) -> Vec<f64> {
    slices
        .iter()
        .map(|slice| (slice.count * unit) as f64 * 1e9 / slice.lasted_ns as f64)
        .collect()
}

/// Returns the median count of a slice; 0 without slices.
pub fn batch(slices: &[Slice]) -> u64 {
    let mut counts: Vec<u64> = slices.iter().map(|slice| slice.count).collect();
    counts.sort_unstable();
    counts.get(counts.len() / 2).copied().unwrap_or(0)
}

/// Returns the sum of all counts and durations as one sentence.
pub fn total(slices: &[Slice]) -> String {
    let count: u64 = slices.iter().map(|slice| slice.count).sum();
    let lasted_ns: u64 = slices.iter().map(|slice| slice.lasted_ns).sum();
    format!("{count} in {lasted_ns} ns in all")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slice_counts_sum_to_work_after_warm_up() {
        let mut slices = Slices::start(3_000_000);
        let mut done = 0;
        let mut at_warm = 0;
        loop {
            std::thread::sleep(Duration::from_micros(50));
            done += 3;
            let was_warm = slices.is_warm;
            let goes_on = slices.advance(done);
            if slices.is_warm && !was_warm {
                at_warm = done;
            }
            if !goes_on {
                break;
            }
        }
        assert!(slices.kept.len() >= FEWEST);
        let in_slices: u64 = slices.kept.iter().map(|slice| slice.count).sum();
        assert!(at_warm > 0);
        assert_eq!(in_slices, done - at_warm);
        assert!(batch(&slices.kept) >= 3);
    }

    #[test]
    fn operations_longer_than_a_slice_give_five_slices() {
        let mut slices = Slices::start(1);
        let mut done = 0;
        while {
            std::thread::sleep(Duration::from_micros(200));
            done += 1;
            slices.advance(done)
        } {}
        assert_eq!(slices.kept.len(), FEWEST);
        assert_eq!(done, FEWEST as u64 + 1);
        assert!(times_ns(&slices.kept).iter().all(|time| *time >= 200_000.0));
    }

    #[test]
    fn interval_without_finished_work_is_not_a_slice() {
        let mut slices = Slices::start(1_000_000);
        std::thread::sleep(Duration::from_micros(300));
        assert!(slices.advance(0));
        assert!(!slices.is_warm && slices.kept.is_empty());
    }

    #[test]
    fn slice_rate_is_bytes_per_second_time_is_inverse() {
        let slices = [Slice {
            count: 4,
            lasted_ns: 2_000,
        }];
        assert_eq!(rates(&slices, 1024), [2_048_000_000.0]);
        assert_eq!(times_ns(&slices), [500.0]);
        assert_eq!(batch(&slices), 4);
        assert_eq!(total(&slices), "4 in 2000 ns in all");
        assert_eq!(batch(&[]), 0);
    }
}
