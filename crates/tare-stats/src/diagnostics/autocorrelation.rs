//! Autocorrelation of blocks and how much it widens an interval.
//!
//! Sample autocorrelations r_k = Σ c_i c_{i+k} / Σ c_i², the portmanteau Q of Ljung & Box 1978, and the integrated
//! autocorrelation time τ by Geyer's 1992 initial monotone sequence: sums of neighbouring pairs r_{2k} + r_{2k+1},
//! cut at the first that is not positive, each at most its predecessor; τ = 2 Σ − 1.
//!
//! n dependent blocks hold as much information as n/τ independent ones. If dependence is significant, the interval is
//! stretched by √τ.
//!
//! Limits: short series. With ten blocks even r₁ = 0.5 is compatible with independence.

use crate::interval::{all_finite, mean, ties};
use crate::special::chi_squared_upper;

/// Values minus their mean, and the sum of their squares.
struct Centred {
    c: Vec<f64>,
    total: f64,
}

impl Centred {
    /// Returns `None` for fewer than two values, and for values that are all equal or not finite.
    fn new(x: &[f64]) -> Option<Self> {
        if !all_finite(x) || ties(x).count() < 2 {
            return None;
        }
        let centre = mean(x);
        let c: Vec<f64> = x.iter().map(|value| value - centre).collect();
        let total = c.iter().map(|value| value * value).sum();
        Some(Self { c, total })
    }

    /// Returns r at a lag below the number of values.
    fn r(&self, lag: usize) -> f64 {
        let products = self.c.iter().zip(&self.c[lag..]).map(|(a, b)| a * b);
        products.sum::<f64>() / self.total
    }
}

/// Returns r_0 … r_`max_lag`. `None` for fewer than two values, values that are all equal or not finite, or a lag of
/// n or more.
pub fn autocorrelation(x: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    let centred = Centred::new(x).filter(|_| max_lag < x.len())?;
    Some((0..=max_lag).map(|lag| centred.r(lag)).collect())
}

/// The Ljung–Box statistic.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LjungBox {
    /// n(n+2) Σ r_k²/(n−k).
    pub q: f64,
    /// P(χ²_lags > q): small means dependence.
    pub p: f64,
    /// The number of lags used.
    pub lags: usize,
}

/// Returns the default number of lags: min(10, n/5).
pub fn default_lags(n: usize) -> usize {
    (n / 5).min(10)
}

/// Computes Ljung–Box over `lags` lags. `None` if `lags` is 0, or as [`autocorrelation`].
pub fn ljung_box(x: &[f64], lags: usize) -> Option<LjungBox> {
    if lags == 0 {
        return None;
    }
    let r = autocorrelation(x, lags)?;
    let n = x.len() as f64;
    let sum: f64 = (1..=lags).map(|k| r[k] * r[k] / (n - k as f64)).sum();
    let q = n * (n + 2.0) * sum;
    Some(LjungBox {
        q,
        p: chi_squared_upper(q, lags as f64),
        lags,
    })
}

/// Returns τ by the initial monotone sequence: 1 for independent values, below 1 if neighbours alternate. `None` as
/// [`autocorrelation`]. O(n) per lag until the sequence is cut, so O(n²) in the worst case.
pub fn integrated_time(x: &[f64]) -> Option<f64> {
    let centred = Centred::new(x)?;
    let mut sum = 0.0;
    let mut previous = f64::INFINITY;
    for lag in (0..x.len() - 1).step_by(2) {
        let gain = centred.r(lag) + centred.r(lag + 1);
        if gain <= 0.0 {
            break;
        }
        previous = gain.min(previous);
        sum += previous;
    }
    Some(if sum > 0.0 { 2.0 * sum - 1.0 } else { 1.0 })
}

/// Returns the factor by which to stretch an interval: √max(1, τ).
pub fn widening(tau: f64) -> f64 {
    tau.max(1.0).sqrt()
}

/// Returns the number of independent values that `n` dependent ones are worth: n / max(1, τ).
pub fn effective_size(n: usize, tau: f64) -> f64 {
    n as f64 / tau.max(1.0)
}
