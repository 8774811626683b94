//! Does the series drift?
//!
//! What: Mann–Kendall S = Σ_{i<j} sgn(x_j − x_i) with the normal approximation,
//! corrected for ties and continuity (Mann 1945, Kendall 1975), and the Theil–Sen
//! slope, the median of all pairwise slopes (Theil 1950, Sen 1968).
//!
//! Why: both look at order only, so a few wild trials do not make or hide a trend.
//!
//! What it cannot see: a trend that turns. A slow warm-up followed by slow cooling has
//! S near zero.

use crate::interval::all_finite;
use crate::quantile::median;
use crate::special::normal_cdf;

/// The Mann–Kendall trend test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannKendall {
    /// Rising pairs less falling pairs.
    pub s: i64,
    /// S standardised; 0 when all values are equal.
    pub z: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Mann–Kendall of values in time order. `None` below two values or for values that are
/// not finite; p = 1 at n = 2 and when all are equal. O(n²).
pub fn mann_kendall(x: &[f64]) -> Option<MannKendall> {
    if x.len() < 2 || !all_finite(x) {
        return None;
    }
    let mut s = 0_i64;
    for (i, earlier) in x.iter().enumerate() {
        for later in &x[i + 1..] {
            s += i64::from(later > earlier) - i64::from(later < earlier);
        }
    }
    let weight = |count: usize| (count * count.saturating_sub(1) * (2 * count + 5)) as f64;
    let ties: f64 = tie_sizes(x).into_iter().map(weight).sum();
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

/// Sizes of the groups of equal values.
pub(crate) fn tie_sizes(x: &[f64]) -> Vec<usize> {
    let sorted = crate::interval::sorted(x);
    sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect()
}

/// The Theil–Sen slope per step of a series. `None` as [`mann_kendall`].
pub fn theil_sen(x: &[f64]) -> Option<f64> {
    let at: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
    theil_sen_slope(&at, x)
}

/// The Theil–Sen slope of `value` on `at`: the median of (y_j − y_i)/(t_j − t_i) over
/// pairs that differ in `at`. `None` if lengths differ, no pair differs, or a value is
/// not finite. O(n² log n).
pub fn theil_sen_slope(at: &[f64], value: &[f64]) -> Option<f64> {
    if at.len() != value.len() || !all_finite(at) || !all_finite(value) {
        return None;
    }
    let mut slopes = Vec::with_capacity(at.len() * at.len().saturating_sub(1) / 2);
    for i in 0..at.len() {
        for j in i + 1..at.len() {
            if at[i] != at[j] {
                slopes.push((value[j] - value[i]) / (at[j] - at[i]));
            }
        }
    }
    median(&slopes)
}
