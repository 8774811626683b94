//! Statistical power: the detectable effect, and the blocks needed for a given precision.
//!
//! The effect that a study of n blocks finds with probability 80 % at the 5 % level, (t_.975 + t_.80)·s/√n with n − 1
//! degrees of freedom. The number of blocks for a given half-width follows from the rule that half the width needs
//! four times the blocks.
//!
//! Without this, an inconclusive cell reads as "no difference".
//!
//! Limits: ignores tails and dependence. On heavy-tailed noise ranks do better than promised; with dependence between
//! blocks everything does worse.

use tare_model::whole_place;

use crate::interval::Interval;
use crate::special::t_quantile;

/// Returns the relative effect that had an 80 % chance of detection, from the interval achieved: exp( (U−L)/2 ·
/// (t_.975 + t_.80)/t_.975 ) − 1 with n − 1 degrees of freedom.
///
/// `ci95` is on the ln scale. `None` for n < 2 or bounds that are not finite.
pub fn detectable_effect(ci95: &Interval, n: usize) -> Option<f64> {
    let half = ci95.half_width();
    if n < 2 || !half.is_finite() || half < 0.0 {
        return None;
    }
    let df = (n - 1) as f64;
    let t = t_quantile(0.975, df);
    Some((half * (t + t_quantile(0.8, df)) / t).exp_m1())
}

/// Returns the blocks for a half-width of `target` when `n` gave `half_width`: ⌈n·(w/h)²⌉, and at least n if the
/// target is not met. `None` unless both widths are finite, the target positive and n ≥ 1.
pub fn blocks_needed(n: usize, half_width: f64, target: f64) -> Option<usize> {
    let usable = half_width.is_finite() && half_width >= 0.0 && target.is_finite() && target > 0.0;
    if n == 0 || !usable {
        return None;
    }
    let needed = (n as f64 * (half_width / target).powi(2)).ceil();
    Some(whole_place(needed))
}

/// How many more blocks an interval needs; infinite if unknown.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Needed {
    /// Blocks until the interval is as narrow as requested; 0 if it already is.
    pub enough: f64,
    /// Blocks until the interval is so narrow that more are not worth the time.
    pub most: f64,
}

impl Needed {
    /// The need is unknown.
    pub const UNKNOWN: Self = Self {
        enough: f64::INFINITY,
        most: f64::INFINITY,
    };
    /// No more blocks are needed.
    pub const NOTHING: Self = Self {
        enough: 0.0,
        most: 0.0,
    };

    /// Computes the need from the half-width after `n` blocks and the half-widths of both targets.
    pub fn from_half_width(n: usize, half_width: f64, wanted: f64, finest: f64) -> Self {
        let until = |target| {
            further_blocks(n, half_width, target).map_or(f64::INFINITY, |more| more as f64)
        };
        Self {
            enough: until(wanted),
            most: until(finest),
        }
    }

    /// Returns the larger need of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            enough: f64::max(self.enough, other.enough),
            most: f64::max(self.most, other.most),
        }
    }
}

/// Returns how many blocks [`blocks_needed`] asks for beyond the existing `n`; 0 if the target is met.
pub fn further_blocks(n: usize, half_width: f64, target: f64) -> Option<usize> {
    blocks_needed(n, half_width, target).map(|needed| needed.saturating_sub(n))
}
