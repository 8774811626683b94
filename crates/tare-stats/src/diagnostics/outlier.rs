//! How many trials are far from the rest?
//!
//! What: modified z = 0.6745 (x − median)/MAD beyond 3.5 (Iglewicz & Hoaglin 1993),
//! and values beyond three interquartile ranges from the quartiles (Tukey 1977,
//! "far out").
//!
//! Why counts only: outliers are part of what an environment costs. They are reported
//! and never removed.
//!
//! What it cannot see: outliers when more than half of the values are equal. The MAD is
//! then zero and the modified z is zero by definition here.

use crate::interval::{all_finite, sorted};
use crate::quantile::{median, quantile_of_sorted};

/// Φ⁻¹(0.75): makes the MAD an estimate of the standard deviation.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// Beyond this modified z a value counts as an outlier.
const FAR_Z: f64 = 3.5;
/// Beyond this many interquartile ranges a value counts as far out.
const FAR_FENCE: f64 = 3.0;

/// The modified z of each value. `None` for no values or any that is not finite; zeros if
/// the MAD is zero.
pub fn modified_z(x: &[f64]) -> Option<Vec<f64>> {
    if !all_finite(x) {
        return None;
    }
    let centre = median(x)?;
    let off: Vec<f64> = x.iter().map(|value| (value - centre).abs()).collect();
    let mad = median(&off)?;
    let scaled = |value: &f64| {
        if mad > 0.0 {
            NORMAL_MAD * (value - centre) / mad
        } else {
            0.0
        }
    };
    Some(x.iter().map(scaled).collect())
}

/// How many values are far from the rest, by two rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierCount {
    /// |modified z| > 3.5.
    pub modified_z: usize,
    /// Beyond the quartiles by more than three interquartile ranges.
    pub tukey: usize,
}

/// Counts by both rules. `None` as [`modified_z`]. If the quartiles coincide, every value
/// that differs from them is beyond Tukey's fence.
pub fn outlier_count(x: &[f64]) -> Option<OutlierCount> {
    let far = modified_z(x)?.iter().filter(|z| z.abs() > FAR_Z).count();
    let sorted = sorted(x);
    let (low, high) = (
        quantile_of_sorted(&sorted, 0.25),
        quantile_of_sorted(&sorted, 0.75),
    );
    let reach = FAR_FENCE * (high - low);
    let outside = |value: &&f64| **value < low - reach || **value > high + reach;
    Some(OutlierCount {
        modified_z: far,
        tukey: x.iter().filter(outside).count(),
    })
}
