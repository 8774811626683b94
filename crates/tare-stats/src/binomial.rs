//! Exact quantiles of the binomial distribution, for counts out of trials.
//!
//! The normal approximation is worst for false-positive rates near 5 % of a few hundred comparisons, and a self-check
//! must not raise an alarm for that reason.
//!
//! Limits: comparisons that share blocks vary more than this.

use crate::special::binomial_cdf;

/// The smallest k with P(X ≤ k) ≥ `probability`, X binomial of `n` draws with `share`.
///
/// `None` if `probability` or `share` is outside [0, 1].
pub fn binomial_quantile(probability: f64, n: u64, share: f64) -> Option<u64> {
    if !(0.0..=1.0).contains(&probability) || !(0.0..=1.0).contains(&share) {
        return None;
    }
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        // As in R: a probability reached except for rounding counts as reached.
        if binomial_cdf(middle, n, share) >= probability * (1.0 - 64.0 * f64::EPSILON) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}
