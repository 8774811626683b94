//! Intervals that may be looked at after every block.
//!
//! What: the confidence sequence for a normal mean with unknown spread from a normal
//! mixture over the effect size with right-Haar spread, its e-value, and the
//! asymptotic sequence of Waudby-Smith and co-authors as a margin in units of the
//! standard deviation. After Wang & Ramdas, "Anytime-valid t-tests", arXiv 2310.03722,
//! and Waudby-Smith et al., arXiv 2103.06476.
//!
//! Why: for "stop when you like". The price is an interval 1.6 to 1.8 times as wide.
//!
//! What it cannot see: departures from normality. Exact only for independent normal d;
//! the asymptotic one exceeds its level when looked at below ten blocks.

use crate::interval::{Estimate, Interval, Undetermined, check, mean};

/// Mean of `d` with an interval valid at every n at once.
///
/// With K = ((n + c²)/(c²α²))^{1/n} the radius is s_n √((K − 1)/(1 − K c²/(n + c²))),
/// s_n with divisor n, and c² = `prior` (1 by default). [`Undetermined::TooFew`] while
/// the denominator is not positive, which includes n = 0 and 1.
pub fn anytime_interval(d: &[f64], level: f64, prior: f64) -> Result<Estimate, Undetermined> {
    check(&[d], level)?;
    check_prior(prior)?;
    let alpha = 1.0 - level;
    let shape = |n: usize| {
        let n = n as f64;
        let k = ((n + prior) / (prior * alpha * alpha)).powf(1.0 / n);
        (k - 1.0) / (1.0 - k * prior / (n + prior))
    };
    let usable = |n: &usize| {
        let squared = shape(*n);
        squared > 0.0 && squared.is_finite()
    };
    if d.is_empty() || !usable(&d.len()) {
        let needed = (d.len() + 1..10_000).find(usable).unwrap_or(10_000);
        return Err(Undetermined::TooFew { n: d.len(), needed });
    }
    let point = mean(d);
    let variance = d.iter().map(|value| (value - point).powi(2)).sum::<f64>() / d.len() as f64;
    let radius = (variance * shape(d.len())).sqrt();
    let interval = Interval {
        point,
        low: point - radius,
        high: point + radius,
        level,
    };
    Ok(Estimate {
        interval,
        n: d.len(),
        coverage: level,
    })
}

/// Natural logarithm of the evidence against "the mean of d is `centre`":
/// ½ ln(c²/(n + c²)) + (n/2) ln(V/(V − S²/(n + c²))), V = Σ(d − m)², S = Σ(d − m).
///
/// Above ln(1/α) at *any* time it rejects at α. 0 without values; when all values equal
/// the centre, only the first term remains.
pub fn log_evidence(d: &[f64], centre: f64, prior: f64) -> Result<f64, Undetermined> {
    check(&[d, &[centre]], 0.5)?;
    check_prior(prior)?;
    let n = d.len() as f64;
    let (mut squares, mut sum) = (0.0, 0.0);
    for value in d {
        squares += (value - centre).powi(2);
        sum += value - centre;
    }
    let gain = if squares > 0.0 {
        n / 2.0 * (squares / (squares - sum * sum / (n + prior))).ln()
    } else {
        0.0
    };
    Ok(0.5 * (prior / (n + prior)).ln() + gain)
}

/// Radius of the asymptotic confidence sequence after `n` values, in units of the
/// standard deviation (divisor n − 1), tuned to be narrowest at `planned` values:
/// √(2(nρ² + 1) ln(√(nρ² + 1)/α)/(n²ρ²)), ρ² = (−W₋₁(−α²/e) − 1)/planned.
///
/// `None` for n = 0, `planned` = 0, or alpha outside (0, 1).
pub fn asymptotic_margin(n: usize, alpha: f64, planned: usize) -> Option<f64> {
    if n == 0 || planned == 0 || !(alpha > 0.0 && alpha < 1.0) {
        return None;
    }
    // y = −W₋₁(−α²/e) solves y − ln y = 1 − 2 ln α with y > 1; Newton from above.
    let right = 1.0 - 2.0 * alpha.ln();
    let mut y = 2.0 * right;
    for _ in 0..64 {
        let next = y - (y - y.ln() - right) / (1.0 - 1.0 / y);
        if (next - y).abs() <= f64::EPSILON * y {
            break;
        }
        y = next;
    }
    let n = n as f64;
    let rho2 = (y - 1.0) / planned as f64;
    let grown = n * rho2 + 1.0;
    Some((2.0 * grown * (grown.sqrt() / alpha).ln() / (n * n * rho2)).sqrt())
}

fn check_prior(prior: f64) -> Result<(), Undetermined> {
    if prior.is_finite() && prior > 0.0 {
        return Ok(());
    }
    Err(Undetermined::OutOfDomain {
        must: "the prior weight must be positive",
    })
}
