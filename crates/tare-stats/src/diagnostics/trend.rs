//! Tests for drift in a series.
//!
//! Mann–Kendall S = Σ_{i<j} sgn(x_j − x_i) with the normal approximation, corrected for ties and continuity (Mann
//! 1945, Kendall 1975), and the Theil–Sen slope, the median of all pairwise slopes (Theil 1950, Sen 1968).
//!
//! Both are robust: a few outliers neither make nor hide a trend. Falling pairs are counted by merging (Knight 1966).
//! In a long series the slope is found by bisecting an interval of slopes and counting the pairs below its middle, so
//! a long run needs no more memory than its values.
//!
//! Limits: does not see a trend that reverses. A slow warm-up followed by slow cooling has S near zero.

use crate::interval::{all_finite, sorted, ties};
use crate::quantile::median;
use crate::special::normal_cdf;

/// The Mann–Kendall trend test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannKendall {
    /// Rising pairs minus falling pairs.
    pub s: i64,
    /// S standardised; 0 when all values are equal.
    pub z: f64,
    /// The two-sided p-value.
    pub p: f64,
}

/// Computes Mann–Kendall of values in time order. `None` below two values or for values that are not finite; p = 1 at
/// n = 2 and if all are equal. O(n log n).
pub fn mann_kendall(x: &[f64]) -> Option<MannKendall> {
    if x.len() < 2 || !all_finite(x) {
        return None;
    }
    let ties = tie_sizes(x);
    let tied: u64 = ties.iter().copied().map(n_pairs).sum();
    let falling = falling_pairs(&mut x.to_vec());
    let rising = n_pairs(x.len()) - tied - falling;
    let s = rising.cast_signed() - falling.cast_signed();
    let weight = |count: usize| n_pairs(count) as f64 * (4 * count + 10) as f64;
    let ties: f64 = ties.into_iter().map(weight).sum();
    let variance = (weight(x.len()) - ties) / 18.0;
    let z = if s == 0 {
        0.0
    } else {
        (s - s.signum()) as f64 / variance.sqrt()
    };
    Some(MannKendall {
        s,
        z,
        p: (2.0 * normal_cdf(-z.abs())).min(1.0),
    })
}

/// Returns the number of pairs of `n` items.
fn n_pairs(n: usize) -> u64 {
    let n = n as u64;
    n * n.saturating_sub(1) / 2
}

/// Counts the pairs whose later value is less than the earlier one; sorts the values. O(n log n).
fn falling_pairs(x: &mut [f64]) -> u64 {
    let mut spare = x.to_vec();
    let mut falling = 0;
    let mut width = 1;
    while width < x.len() {
        for (from, to) in x.chunks(2 * width).zip(spare.chunks_mut(2 * width)) {
            let (left, right) = from.split_at(width.min(from.len()));
            let (mut i, mut j) = (0, 0);
            for slot in to {
                let takes_right = i == left.len() || (j < right.len() && right[j] < left[i]);
                *slot = if takes_right {
                    // Less than everything that remains on the left.
                    falling += (left.len() - i) as u64;
                    j += 1;
                    right[j - 1]
                } else {
                    i += 1;
                    left[i - 1]
                };
            }
        }
        x.copy_from_slice(&spare);
        width *= 2;
    }
    falling
}

/// Returns the sizes of the groups of equal values.
pub(crate) fn tie_sizes(x: &[f64]) -> Vec<usize> {
    ties(&sorted(x)).map(<[f64]>::len).collect()
}

/// Up to this many values, all pairwise slopes are held in memory (half a million numbers).
const ALL_PAIRS_UP_TO: usize = 1_000;

