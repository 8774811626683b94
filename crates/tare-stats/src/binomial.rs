//! Counts out of trials: the quantiles of a binomial distribution.
//!
//! Why exact: alarm rates near 5 % of a few hundred comparisons are where the normal
//! approximation is worst, and a self-check must not alarm by itself.
//!
//! What it cannot see: comparisons that share blocks. Then the count varies more.

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
        // As R does: a probability that is met but for rounding is met.
        if binomial_cdf(middle, n, share) >= probability * (1.0 - 64.0 * f64::EPSILON) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(low)
}
