//! Estimates one effect with its intervals, p and verdict, widened where blocks depend on each other.
//!
//! Hodges–Lehmann with the signed-rank interval of blocks, each of one difference or two
//! (`tare_stats::clustered_at`), at 95 % and 90 %. Both are stretched by one factor: √max(1, τ) where Ljung–Box finds
//! dependence between neighbours (p < 0.01), or the factor of `tare_stats::diagnostics::launches` where blocks of one
//! launch resemble each other, whichever is larger. p is that of the stretched interval. A drift of the effect
//! removes the claim that it is within the margin. The stopping rule, the report and its leave-one-out share this
//! file, so that all judge by the interval that is printed.
//! Limits: below ten blocks only one lag is tested for dependence; variation between launches is invisible with a
//! single launch.

use tare_stats::diagnostics::{
    self as checks, FLAG_P, Launches, MannKendall, default_lags, integrated_time, ljung_box,
    widening,
};
use tare_stats::{
    Differences, Interval, Undetermined, Verdict, clustered, clustered_at, clustered_p,
    clustered_tails, verdict,
};

/// Dependence between blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Dependence {
    /// p of Ljung–Box.
    pub(crate) p: f64,
    /// Integrated autocorrelation time.
    pub(crate) tau: f64,
}

/// Why and by how much intervals are wider than the exact ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Widening {
    pub(crate) dependence: Option<Dependence>,
    pub(crate) launches: Option<Launches>,
    /// At least 1.
    pub(crate) factor: f64,
}

impl Widening {
    /// From one value per block.
    fn from_blocks(d: &[f64], launches: &[u32]) -> Self {
        let dependence = dependence(d);
        let launches = checks::launches(d, launches).filter(|found| found.factor > 1.0);
        let neighbours = dependence.map_or(1.0, |found| widening(found.tau));
        let starts = launches.map_or(1.0, |found| found.factor);
        Self {
            dependence,
            launches,
            factor: f64::max(neighbours, starts),
        }
    }
}

/// An effect on the scale of the values given.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Effect {
    /// At 95 %, before stretching.
    pub(crate) exact: Interval,
    /// At 95 %.
    pub(crate) ci95: Interval,
    /// At 90 %.
    pub(crate) ci90: Interval,
    /// p of no effect; at most 0.05 exactly if the 95 % interval excludes 0.
    pub(crate) p: Option<f64>,
    pub(crate) widening: Widening,
    /// A trend of the effect over the blocks, if any.
    pub(crate) drift: Option<MannKendall>,
}

impl Effect {
    /// Returns the verdict at a margin; an effect that drifts is never within it.
    pub(crate) fn verdict(&self, margin: f64) -> Verdict {
        let verdict = verdict(&self.ci95, &self.ci90, margin);
        if self.drift.is_some() {
            not_within(verdict)
        } else {
            verdict
        }
    }
}

/// Removes from a verdict the claim that the effect is within the margin.
pub(crate) fn not_within(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Equivalent => Verdict::Inconclusive,
        Verdict::NegligibleCost => Verdict::Cost,
        Verdict::NegligibleGain => Verdict::Gain,
        other => other,
    }
}

/// Returns the mean of each block's differences, in block order, for statistics of one number per block.
pub(crate) fn means(blocks: &[Differences]) -> Vec<f64> {
    blocks.iter().map(|block| block.mean()).collect()
}

/// Estimates the effect from blocks in order and the launch of each; fails below six blocks.
pub(crate) fn effect(blocks: &[Differences], launches: &[u32]) -> Result<Effect, Undetermined> {
    let d = means(blocks);
    let widening = Widening::from_blocks(&d, launches);
    let [exact, at90] = clustered_at(blocks, [super::LEVEL, 0.90])?.map(|found| found.interval);
    let ci95 = exact.widened(widening.factor);
    // The stretched interval excludes 0 exactly where the exact one excludes this.
    let limit = ci95.point * (1.0 - 1.0 / widening.factor);
    let shifted: Vec<Differences> = blocks
        .iter()
        .map(|block| block.map(|value| value - limit))
        .collect();
    // The test of two differences per block may disagree slightly with its interval; the interval is what is printed.
    let least = 1.0 - super::LEVEL;
    let p = clustered_p(&shifted).map(|p| {
        if ci95.contains(0.0) {
            p.max(least.next_up())
        } else {
            p.min(least)
        }
    });
    Ok(Effect {
        exact,
        ci95,
        ci90: at90.widened(widening.factor),
        p,
        widening,
        drift: checks::mann_kendall(&d).filter(|trend| trend.p < FLAG_P),
    })
}

/// The 95 % interval alone, under the same rule.
pub(crate) fn interval(blocks: &[Differences], launches: &[u32]) -> Result<Interval, Undetermined> {
    interval_at(blocks, launches, super::LEVEL)
}

/// The same at another level.
pub(crate) fn interval_at(
    blocks: &[Differences],
    launches: &[u32],
    level: f64,
) -> Result<Interval, Undetermined> {
    let factor = Widening::from_blocks(&means(blocks), launches).factor;
    Ok(clustered(blocks, level)?.interval.widened(factor))
}

/// One-sided p of "the centre is at most 0", under the same rule; `None` below six blocks.
pub(crate) fn p_greater(blocks: &[Differences], launches: &[u32]) -> Option<f64> {
    let factor = Widening::from_blocks(&means(blocks), launches).factor;
    let point = clustered(blocks, super::LEVEL).ok()?.interval.point;
    let [greater, _] = clustered_tails(blocks, point * (1.0 - 1.0 / factor))?;
    Some(greater)
}

/// The same for one value per block.
pub(crate) fn interval_of_values(
    values: &[f64],
    launches: &[u32],
) -> Result<Interval, Undetermined> {
    let blocks: Vec<Differences> = values.iter().copied().map(Differences::one).collect();
    interval(&blocks, launches)
}

/// Formats an interval of logarithms as that of the ratio.
pub(super) fn as_ratio(interval: &Interval) -> String {
    let ratio = interval.exp();
    format!("{:.4} [{:.4}, {:.4}]", ratio.point, ratio.low, ratio.high)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_is_that_of_the_widened_interval() {
        // Each launch has a different level: fifteen blocks, but three starts.
        let launches: Vec<u32> = (0..15).map(|block| block / 5).collect();
        for shift in 0..40 {
            let level = f64::from(shift) * 0.01;
            let d: Vec<f64> = (0..15)
                .map(|block| {
                    let start = [0.02, 0.10, 0.05][block / 5];
                    level - 0.1 + start + ((block * 7 % 5) as f64) * 0.002
                })
                .collect();
            let blocks: Vec<_> = d.iter().copied().map(Differences::one).collect();
            let found = effect(&blocks, &launches).unwrap();
            assert!(found.widening.factor > 2.0, "{found:?}");
            let leaves_out_zero = !found.ci95.contains(0.0);
            assert_eq!(found.p.unwrap() <= 0.05, leaves_out_zero, "{found:?}");
            let naive = clustered_p(&blocks).unwrap();
            assert!(found.p.unwrap() >= naive - 1e-12);
        }
    }
}
