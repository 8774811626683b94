//! Finds the k-th smallest pairwise mean or difference without listing all pairs.
//!
//! 1 000 blocks have 500 500 Walsh averages and 10 000 blocks have fifty million. For sorted input, one sweep counts
//! the pairs at or below a value and finds the nearest pairs on both sides of it. The exact order statistic is
//! bracketed between two pairs that converge: by interpolation between their ranks, and by bisecting the *bit
//! patterns* of `f64` where that is slow. The result is exactly the number that sorting would give, because the
//! floating-point mean is monotone in each argument.
//!
//! Limits: callers must reject `NaN`.

/// The result of one sweep over all pairs for a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sweep {
    /// Pairs at or below it.
    pub(crate) count: usize,
    /// The largest of these; −∞ if there is none.
    pub(crate) below: f64,
    /// The smallest of the others; ∞ if there is none.
    pub(crate) above: f64,
}

/// Compares the means of all pairs i ≤ j of the sorted `x` with `value`.
#[allow(
    clippy::manual_midpoint,
    reason = "it is that one, without its care, where no sum overflows"
)]
pub(crate) fn means_around(x: &[f64], value: f64) -> Sweep {
    let is_small = |end: Option<&f64>| end.is_none_or(|end| end.abs() <= f64::MAX / 2.0);
    // Same as `midpoint` if no sum overflows, checked once instead of for every pair.
    if is_small(x.first()) && is_small(x.last()) {
        around(x, value, |left, right| (left + right) / 2.0)
    } else {
        around(x, value, f64::midpoint)
    }
}

fn around(x: &[f64], value: f64, mean_of: impl Fn(f64, f64) -> f64) -> Sweep {
    let mut end = x.len();
    let mut sweep = Sweep {
        count: 0,
        below: f64::NEG_INFINITY,
        above: f64::INFINITY,
    };
    for (i, &left) in x.iter().enumerate() {
        let mut last = f64::INFINITY;
        while end > i {
            let mean = mean_of(left, x[end - 1]);
            if mean <= value {
                sweep.below = sweep.below.max(mean);
                break;
            }
            last = mean;
            end -= 1;
        }
        // If nothing was skipped, the nearest pair above is the next in the row.
        if last == f64::INFINITY && end < x.len() {
            last = mean_of(left, x[end.max(i)]);
        }
        sweep.above = sweep.above.min(last);
        if end <= i {
            break;
        }
        sweep.count += end - i;
    }
    sweep
}

/// Counts the pairs i ≤ j of the sorted `x` with a mean of at most `value`.
pub(crate) fn means_at_most(x: &[f64], value: f64) -> usize {
    means_around(x, value).count
}

/// Counts the pairs i ≤ j of the sorted `x` with a mean below `value`.
pub(crate) fn means_below(x: &[f64], value: f64) -> usize {
    let mut end = x.len();
    let mut count = 0;
    for (i, &left) in x.iter().enumerate() {
        while end > i && f64::midpoint(left, x[end - 1]) >= value {
            end -= 1;
        }
        if end <= i {
            break;
        }
        count += end - i;
    }
    count
}

/// Counts the differences `b_j - a_i` of two sorted samples that are at most `value`.
pub(crate) fn differences_at_most(a: &[f64], b: &[f64], value: f64) -> usize {
    differences_where(a, b, |difference| difference <= value)
}

/// Counts the differences `b_j - a_i` of two sorted samples that are below `value`.
pub(crate) fn differences_below(a: &[f64], b: &[f64], value: f64) -> usize {
    differences_where(a, b, |difference| difference < value)
}

fn differences_where(a: &[f64], b: &[f64], is_small: impl Fn(f64) -> bool) -> usize {
    let mut end = 0;
    let counts = a.iter().map(|left| {
        while end < b.len() && is_small(b[end] - left) {
            end += 1;
        }
        end
    });
    counts.sum()
}

/// Sweeps after which the bracket is only bisected; interpolation that converges at all has converged by then.
const INTERPOLATIONS: usize = 40;

/// Order statistics of one set of pairs. Each search starts from the results of earlier ones, because the ranks of an
/// interval are close together.
pub(crate) struct Ranks<F> {
    count: usize,
    ends: (f64, f64),
    sweep: F,
    met: Vec<Sweep>,
}

impl<F: Fn(f64) -> Sweep> Ranks<F> {
    /// Creates the search over `count` pairs; `ends` holds the smallest and the largest.
    pub(crate) fn new(count: usize, ends: (f64, f64), sweep: F) -> Self {
        Self {
            count,
            ends,
            sweep,
            met: Vec::new(),
        }
    }

    /// Returns the `rank`-th smallest pair, counted from 1.
    pub(crate) fn nth(&mut self, rank: usize) -> f64 {
        let (mut low, mut high) = self.ends;
        // Pairs certainly below the bracket, and pairs up to its end.
        let (mut before, mut up_to) = (0, self.count);
        for found in &self.met {
            if found.count >= rank && found.count < up_to {
                (high, up_to) = (found.below, found.count);
            } else if found.count < rank && found.count > before {
                (low, before) = (found.above, found.count);
            }
        }
        for step in 0.. {
            if low >= high {
                break;
            }
            let value = next_value(step, (low, high), (before, rank, up_to));
            let found = (self.sweep)(value);
            self.met.push(found);
            if found.count >= rank {
                (high, up_to) = (found.below, found.count);
            } else {
                (low, before) = (found.above, found.count);
            }
        }
        // Adding zero turns −0 into +0.
        low + 0.0
    }
}

