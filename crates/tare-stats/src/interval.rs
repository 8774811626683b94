//! What an estimate looks like: a point, two bounds, and how sure they are.
//!
//! Why plain numbers: reports and decisions need the same four, whatever method
//! made them. Whether the method applied is told by [`Undetermined`], never by a
//! `NaN` in a field.
//!
//! What it cannot see: the scale. An interval on the ln scale becomes a ratio only
//! when the caller says [`Interval::exp`].

use std::fmt;

/// A point with a lower and an upper bound at a nominal level such as 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate itself.
    pub point: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The nominal level asked for, in (0, 1). What was attained may be higher.
    pub level: f64,
}

impl Interval {
    /// A point between two bounds.
    pub const fn new(low: f64, point: f64, high: f64, level: f64) -> Self {
        Self {
            point,
            low,
            high,
            level,
        }
    }

    /// Half of `high - low`. For an interval that is not symmetric this is the
    /// mean of the two arms.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Is `value` between the bounds, bounds included? `NaN` never is.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The same point with both arms stretched by `factor`.
    ///
    /// Used with [`crate::diagnostics::widening`] when blocks are autocorrelated.
    /// A factor below one, or `NaN`, leaves the interval as it is: a diagnosis may
    /// cost precision but never buys it.
    #[must_use]
    pub fn widened(&self, factor: f64) -> Self {
        let factor = if factor > 1.0 { factor } else { 1.0 };
        Self {
            low: self.point - factor * (self.point - self.low),
            high: self.point + factor * (self.high - self.point),
            ..*self
        }
    }

    /// From the ln scale to ratios: `exp` of point and bounds.
    #[must_use]
    pub fn exp(&self) -> Self {
        Self {
            point: self.point.exp(),
            low: self.low.exp(),
            high: self.high.exp(),
            level: self.level,
        }
    }
}

/// An interval, what it rests on, and the coverage it has under its own null model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Point and bounds.
    pub interval: Interval,
    /// Observations used: blocks when paired, both samples together when not.
    pub n: usize,
    /// Coverage of the interval under the method's assumptions. Rank intervals come
    /// in steps, so this is at least `interval.level` and often a little more.
    pub coverage: f64,
}

/// Why a number cannot be given. The analysis then says "undecided".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undetermined {
    /// Fewer observations than the method needs at this level.
    TooFew {
        /// Observations given (of the smaller sample, if there are two).
        n: usize,
        /// The least number that would do.
        needed: usize,
    },
    /// An observation is infinite or not a number.
    NotFinite,
    /// An argument outside of what the method is defined for.
    OutOfDomain {
        /// The condition that does not hold.
        must: &'static str,
    },
}

impl fmt::Display for Undetermined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooFew { n, needed } => {
                write!(
                    f,
                    "{n} observations are too few, at least {needed} are needed"
                )
            }
            Self::NotFinite => write!(f, "an observation is not a finite number"),
            Self::OutOfDomain { must } => write!(f, "not defined: {must}"),
        }
    }
}

impl std::error::Error for Undetermined {}

/// Refuses levels outside (0, 1) and observations that are not finite.
pub(crate) fn check(samples: &[&[f64]], level: f64) -> Result<(), Undetermined> {
    if !(level > 0.0 && level < 1.0) {
        return Err(Undetermined::OutOfDomain {
            must: "the level must lie between 0 and 1",
        });
    }
    if samples.iter().any(|sample| !all_finite(sample)) {
        return Err(Undetermined::NotFinite);
    }
    Ok(())
}

/// Are all values finite? True for none.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// A sorted copy. The caller has made sure that no value is `NaN`.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// The groups of equal values that stand side by side: in sorted values, the ties.
#[allow(
    clippy::float_cmp,
    reason = "values tie when they are the same, however near others are"
)]
pub(crate) fn ties(values: &[f64]) -> impl Iterator<Item = &[f64]> {
    values.chunk_by(|a, b| a == b)
}

/// The arithmetic mean; `NaN` of nothing.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
