//! The ratio of two means with Fieller's interval.
//!
//! What: the set of ratios r for which b̄ − r·ā is within t standard errors of zero
//! (Fieller 1954). With A = ā² − t²v_a, B = āb̄ − t²c, C = b̄² − t²v_b it is
//! (B ± √(B² − AC))/A, where v are variances of the means and c their covariance.
//! Unpaired it is the one-level interval of Kalibera & Jones 2013.
//!
//! Why: a bill is paid on means, not on medians or logarithms.
//!
//! What it cannot see: skew. Like every t interval it is approximate for long tails.

use crate::interval::{Interval, Undetermined, check, mean};
use crate::mean::{covariance, variance};
use crate::special::t_quantile;

/// mean(env)/mean(base) from paired trials, n − 1 degrees of freedom.
///
/// Needs n ≥ 2 pairs of equal number, and a baseline mean that is clearly above zero
/// (A > 0); a baseline of zeros is therefore refused.
pub fn fieller_paired(base: &[f64], env: &[f64], level: f64) -> Result<Interval, Undetermined> {
    if base.len() != env.len() {
        return Err(Undetermined::OutOfDomain {
            must: "paired samples must be equally long",
        });
    }
    check(&[base, env], level)?;
    let shared = if base.len() < 2 {
        0.0
    } else {
        covariance(base, env) / base.len() as f64
    };
    fieller(base, env, shared, level)
}

/// mean(env)/mean(base) from independent trials, with the degrees of freedom of the
/// smaller sample, which is the safe side. Conditions as for [`fieller_paired`].
pub fn fieller_unpaired(base: &[f64], env: &[f64], level: f64) -> Result<Interval, Undetermined> {
    check(&[base, env], level)?;
    fieller(base, env, 0.0, level)
}

fn fieller(base: &[f64], env: &[f64], shared: f64, level: f64) -> Result<Interval, Undetermined> {
    let n = base.len().min(env.len());
    if n < 2 {
        return Err(Undetermined::TooFew { n, needed: 2 });
    }
    let t_squared = t_quantile(f64::midpoint(1.0, level), (n - 1) as f64).powi(2);
    let (mean_base, mean_env) = (mean(base), mean(env));
    let a = mean_base * mean_base - t_squared * variance(base) / base.len() as f64;
    let b = mean_base * mean_env - t_squared * shared;
    let c = mean_env * mean_env - t_squared * variance(env) / env.len() as f64;
    if mean_base <= 0.0 || a <= 0.0 {
        return Err(Undetermined::OutOfDomain {
            must: "the baseline's mean must be clearly above zero",
        });
    }
    // Not negative when A > 0, but for rounding.
    let root = (b * b - a * c).max(0.0).sqrt();
    let point = mean_env / mean_base;
    // Without spread the bounds equal the point but for rounding.
    Ok(Interval {
        point,
        low: ((b - root) / a).min(point),
        high: ((b + root) / a).max(point),
        level,
    })
}
