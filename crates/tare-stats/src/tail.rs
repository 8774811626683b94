//! Quantiles of few values, and intervals for any quantile.
//!
//! What: Harrell & Davis 1982, a weighted mean of all order statistics with weights
//! from a beta distribution, and distribution-free intervals between two order
//! statistics with ranks from the binomial distribution.
//!
//! Why: a p99 of a few hundred requests is one request; the weighted mean is steadier
//! from p50 to p95, and the ranks say how little is known beyond.
//!
//! What it cannot see: values in histograms (they use the nearest rank), dependence
//! between requests, and, for Harrell–Davis at small n, anything but the maximum.

use crate::binomial::binomial_quantile;
use crate::interval::{Estimate, Interval, Undetermined, all_finite, check, sorted};
use crate::quantile::quantile_of_sorted;
use crate::special::{beta_regularized, binomial_cdf};

/// The Harrell–Davis `p`-quantile: Σ [I_{i/n}(a, b) − I_{(i−1)/n}(a, b)] x_(i) with
/// a = (n + 1)p, b = (n + 1)(1 − p).
///
/// n = 1 gives that value. `None` for no values, any not finite, or p not in (0, 1).
pub fn harrell_davis(x: &[f64], p: f64) -> Option<f64> {
    if x.is_empty() || !all_finite(x) || !(p > 0.0 && p < 1.0) {
        return None;
    }
    let x = sorted(x);
    let count = x.len() as f64;
    let (low_shape, high_shape) = ((count + 1.0) * p, (count + 1.0) * (1.0 - p));
    let mut before = 0.0;
    let mut sum = 0.0;
    for (i, value) in x.iter().enumerate() {
        let after = beta_regularized(low_shape, high_shape, (i + 1) as f64 / count);
        sum += (after - before) * value;
        before = after;
    }
    // Weights sum to one but for rounding.
    Some(sum.clamp(x[0], x[x.len() - 1]))
}

/// Ranks (1-based) of the order statistics between which the `p`-quantile of `n` values
/// lies with at least `level`: the largest l with P(X ≤ l − 1) ≤ α/2 and the smallest u
/// with P(X ≥ u) ≤ α/2, X binomial(n, p). A side is `None` where no rank will do; both
/// are for arguments outside (0, 1).
pub fn quantile_ranks(n: usize, p: f64, level: f64) -> (Option<usize>, Option<usize>) {
    if n == 0 || !(p > 0.0 && p < 1.0) || !(level > 0.0 && level < 1.0) {
        return (None, None);
    }
    let tail = (1.0 - level) / 2.0;
    let count = n as u64;
    let quantile = |probability| binomial_quantile(probability, count, p).map_or(0, |k| k as usize);
    // From near the quantiles, step to the ranks by the definition itself.
    let mut low = quantile(tail) + 1;
    while low > 0 && binomial_cdf(low as u64 - 1, count, p) > tail {
        low -= 1;
    }
    let mut high = quantile(1.0 - tail);
    while high <= n && (high == 0 || binomial_above(high, count, p) > tail) {
        high += 1;
    }
    ((low > 0).then_some(low), (high <= n).then_some(high))
}

/// P(X ≥ k) by the upper tail, which keeps its relative precision; k ≥ 1.
fn binomial_above(k: usize, n: u64, p: f64) -> f64 {
    binomial_cdf(n - k as u64, n, 1.0 - p)
}

/// The `p`-quantile (linear interpolation) with its order-statistic interval.
///
/// [`Undetermined::TooFew`] if one side has no rank: six values give a median at 95 %,
/// a p99 takes 368. Ties make the interval conservative.
pub fn quantile_interval(x: &[f64], p: f64, level: f64) -> Result<Estimate, Undetermined> {
    check(&[x], level)?;
    if !(p > 0.0 && p < 1.0) {
        return Err(Undetermined::OutOfDomain {
            must: "the quantile must lie between 0 and 1",
        });
    }
    let n = x.len();
    let (Some(low), Some(high)) = quantile_ranks(n, p, level) else {
        // The scarcer side holds only its extreme: p^n or (1 − p)^n must be ≤ α/2.
        let needed = ((1.0 - level) / 2.0).ln() / p.max(1.0 - p).ln();
        return Err(Undetermined::TooFew {
            n,
            needed: needed.ceil() as usize,
        });
    };
    let x = sorted(x);
    let point = quantile_of_sorted(&x, p);
    let interval = Interval {
        point,
        low: x[low - 1].min(point),
        high: x[high - 1].max(point),
        level,
    };
    let below = |rank: usize| binomial_cdf(rank as u64 - 1, n as u64, p);
    Ok(Estimate {
        interval,
        n,
        coverage: below(high) - below(low),
    })
}
