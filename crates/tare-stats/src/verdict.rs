//! From two intervals and a margin to one of eight words.
//!
//! What: with M = ln(1 + margin), a 95 % interval [L, U] decides whether there is a
//! difference, and a 90 % interval inside (−M, M) decides equivalence (two one-sided
//! tests at 5 % each; Schuirmann 1987, Westlake 1976).
//!
//! Why eight words: "no significant difference" is not "no cost". A cost can be real
//! and negligible, or real and of unknown size; only the narrow 90 % interval earns
//! the word *equivalent*, and what remains is *inconclusive* and owes the reader its
//! detectable effect.
//!
//! What it cannot see: whether the intervals are believable. Drift, order effects and
//! fragile blocks are for the diagnostics to say.

use crate::hodges_lehmann::hodges_lehmann_paired;
use crate::interval::{Interval, Undetermined};
use std::fmt;

/// What a cell shows, costs first. `ratio > 1` means that the environment costs more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verdict {
    /// The whole interval lies beyond the margin.
    MaterialCost,
    /// A cost whose size relative to the margin is not resolved.
    Cost,
    /// A real cost that lies within the margin.
    NegligibleCost,
    /// No difference shown and none beyond the margin possible.
    Equivalent,
    /// Neither a difference nor equivalence can be shown.
    Inconclusive,
    /// A real gain that lies within the margin.
    NegligibleGain,
    /// A gain whose size relative to the margin is not resolved.
    Gain,
    /// The whole interval lies beyond the margin, on the side of gains.
    MaterialGain,
}

impl Verdict {
    /// All eight, costs first.
    pub const ALL: [Self; 8] = [
        Self::MaterialCost,
        Self::Cost,
        Self::NegligibleCost,
        Self::Equivalent,
        Self::Inconclusive,
        Self::NegligibleGain,
        Self::Gain,
        Self::MaterialGain,
    ];

    /// The name used in stored results. It never changes.
    pub fn name(self) -> &'static str {
        match self {
            Self::MaterialCost => "material-cost",
            Self::Cost => "cost",
            Self::NegligibleCost => "negligible-cost",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
            Self::NegligibleGain => "negligible-gain",
            Self::Gain => "gain",
            Self::MaterialGain => "material-gain",
        }
    }

    /// The verdict with this [`name`](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == name)
    }

    /// What it would be if baseline and environment changed places.
    #[must_use]
    pub fn mirrored(self) -> Self {
        match self {
            Self::MaterialCost => Self::MaterialGain,
            Self::Cost => Self::Gain,
            Self::NegligibleCost => Self::NegligibleGain,
            Self::Equivalent => Self::Equivalent,
            Self::Inconclusive => Self::Inconclusive,
            Self::NegligibleGain => Self::NegligibleCost,
            Self::Gain => Self::Cost,
            Self::MaterialGain => Self::MaterialCost,
        }
    }

    /// Does it claim a difference, of whatever size? This is what an A/A run counts.
    pub fn is_difference(self) -> bool {
        !matches!(self, Self::Equivalent | Self::Inconclusive)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The verdict of a 95 % and a 90 % interval on the ln scale and a relative margin
/// such as 0.02. The first condition that holds decides.
///
/// All comparisons are strict: a bound on the margin, or on zero, proves nothing. A
/// margin that is negative, infinite or `NaN`, or a bound that is `NaN`, is
/// inconclusive.
pub fn verdict(ci95: &Interval, ci90: &Interval, margin: f64) -> Verdict {
    let limit = margin.ln_1p();
    let bounds = [ci95.low, ci95.high, ci90.low, ci90.high];
    if margin < 0.0 || !limit.is_finite() || bounds.iter().any(|bound| bound.is_nan()) {
        return Verdict::Inconclusive;
    }
    let within = ci90.low > -limit && ci90.high < limit;
    if ci95.low > limit {
        Verdict::MaterialCost
    } else if ci95.high < -limit {
        Verdict::MaterialGain
    } else if ci95.low > 0.0 {
        if within {
            Verdict::NegligibleCost
        } else {
            Verdict::Cost
        }
    } else if ci95.high < 0.0 {
        if within {
            Verdict::NegligibleGain
        } else {
            Verdict::Gain
        }
    } else if within {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    }
}

/// The verdict of paired log-ratios by the default pipeline: [`hodges_lehmann_paired`]
/// at 95 % and 90 %, then [`verdict`]. Undetermined below six blocks.
pub fn verdict_of(d: &[f64], margin: f64) -> Result<Verdict, Undetermined> {
    let ci95 = hodges_lehmann_paired(d, 0.95)?.interval;
    let ci90 = hodges_lehmann_paired(d, 0.90)?.interval;
    Ok(verdict(&ci95, &ci90, margin))
}
