//! Estimates and intervals: a point, two bounds, and their level.
//!
//! Reports and decisions need the same four numbers, whatever the method. If a method does not apply it returns
//! [`Undetermined`], never a `NaN` in a field.
//!
//! Limits: the scale is not recorded. An interval on the ln scale becomes a ratio only by [`Interval::exp`].

use std::fmt;

/// A point with a lower and an upper bound at a nominal level such as 0.95.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The estimate.
    pub point: f64,
    /// The lower bound.
    pub low: f64,
    /// The upper bound.
    pub high: f64,
    /// The nominal level requested, in (0, 1). The actual coverage may be higher.
    pub level: f64,
}

impl Interval {
    /// Creates an interval from a point between two bounds.
    pub const fn new(low: f64, point: f64, high: f64, level: f64) -> Self {
        Self {
            point,
            low,
            high,
            level,
        }
    }

    /// Returns half of `high - low`. For an asymmetric interval this is the mean of both sides.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` is between the bounds, inclusive. `NaN` never is.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Returns the same point with both sides stretched by `factor`.
    ///
    /// Used with [`crate::diagnostics::widening`] if blocks are autocorrelated. A factor below one, or `NaN`, changes
    /// nothing: a diagnosis may reduce precision but never increase it.
    #[must_use]
    pub fn widened(&self, factor: f64) -> Self {
        let factor = if factor > 1.0 { factor } else { 1.0 };
        Self {
            low: self.point - factor * (self.point - self.low),
            high: self.point + factor * (self.high - self.point),
            ..*self
        }
    }

    /// Converts from the ln scale to ratios: `exp` of point and bounds.
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

/// An interval, its sample size, and its coverage under the method's null model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Point and bounds.
    pub interval: Interval,
    /// Observations used: blocks when paired, both samples together when not.
    pub n: usize,
    /// Coverage of the interval under the method's assumptions. Rank intervals come in steps, so this is at least
    /// `interval.level` and often a little more.
    pub coverage: f64,
}

/// Why a number cannot be computed. The analysis then reports "inconclusive".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undetermined {
    /// Fewer observations than the method needs at this level.
    TooFew {
        /// Observations given (of the smaller sample, if there are two).
        n: usize,
        /// The minimum number needed.
        needed: usize,
    },
    /// An observation is infinite or not a number.
    NotFinite,
    /// An argument outside the domain of the method.
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

/// Rejects levels outside (0, 1) and observations that are not finite.
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

/// Estimates at each of these levels.
pub(crate) fn at_each<const N: usize>(
    levels: [f64; N],
    estimate: impl FnMut(f64) -> Result<Estimate, Undetermined>,
) -> Result<[Estimate; N], Undetermined> {
    let found: Vec<Estimate> = levels.into_iter().map(estimate).collect::<Result<_, _>>()?;
    Ok(std::array::from_fn(|place| found[place]))
}

/// Rejects fewer than `needed` observations.
pub(crate) fn enough(n: usize, needed: usize) -> Result<(), Undetermined> {
    if n < needed {
        return Err(Undetermined::TooFew { n, needed });
    }
    Ok(())
}

/// Whether all values are finite. True for none.
pub(crate) fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

/// Returns a sorted copy. The caller ensures that no value is `NaN`.
pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// Returns the groups of equal neighbours: in sorted values, the ties.
#[allow(
    clippy::float_cmp,
    reason = "values tie when they are the same, however near others are"
)]
pub(crate) fn ties(values: &[f64]) -> impl Iterator<Item = &[f64]> {
    values.chunk_by(|a, b| a == b)
}

/// Returns the arithmetic mean; `NaN` for no values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
