//! Counts outliers among trials.
//!
//! Modified z = 0.6745 (x − median)/MAD beyond 3.5 (Iglewicz & Hoaglin 1993), and values beyond three interquartile
//! ranges from the quartiles (Tukey 1977, "far out").
//!
//! Outliers are part of an environment's overhead: they are counted and never removed.
//!
//! Limits: if more than half of the values are equal, the MAD is zero and the modified z is defined as zero.

use crate::interval::{all_finite, sorted};
use crate::quantile::{median, quantile_of_sorted};

/// Φ⁻¹(0.75): makes the MAD an estimate of the standard deviation.
const NORMAL_MAD: f64 = 0.674_489_750_196_081_7;
/// A larger modified z counts as an outlier.
const FAR_Z: f64 = 3.5;
/// A value this many interquartile ranges beyond the quartiles counts as far out.
const FAR_FENCE: f64 = 3.0;

/// Returns the modified z of each value. `None` for no values or any that is not finite; zeros if the MAD is zero.
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

/// The number of outliers by two rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutlierCount {
    /// Values with |modified z| > 3.5.
    pub modified_z: usize,
    /// Values more than three interquartile ranges beyond the quartiles.
    pub tukey: usize,
}

/// Counts outliers by both rules. `None` as [`modified_z`]. If the quartiles coincide, every value that differs from
/// them is beyond Tukey's fence.
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
