//! Counts out of trials: exact intervals and the region an A/A check accepts.
//!
//! What: Clopper & Pearson 1934 (quantiles of beta distributions) and binomial
//! quantiles.
//!
//! Why exact: alarm rates near 5 % of a few hundred comparisons are where the normal
//! approximation is worst, and a self-check must not alarm by itself.
//!
//! What it cannot see: comparisons that share blocks. Then the count varies more.

use crate::interval::{Interval, Undetermined};
use crate::special::{beta_quantile, binomial_cdf};

/// Share k/n with the Clopper–Pearson interval, which covers at least `level`.
///
/// The bounds are 0 and 1 at k = 0 and k = n. Undetermined for n = 0, k > n, or a
/// level outside (0, 1).
pub fn clopper_pearson(k: u64, n: u64, level: f64) -> Result<Interval, Undetermined> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Undetermined::OutOfDomain {
            must: "the level must lie between 0 and 1",
        });
    }
    if n == 0 {
        return Err(Undetermined::TooFew { n: 0, needed: 1 });
    }
    if k > n {
        return Err(Undetermined::OutOfDomain {
            must: "successes must not exceed trials",
        });
    }
    let tail = (1.0 - level) / 2.0;
    let (hits, misses) = (k as f64, (n - k) as f64);
    let low = if k == 0 {
        0.0
    } else {
        beta_quantile(hits, misses + 1.0, tail)
    };
    let high = if k == n {
        1.0
    } else {
        beta_quantile(hits + 1.0, misses, 1.0 - tail)
    };
    Ok(Interval {
        point: hits / n as f64,
        low,
        high,
        level,
    })
}

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

/// The fewest and most false alarms that `n` identical comparisons may give at an
/// alarm rate of `rate`: binomial quantiles at 2.5 % and 97.5 %.
///
/// A count outside speaks against the rate. `None` if `rate` is outside [0, 1].
pub fn acceptance_region(n: u64, rate: f64) -> Option<(u64, u64)> {
    Some((
        binomial_quantile(0.025, n, rate)?,
        binomial_quantile(0.975, n, rate)?,
    ))
}
