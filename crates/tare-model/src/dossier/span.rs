//! Conversions of an estimate with its interval.

use super::Span;

impl Span {
    /// Applies `of` to the estimate and both ends.
    #[must_use]
    pub fn map(self, of: impl Fn(f64) -> f64) -> Self {
        Self {
            point: of(self.point),
            low: of(self.low),
            high: of(self.high),
            level: self.level,
        }
    }
}
