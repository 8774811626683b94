//! Median and quantiles of raw values.
//!
//! Linear interpolation (type 7 of Hyndman & Fan 1996) is the default of NumPy and R, and gives the usual median.
//!
//! Limits: gives no uncertainty of a quantile.

use tare_model::whole_place;

use crate::interval::{all_finite, sorted};

/// Returns the middle value, or the midpoint of the two. `None` for no values or any that is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut values.to_vec())
}

/// Same as [`median`]; may reorder the values.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    if values.is_empty() || !all_finite(values) {
        return None;
    }
    let (half, is_even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp);
    Some(match lower.filter(|_| is_even) {
        Some(lower) => f64::midpoint(lower, *upper),
        // Adding zero turns −0 into +0, as interpolation does.
        None => *upper + 0.0,
    })
}

/// Returns the `p`-quantile by linear interpolation at position (n − 1)·p of the sorted values.
///
/// n = 1 gives that value, n = 2 interpolates between both. `None` for no values, any that is not finite, or `p`
/// outside [0, 1].
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    if values.is_empty() || !all_finite(values) || !(0.0..=1.0).contains(&p) {
        return None;
    }
    Some(quantile_of_sorted(&sorted(values), p))
}

/// Same as [`quantile`] for sorted, finite, non-empty values and `p` in [0, 1].
pub(crate) fn quantile_of_sorted(values: &[f64], p: f64) -> f64 {
    let position = (values.len() - 1) as f64 * p;
    let below = whole_place(position);
    let above = (below + 1).min(values.len() - 1);
    let share = position - below as f64;
    #[allow(clippy::float_cmp, reason = "halfway between two values is exact")]
    let is_halfway = share == 0.5;
    if is_halfway {
        // Symmetric, so that the median does not depend on the direction.
        return f64::midpoint(values[below], values[above]);
    }
    let step = values[above] - values[below];
    // Clamped because rounding may exceed the neighbour by one unit.
    (values[below] + share * step).clamp(values[below], values[above])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    #[test]
    fn the_median_by_selection_is_that_by_sorting() {
        let mut stream = Stream::new(3, 0, 0);
        for n in 1..80 {
            // Rounded, so that ties, zeros and zeros with a sign occur.
            let values: Vec<f64> = (0..n)
                .map(|_| (stream.normal() * 4.0).round() / 8.0)
                .collect();
            let selected = median(&values).unwrap();
            assert_eq!(
                selected.to_bits(),
                quantile(&values, 0.5).unwrap().to_bits(),
                "{values:?}"
            );
        }
    }
}
