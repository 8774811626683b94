//! Median and quantiles of raw values.
//!
//! Why linear interpolation (type 7 of Hyndman & Fan 1996): it is what NumPy, R and
//! most readers mean by default, and the median is the usual one.
//!
//! What it cannot see: how uncertain a quantile is.

use crate::interval::{all_finite, sorted};

/// The middle value, or the midpoint of the two. `None` for no values or any that
/// is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// The `p`-quantile by linear interpolation at position (n − 1)·p of the sorted values.
///
/// n = 1 gives that value, n = 2 interpolates between both. `None` for no values,
/// any that is not finite, or `p` outside [0, 1].
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() || !all_finite(values) || !(0.0..=1.0).contains(&p) {
        return None;
    }
    Some(quantile_of_sorted(&sorted(values), p))
}

/// As [`quantile`] for sorted, finite, non-empty values and `p` in [0, 1].
pub(crate) fn quantile_of_sorted(values: &[f64], p: f64) -> f64 {
    let position = (values.len() - 1) as f64 * p;
    let below = position.floor() as usize;
    let above = (below + 1).min(values.len() - 1);
    let share = position - below as f64;
    if share == 0.5 {
        // Symmetric, so that the median does not depend on the direction.
        return f64::midpoint(values[below], values[above]);
    }
    let step = values[above] - values[below];
    // Clamped because rounding may step over the neighbour by one unit.
    (values[below] + share * step).clamp(values[below], values[above])
}