/// Returns the lower median of all pairwise slopes; `at` must be increasing, with at least two values.
///
/// A slope is below m exactly if value − m·at falls between the two points, so pairs below m are counted without
/// listing them. The slopes of neighbours bound all others, which are their weighted means.
fn middle_slope(at: &[f64], value: &[f64]) -> f64 {
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for (t, v) in at.windows(2).zip(value.windows(2)) {
        let slope = (v[1] - v[0]) / (t[1] - t[0]);
        (low, high) = (low.min(slope), high.max(slope));
    }
    let middle = (n_pairs(at.len()) - 1) / 2;
    let mut tilted = vec![0.0; at.len()];
    loop {
        let slope = low + (high - low) / 2.0;
        if slope <= low || slope >= high {
            return low;
        }
        for ((tilted, t), v) in tilted.iter_mut().zip(at).zip(value) {
            *tilted = v - slope * t;
        }
        if falling_pairs(&mut tilted) <= middle {
            low = slope;
        } else {
            high = slope;
        }
    }
}

/// Returns the Theil–Sen slope per step of a series. `None` as [`mann_kendall`].
pub fn theil_sen(x: &[f64]) -> Option<f64> {
    let at: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
    theil_sen_slope(&at, x)
}

/// Returns the Theil–Sen slope of `value` on `at`: the median of (y_j − y_i)/(t_j − t_i) over pairs that differ in
/// `at`. `None` if lengths differ, no pair differs, or a value is not finite. O(n² log n) up to a thousand values.
/// Above, if `at` is increasing, the lower median slope to `f64` precision, O(n log n) per bit.
pub fn theil_sen_slope(at: &[f64], value: &[f64]) -> Option<f64> {
    if at.len() != value.len() || !all_finite(at) || !all_finite(value) {
        return None;
    }
    if at.len() > ALL_PAIRS_UP_TO && at.is_sorted_by(|a, b| a < b) {
        return Some(middle_slope(at, value));
    }
    let mut slopes = Vec::with_capacity(at.len() * at.len().saturating_sub(1) / 2);
    for i in 0..at.len() {
        for j in i + 1..at.len() {
            let step = at[j] - at[i];
            if step != 0.0 {
                slopes.push((value[j] - value[i]) / step);
            }
        }
    }
    median(&slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn noise(n: usize, seed: u64) -> Vec<f64> {
        let mut stream = Stream::new(seed, 0, 0);
        (0..n).map(|_| stream.normal()).collect()
    }

    #[test]
    fn pairs_are_counted_as_by_looking_at_each() {
        for n in [0, 1, 2, 3, 7, 64, 65, 257] {
            // Rounded, so that some are equal.
            let x: Vec<f64> = noise(n, n as u64)
                .iter()
                .map(|x| (x * 4.0).round())
                .collect();
            let mut falling = 0;
            for (i, earlier) in x.iter().enumerate() {
                falling += x[i + 1..].iter().filter(|later| *later < earlier).count() as u64;
            }
            let mut sorted = x.clone();
            assert_eq!(falling_pairs(&mut sorted), falling, "{n}");
            assert!(sorted.is_sorted());
        }
    }

    #[test]
    fn a_slope_found_by_halving_is_the_middle_one_of_all() {
        for n in [2, 3, 51, 400] {
            let at: Vec<f64> = (0..n).map(|i| 1.5 * i as f64).collect();
            let value: Vec<f64> = noise(n, 7)
                .iter()
                .zip(&at)
                .map(|(noise, t)| noise + 0.02 * t)
                .collect();
            let mut slopes = Vec::new();
            for i in 0..n {
                slopes.extend((i + 1..n).map(|j| (value[j] - value[i]) / (at[j] - at[i])));
            }
            slopes.sort_by(f64::total_cmp);
            let expected = slopes[(slopes.len() - 1) / 2];
            let found = middle_slope(&at, &value);
            assert!((found - expected).abs() < 1e-9, "{n}: {found} {expected}");
        }
    }

    #[test]
    fn a_series_of_any_length_has_a_slope() {
        let drifting: Vec<f64> = noise(50_000, 3)
            .iter()
            .zip(0..)
            .map(|(noise, step)| noise + 1e-3 * f64::from(step))
            .collect();
        let slope = theil_sen(&drifting).unwrap();
        assert!((slope - 1e-3).abs() < 1e-5, "{slope}");
        assert!(mann_kendall(&drifting).unwrap().p < 1e-6);
        assert_eq!(theil_sen(&vec![2.0; 1_500]), Some(0.0));
    }
}
