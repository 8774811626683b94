//! One effect with its two intervals, widened where blocks depend on each other.
//!
//! Hodges–Lehmann with the exact signed-rank interval (`tare_stats::hodges_lehmann_paired`) at 95 % and
//! 90 %. If Ljung–Box finds dependence between blocks (p < 0.01), both are stretched by √max(1, τ), τ by
//! the initial monotone sequence. The stopping rule and the report share this file, so that a run does not
//! stop on an interval that the report then widens.
//! What it cannot see: dependence in fewer than ten blocks, where one lag is all that is looked at.

use tare_stats::diagnostics::{FLAG_P, default_lags, integrated_time, ljung_box, widening};
use tare_stats::{Interval, Undetermined, hodges_lehmann_paired};

/// Dependence between blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dependence {
    /// Of Ljung–Box.
    pub(crate) p: f64,
    /// Integrated autocorrelation time.
    pub(crate) tau: f64,
}

/// An effect on the scale of the values given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    /// At 95 %.
    pub(crate) ci95: Interval,
    /// At 90 %.
    pub(crate) ci90: Interval,
    /// Why the intervals are wider than the exact ones, if they are.
    pub(crate) dependence: Option<Dependence>,
}

/// The effect of values in block order; fails below six of them.
pub(crate) fn effect(d: &[f64]) -> Result<Effect, Undetermined> {
    let dependence = dependence(d);
    let factor = dependence.map_or(1.0, |found| widening(found.tau));
    Ok(Effect {
        ci95: hodges_lehmann_paired(d, super::LEVEL)?
            .interval
            .widened(factor),
        ci90: hodges_lehmann_paired(d, 0.90)?.interval.widened(factor),
        dependence,
    })
}

/// The 95 % interval alone, under the same rule.
pub(crate) fn interval(d: &[f64]) -> Result<Interval, Undetermined> {
    let factor = dependence(d).map_or(1.0, |found| widening(found.tau));
    Ok(hodges_lehmann_paired(d, super::LEVEL)?
        .interval
        .widened(factor))
}

fn dependence(d: &[f64]) -> Option<Dependence> {
    let found = ljung_box(d, default_lags(d.len()))?;
    if found.p >= FLAG_P {
        return None;
    }
    Some(Dependence {
        p: found.p,
        tau: integrated_time(d)?,
    })
}
