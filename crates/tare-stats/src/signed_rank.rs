//! The Wilcoxon signed-rank statistic: distribution, interval ranks and p-values.
//!
//! T⁺, the sum of the ranks of |d| with d > 0, equals the number of Walsh averages (d_i + d_j)/2, i ≤ j, above zero.
//! If each d is symmetric about zero, T⁺ = Σ i·B_i with fair coins B_i, and nothing else about the data matters.
//! Source: Wilcoxon 1945; Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, ch. 3.
//!
//! The distribution is built coin by coin in probabilities (halving never overflows), only up to its middle because
//! it is symmetric. From 257 values on, counting would cost n³, and `lattice.rs` is used. The p-values count Walsh
//! averages rather than ranks, which makes them the exact dual of the interval: p ≤ α exactly when the interval at
//! level 1 − α excludes zero, ties and zeros included.
//!
//! Limits: d that is not symmetric (the estimate is then of the pseudo-median, and coverage is approximate) and
//! dependence between blocks.

use crate::interval::{all_finite, sorted};
use crate::lattice::{UNIFORM_CUMULANTS, lattice_cdf};
use crate::selection::{means_at_most, means_below};

/// Up to this many values, the distribution is counted exactly (about a millisecond at most).
pub const EXACT_UP_TO: usize = 256;

/// Lets a tail probability pass that equals α/2 except for rounding.
pub(crate) const ROUNDING: f64 = 1e-12;

/// The distribution of T⁺ for `n` symmetric values.
#[derive(Debug, Clone)]
pub struct SignedRank {
    n: usize,
    /// P(T⁺ ≤ w) for w up to the middle; empty when the series is used.
    lower: Vec<f64>,
    /// The cumulants that the series uses.
    cumulants: [f64; 4],
}

impl SignedRank {
    /// Computes the distribution for `n` values. `n = 0` is a point mass at zero.
    pub fn new(n: usize) -> Self {
        let (lower, cumulants) = if n <= EXACT_UP_TO {
            (lower_half(n), [0.0; 4])
        } else {
            (Vec::new(), coin_cumulants(1..=n))
        };
        Self {
            n,
            lower,
            cumulants,
        }
    }

    /// Returns the largest value of T⁺, which is the number of Walsh averages: n(n+1)/2.
    pub fn largest(&self) -> usize {
        self.n * (self.n + 1) / 2
    }

    /// Returns P(T⁺ ≤ w). Exact to rounding for n ≤ [`EXACT_UP_TO`]; above, the error is below 1e-10 within five
    /// standard deviations and below 1e-8 beyond.
    pub fn cdf(&self, w: usize) -> f64 {
        if w >= self.largest() {
            return 1.0;
        }
        if self.lower.is_empty() {
            return lattice_cdf(w as f64, self.largest() as f64 / 2.0, self.cumulants);
        }
        match self.lower.get(w) {
            Some(&p) => p,
            None => 1.0 - self.lower[self.largest() - w - 1],
        }
    }

    /// Returns the largest k ≥ 1 with P(T⁺ ≤ k − 1) ≤ α/2, and the coverage 1 − 2 P(T⁺ ≤ k − 1) of the interval from
    /// the k-th smallest to the k-th largest Walsh average. `None` if even k = 1 does not reach the level, or `alpha`
    /// is not in (0, 1).
    pub fn interval_rank(&self, alpha: f64) -> Option<(usize, f64)> {
        interval_rank(self.largest(), alpha, |t| self.cdf(t))
    }
}

