//! Where the spread comes from: between trials, or inside of them.
//!
//! What: the two-level random-effects analysis of Kalibera & Jones 2013, with the
//! corrected T₂² = S₂² − S₁²/r₁: S₁² within trials, S₂² between trial means, and the
//! number of iterations per trial √(c₂T₁²/(c₁T₂²)) that gives the narrowest interval
//! for a given time.
//!
//! Why: repeating iterations is cheap and useless when the spread is between starts.
//!
//! What it cannot see: warm-up, which must be cut before, and trials of unequal length.

use crate::interval::{Undetermined, check, mean};
use crate::mean::variance;
use crate::special::t_quantile;

/// Spread within and between trials.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VarianceComponents {
    /// Trials.
    pub n_trials: usize,
    /// S₁², which is also T₁²: variance of iterations within a trial.
    pub within: f64,
    /// S₂²: variance of the trial means.
    pub between_means: f64,
    /// T₂²: variance added by starting anew; not positive when there is none to see.
    pub between: f64,
}

/// Splits the variance of trials with equally many iterations each.
///
/// Needs at least two trials and two iterations. No spread at all gives zeros.
pub fn variance_components(trials: &[Vec<f64>]) -> Result<VarianceComponents, Undetermined> {
    let rows: Vec<&[f64]> = trials.iter().map(Vec::as_slice).collect();
    check(&rows, 0.5)?;
    let iterations = trials.first().map_or(0, Vec::len);
    if trials.len() < 2 || iterations < 2 {
        return Err(Undetermined::TooFew {
            n: trials.len().min(iterations),
            needed: 2,
        });
    }
    if trials.iter().any(|trial| trial.len() != iterations) {
        return Err(Undetermined::OutOfDomain {
            must: "all trials must have equally many iterations",
        });
    }
    let means: Vec<f64> = trials.iter().map(|trial| mean(trial)).collect();
    let within = trials.iter().map(|trial| variance(trial)).sum::<f64>() / trials.len() as f64;
    let between_means = variance(&means);
    let between = between_means - within / iterations as f64;
    Ok(VarianceComponents {
        n_trials: trials.len(),
        within,
        between_means,
        between,
    })
}

impl VarianceComponents {
    /// √(c₂T₁²/(c₁T₂²)) for the costs of a restart and of an iteration. `None` when
    /// starts add no visible variance, or a cost is not positive.
    pub fn best_iterations(&self, restart_cost: f64, iteration_cost: f64) -> Option<f64> {
        let usable = self.between > 0.0 && restart_cost > 0.0 && iteration_cost > 0.0;
        usable.then(|| (restart_cost / iteration_cost * self.within / self.between).sqrt())
    }

    /// [`best_iterations`](Self::best_iterations) rounded up, at least 1 and at most
    /// `cap`, and `cap` where that is `None`.
    pub fn planned_iterations(&self, restart_cost: f64, iteration_cost: f64, cap: usize) -> usize {
        let best = self.best_iterations(restart_cost, iteration_cost);
        best.map_or(cap, |best| (best.ceil() as usize).clamp(1, cap.max(1)))
    }

    /// Half-width of the t interval for the grand mean: t_{r₂−1}·√(S₂²/r₂).
    pub fn half_width(&self, level: f64) -> f64 {
        let t = t_quantile(f64::midpoint(1.0, level), (self.n_trials - 1) as f64);
        t * (self.between_means / self.n_trials as f64).sqrt()
    }
}
