//! Distribution functions, one wrapper each, so that each can be checked.
//!
//! Special functions are where numerical libraries regress, so each one that the crate relies on is wrapped here and
//! compared with SciPy and 40-digit mpmath in `tests/reference.rs`. Outside the domain they return `NaN`; public
//! callers must check their arguments first.
//!
//! Limits: double precision. Below about 1e-300 a probability is zero.

use statrs::distribution::{Continuous, ContinuousCDF, StudentsT};
use statrs::function::{beta, erf, gamma};
use std::f64::consts::{SQRT_2, TAU};

/// Returns the density of the standard normal distribution.
pub fn normal_density(x: f64) -> f64 {
    (-x * x / 2.0).exp() / TAU.sqrt()
}

/// Returns P(Z ≤ x) for a standard normal Z, by `erfc` so that the lower tail keeps its relative precision.
pub fn normal_cdf(x: f64) -> f64 {
    erf::erfc(-x / SQRT_2) / 2.0
}

/// Returns the standard normal quantile; infinite at 0 and 1, `NaN` outside.
pub fn normal_quantile(p: f64) -> f64 {
    if (0.0..=1.0).contains(&p) {
        -SQRT_2 * erf::erfc_inv(2.0 * p)
    } else {
        f64::NAN
    }
}

/// Returns P(T > t) for Student's t with `df` degrees of freedom; `NaN` unless `df > 0`.
pub fn t_upper(t: f64, df: f64) -> f64 {
    if df.is_nan() || df <= 0.0 || t.is_nan() {
        return f64::NAN;
    }
    let half = 0.5 * beta_regularized(df / 2.0, 0.5, df / (df + t * t));
    if t >= 0.0 { half } else { 1.0 - half }
}

/// Returns the quantile of Student's t; `NaN` unless `df > 0` and `p` in (0, 1).
///
/// `statrs` stops its search at about 4e-10 for some arguments (p = 0.8, df = 999), so two Newton steps on
/// [`t_upper`] follow.
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let Ok(t) = StudentsT::new(0.0, 1.0, df) else {
        return f64::NAN;
    };
    if !(p > 0.0 && p < 1.0) {
        return f64::NAN;
    }
    let tail = p.min(1.0 - p);
    let mut x = t.inverse_cdf(1.0 - tail);
    for _ in 0..2 {
        let step = (t_upper(x, df) - tail) / t.pdf(x);
        if step.is_finite() {
            x += step;
        }
    }
    if p < 0.5 { -x } else { x }
}

/// Returns P(X > x) for χ² with `df` degrees of freedom; 1 for `x ≤ 0`.
pub fn chi_squared_upper(x: f64, df: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    gamma::checked_gamma_ur(df / 2.0, x / 2.0).unwrap_or(f64::NAN)
}

/// Returns the regularised incomplete beta function I_x(a, b) for `a, b > 0`.
pub fn beta_regularized(a: f64, b: f64, x: f64) -> f64 {
    beta::checked_beta_reg(a, b, x).unwrap_or(f64::NAN)
}

/// Returns P(X ≤ k) for X binomial with `n` draws of probability `p`.
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if k >= n || p == 0.0 {
        return 1.0;
    }
    if p >= 1.0 {
        return 0.0;
    }
    beta_regularized((n - k) as f64, k as f64 + 1.0, 1.0 - p)
}
