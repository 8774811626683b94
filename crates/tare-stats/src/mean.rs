//! The mean of log-ratios with Student's t interval: the geometric-mean ratio.
//!
//! d̄ ± t_{n−1}·s/√n; `exp` of it is the ratio of geometric means. Student 1908.
//!
//! The interval most readers know. Next to the rank interval it is a symptom: if the two differ by more than half an
//! interval, there are heavy tails or two modes.
//!
//! Limits: with rare spikes in one arm its nominal 95 % covered 45 % in simulation, so it never decides a verdict.

use crate::interval::{Estimate, Interval, Undetermined, check, enough, mean};
use crate::special::t_quantile;

/// Returns the mean of `d` with the t interval, on the scale of `d`; [`Interval::exp`] makes it a ratio. Exact for
/// independent normal d. Needs n ≥ 2; if all values are equal, the width is zero.
pub fn mean_paired(d: &[f64], level: f64) -> Result<Estimate, Undetermined> {
    check(&[d], level)?;
    enough(d.len(), 2)?;
    let reach = t_quantile(f64::midpoint(1.0, level), (d.len() - 1) as f64) * standard_error(d);
    let point = mean(d);
    let interval = Interval {
        point,
        low: point - reach,
        high: point + reach,
        level,
    };
    Ok(Estimate {
        interval,
        n: d.len(),
        coverage: level,
    })
}

/// Returns the sample variance with divisor n − 1, in two passes. `NaN` below two values.
pub(crate) fn variance(values: &[f64]) -> f64 {
    covariance(values, values)
}

/// Returns the sample covariance with divisor n − 1 of two samples of equal length.
pub(crate) fn covariance(a: &[f64], b: &[f64]) -> f64 {
    let (centre_a, centre_b) = (mean(a), mean(b));
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(x, y)| (x - centre_a) * (y - centre_b))
        .sum();
    sum / (a.len() as f64 - 1.0)
}

fn standard_error(d: &[f64]) -> f64 {
    (variance(d) / d.len() as f64).sqrt()
}