/// Returns the rank and coverage of an interval for a statistic from 0 to `largest` that is symmetric and has this
/// `cdf`.
pub(crate) fn interval_rank(
    largest: usize,
    alpha: f64,
    cdf: impl Fn(usize) -> f64,
) -> Option<(usize, f64)> {
    if !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    let tail = alpha / 2.0 * (1.0 + ROUNDING);
    let (mut low, mut high) = (0, largest / 2 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if cdf(middle) <= tail {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    (low > 0).then(|| (low, 1.0 - 2.0 * cdf(low - 1)))
}

/// Returns the minimum number of values for which an interval at `1 - alpha` exists.
pub fn fewest_blocks(alpha: f64) -> usize {
    let mut n = 1;
    let mut best_tail = 0.5;
    while best_tail > alpha / 2.0 * (1.0 + ROUNDING) && n < 1_100 {
        n += 1;
        best_tail /= 2.0;
    }
    n
}

/// Returns the two-sided exact p-value of "d is symmetric about zero".
///
/// Twice P(T⁺ ≤ w), w the smaller of the numbers of Walsh averages ≥ 0 and ≤ 0, at most one. Without zeros and ties
/// of opposite sign this is the textbook p; each of those counts against *both* sides, so ties can only make p
/// larger. `None` for no values and for values that are not finite; 1 for n = 1, at best 0.5 for n = 2.
pub fn signed_rank_p(d: &[f64]) -> Option<f64> {
    if d.is_empty() || !all_finite(d) {
        return None;
    }
    let d = sorted(d);
    let null = SignedRank::new(d.len());
    let at_most = means_at_most(&d, 0.0);
    let at_least = null.largest() - means_below(&d, 0.0);
    Some((2.0 * null.cdf(at_most.min(at_least))).min(1.0))
}

/// Returns P(T⁺ ≤ w) for w = 0…N/2, coin by coin.
fn lower_half(n: usize) -> Vec<f64> {
    let middle = n * (n + 1) / 4;
    let mut p = vec![0.0; middle + 1];
    p[0] = 1.0;
    let mut reached = 0;
    for rank in 1..=n {
        reached = (reached + rank).min(middle);
        // Descending, so that p[w - rank] is still the previous step's.
        for w in (rank..=reached).rev() {
            p[w] = 0.5 * p[w] + 0.5 * p[w - rank];
        }
        for value in p.iter_mut().take(rank.min(reached + 1)) {
            *value *= 0.5;
        }
    }
    let mut sum = 0.0;
    for value in &mut p {
        sum += *value;
        *value = sum;
    }
    p
}

/// Returns the even cumulants of Σ i·B_i over the given heights: a fair coin of height i has those of a uniform of
/// width 2i minus those of one of width i.
pub(crate) fn coin_cumulants(heights: impl Iterator<Item = usize>) -> [f64; 4] {
    let mut kappa = [0.0; 4];
    for i in heights {
        let square = (i as f64).powi(2);
        let mut power = 1.0;
        for value in &mut kappa {
            power *= square;
            *value += power;
        }
    }
    let mut four = 1.0;
    for (value, uniform) in kappa.iter_mut().zip(UNIFORM_CUMULANTS) {
        four *= 4.0;
        *value *= uniform * (four - 1.0);
    }
    kappa
}

#[cfg(test)]
mod tests {
    use tare_model::whole_place;

    use super::{SignedRank, coin_cumulants, lower_half};
    use crate::lattice::lattice_cdf;

    #[test]
    fn the_series_joins_the_exact_distribution() {
        for n in [257, 300] {
            let exact = lower_half(n);
            let mean = (n * (n + 1)) as f64 / 4.0;
            let near = mean - 5.0 * coin_cumulants(1..=n)[0].sqrt();
            let (mut worst, mut worst_near) = (0.0_f64, 0.0_f64);
            for (w, p) in exact.iter().enumerate() {
                let off = (p - lattice_cdf(w as f64, mean, coin_cumulants(1..=n))).abs();
                worst = worst.max(off);
                if w as f64 > near {
                    worst_near = worst_near.max(off);
                }
            }
            assert!(worst < 1e-8, "n = {n}: {worst:e}");
            assert!(worst_near < 1e-10, "n = {n}: {worst_near:e}");
        }
    }

    #[test]
    fn the_far_tail_of_the_series_is_never_too_small() {
        let n = 257;
        let exact = lower_half(n);
        let series = SignedRank::new(n);
        let sd = coin_cumulants(1..=n)[0].sqrt();
        let mean = (n * (n + 1)) as f64 / 4.0;
        for deviations in [5.5, 6.0, 8.0, 10.0] {
            let w = whole_place(mean - deviations * sd);
            assert!(series.cdf(w) >= exact[w], "{deviations} sd");
        }
    }
}