/// Returns the next value to try for the pair of `rank`, between `low` and below `high`.
fn next_value(
    step: usize,
    (low, high): (f64, f64),
    (before, rank, up_to): (usize, usize, usize),
) -> f64 {
    let interpolated = || {
        let (to_low, to_high) = (rank - before, up_to - rank + 1);
        // A near end stays; the search aims past the rank so that the far end moves closer.
        let target = if to_low < to_high / 4 {
            2 * to_low
        } else if to_high < to_low / 4 {
            up_to - before - 2 * to_high
        } else {
            to_low
        };
        low + (high - low) * (target as f64 / (up_to - before) as f64)
    };
    // Every fourth step bisects, so that a distant value does not stall the search.
    let value = if step < INTERPOLATIONS && step % 4 < 3 {
        interpolated()
    } else {
        between(low, high)
    };
    // Rounding, or ends too far apart to subtract, can leave the bracket.
    if low <= value && value < high {
        value
    } else {
        between(low, high)
    }
}

/// Returns the number half-way between two, counted in steps of `f64`: below the larger one.
fn between(low: f64, high: f64) -> f64 {
    let (low, high) = (to_ordered(low), to_ordered(high));
    from_ordered(low + (high - low) / 2)
}

/// Returns the median by rank: the middle one of `count`, or the midpoint of the two.
pub(crate) fn middle(count: usize, nth: &mut dyn FnMut(usize) -> f64) -> f64 {
    if count % 2 == 1 {
        nth(count / 2 + 1)
    } else {
        f64::midpoint(nth(count / 2), nth(count / 2 + 1))
    }
}

const SIGN: u64 = 1 << 63;

/// Maps numbers to integers in the same order.
fn to_ordered(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn from_ordered(key: u64) -> f64 {
    f64::from_bits(if key & SIGN == 0 { !key } else { key & !SIGN })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interval::sorted;
    use crate::random::Stream;
    use std::cell::Cell;

    fn means(x: &[f64]) -> Vec<f64> {
        let pairs = (0..x.len()).flat_map(|i| (i..x.len()).map(move |j| (i, j)));
        sorted(
            &pairs
                .map(|(i, j)| f64::midpoint(x[i], x[j]))
                .collect::<Vec<f64>>(),
        )
    }

    #[test]
    fn a_sweep_counts_and_meets_its_neighbours() {
        let x = [-2.0, 0.0, 0.5, 0.5, 7.0];
        let all = means(&x);
        for value in [-3.0, -2.0, -1.0, 0.2, 0.25, 0.5, 3.0, 6.9, 7.0, 8.0] {
            let below = all.iter().filter(|mean| **mean <= value);
            let above = all.iter().filter(|mean| **mean > value);
            let expected = Sweep {
                count: below.clone().count(),
                below: below.copied().fold(f64::NEG_INFINITY, f64::max),
                above: above.copied().fold(f64::INFINITY, f64::min),
            };
            assert_eq!(means_around(&x, value), expected, "{value}");
        }
    }

    /// Typical measured samples: smooth, in steps, with one outlier, with almost no variation.
    fn samples() -> Vec<Vec<f64>> {
        let mut stream = Stream::new(11, 0, 0);
        let mut of = |n: usize, shape: &dyn Fn(f64) -> f64| -> Vec<f64> {
            sorted(&(0..n).map(|_| shape(stream.normal())).collect::<Vec<f64>>())
        };
        let mut far = of(301, &|normal| normal);
        far[300] = 1e300;
        vec![
            of(300, &|normal| normal),
            of(300, &|normal| (normal * 8.0).round() / 8.0),
            of(257, &|normal| (3.0 * normal).exp()),
            of(300, &|normal| 1e9 + normal.round()),
            far,
            vec![4.0; 100],
        ]
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "both find the same of the same numbers")]
    fn every_rank_equals_sorted_value() {
        for x in samples() {
            let all = means(&x);
            let ends = (x[0], x[x.len() - 1]);
            let mut together = Ranks::new(all.len(), ends, |value| means_around(&x, value));
            for rank in (1..=all.len()).step_by(97).chain([all.len()]) {
                let mut alone = Ranks::new(all.len(), ends, |value| means_around(&x, value));
                assert_eq!(alone.nth(rank), all[rank - 1]);
                assert_eq!(together.nth(rank), all[rank - 1]);
            }
        }
    }

    #[test]
    fn a_few_sweeps_find_the_middle_of_many() {
        let mut stream = Stream::new(12, 0, 0);
        let x: Vec<f64> = (0..20_000).map(|_| 0.3 + 0.01 * stream.normal()).collect();
        let x = sorted(&x);
        let count = x.len() * (x.len() + 1) / 2;
        let sweeps = Cell::new(0);
        let mut ranks = Ranks::new(count, (x[0], x[x.len() - 1]), |value| {
            sweeps.set(sweeps.get() + 1);
            means_around(&x, value)
        });
        ranks.nth(count / 2);
        assert!(sweeps.get() <= 20, "{}", sweeps.get());
        // The ranks of an interval are close together and need fewer sweeps.
        ranks.nth(count / 2 - count / 100);
        assert!(sweeps.get() <= 32, "{}", sweeps.get());
    }
}
