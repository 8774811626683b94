//! The Mann–Whitney test for two independent samples.
//!
//! U counts the pairs with b_j > a_i. If both samples come from the same distribution, every interleaving is equally
//! likely, so the null distribution is known exactly. Source: Mann & Whitney 1947; recursion on whether the largest
//! value belongs to the first or the second sample.
//!
//! For data that cannot be paired (other days, published raw runs). As with signed ranks, p counts differences ≤ 0
//! and ≥ 0, so it is dual to the interval. Large samples use the series of `lattice.rs`.
//!
//! Limits: drift between the samples looks like a difference. Identical code run as AAAA…BBBB raised an alarm in
//! about one of six comparisons, so every number from here must be marked "not blocked".

use crate::interval::{all_finite, sorted};
use crate::lattice::{UNIFORM_CUMULANTS, lattice_cdf};
use crate::selection::{differences_at_most, differences_below};

/// Above this many pairs the series is used, if both samples are large enough for it.
const EXACT_PAIRS: usize = 2_500;
/// The minimum size of the smaller sample for the series.
const SERIES_NEEDS: usize = 16;

/// The distribution of U for samples of `n` and `m` values from one distribution.
#[derive(Debug, Clone)]
pub struct MannWhitney {
    n: usize,
    m: usize,
    /// P(U ≤ u) for all u; empty when the series is used.
    cumulative: Vec<f64>,
}

impl MannWhitney {
    /// Computes the distribution for sample sizes `n` and `m`; a point mass at zero if either is empty.
    pub fn new(n: usize, m: usize) -> Self {
        let series = n * m > EXACT_PAIRS && n.min(m) >= SERIES_NEEDS;
        let cumulative = if series {
            Vec::new()
        } else {
            exact(n.min(m), n.max(m))
        };
        Self { n, m, cumulative }
    }

    /// Returns the largest value of U: the number of pairs.
    pub fn largest(&self) -> usize {
        self.n * self.m
    }

    /// Returns P(U ≤ u). The series differs from exact counting by less than 1e-7.
    pub fn cdf(&self, u: usize) -> f64 {
        if u >= self.largest() {
            return 1.0;
        }
        if self.cumulative.is_empty() {
            let mean = self.largest() as f64 / 2.0;
            return lattice_cdf(u as f64, mean, cumulants(self.n, self.m));
        }
        self.cumulative[u]
    }
}

/// Returns the two-sided exact p-value of "a and b come from one distribution".
///
/// Ties between the samples count against both sides, so they can only make p larger. `None` if a sample is empty or
/// holds a value that is not finite.
pub fn mann_whitney_p(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() || !all_finite(a) || !all_finite(b) {
        return None;
    }
    let (a, b) = (sorted(a), sorted(b));
    let null = MannWhitney::new(a.len(), b.len());
    let at_most = differences_at_most(&a, &b, 0.0);
    let at_least = null.largest() - differences_below(&a, &b, 0.0);
    Some((2.0 * null.cdf(at_most.min(at_least))).min(1.0))
}

/// Returns P(U ≤ u) for all u, growing the larger sample value by value.
fn exact(small: usize, large: usize) -> Vec<f64> {
    // row[a] holds P(U = u) for sizes (a, b) while b grows.
    let mut row: Vec<Vec<f64>> = vec![vec![1.0]; small + 1];
    for b in 1..=large {
        for a in 1..=small {
            let mut next = vec![0.0; a * b + 1];
            let share = a as f64 / (a + b) as f64;
            // The largest of all belongs to the first sample: it beats b values.
            for (u, p) in row[a - 1].iter().enumerate() {
                next[u + b] += p * share;
            }
            for (u, p) in row[a].iter().enumerate() {
                next[u] += p * (1.0 - share);
            }
            row[a] = next;
        }
    }
    let mut pmf = row
        .pop()
        .expect("there is a row for every size up to `small`");
    let mut sum = 0.0;
    for value in &mut pmf {
        sum += *value;
        *value = sum;
    }
    pmf
}

/// Returns the even cumulants of U from its generating function Π (1 − q^{n+j}) / (1 − q^j).
fn cumulants(n: usize, m: usize) -> [f64; 4] {
    let (small, large) = (n.min(m), n.max(m));
    let mut kappa = [0.0; 4];
    for j in 1..=small {
        let (above, below) = (((large + j) as f64).powi(2), (j as f64).powi(2));
        let (mut high, mut low) = (1.0, 1.0);
        for value in &mut kappa {
            high *= above;
            low *= below;
            *value += high - low;
        }
    }
    for (value, uniform) in kappa.iter_mut().zip(UNIFORM_CUMULANTS) {
        *value *= uniform;
    }
    kappa
}

#[cfg(test)]
mod tests {
    use super::{cumulants, exact};
    use crate::lattice::lattice_cdf;

    #[test]
    fn the_series_joins_the_exact_distribution() {
        for (n, m) in [(16, 160), (51, 51), (30, 90)] {
            let mean = (n * m) as f64 / 2.0;
            let mut worst = 0.0_f64;
            for (u, p) in exact(n, m).iter().enumerate() {
                worst = worst.max((p - lattice_cdf(u as f64, mean, cumulants(n, m))).abs());
            }
            assert!(worst < 1e-7, "{n} and {m}: {worst:e}");
        }
    }
}
