//! The axis for overheads: a logarithmic ratio axis that always includes 1.
//!
//! All rows of a table share one axis, so they can be compared by eye. One overhead of 200× would squeeze all others:
//! values far beyond the rest are drawn at the edge with an arrow, next to their number. Positions are shares of the
//! axis length.

use tare_model::dossier::{DossierCell, Span};
use tare_model::whole_place;

use super::number::{powered, without_idle_zeros};
use super::words;

/// A logarithmic axis from 0 at the left end to 1 at the right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RatioAxis {
    ln_low: f64,
    ln_high: f64,
}

/// This share of the rows sets the reach of the axis; values more than `BEYOND` times as far out become arrows.
const MOST: f64 = 0.8;
const BEYOND: f64 = 2.5;
/// Padding at both ends, as a share of the length.
const PAD: f64 = 0.04;

impl RatioAxis {
    /// Creates an axis for these cells.
    pub(crate) fn over<'a>(cells: impl Iterator<Item = &'a DossierCell>) -> Self {
        let spans = cells.filter_map(|cell| Some((*words::ratio(cell)?, cell.margin)));
        Self::of_spans(spans)
    }

    /// Creates an axis for these ratios with their margins.
    pub(crate) fn of_spans(spans: impl Iterator<Item = (Span, f64)>) -> Self {
        let mut least_reach: f64 = 0.01;
        let mut ends = Vec::new();
        let mut reaches = Vec::new();
        for (span, margin) in spans {
            if !(span.low > 0.0 && span.high.is_finite()) {
                continue;
            }
            least_reach = least_reach.max(1.5 * margin.ln_1p());
            let (low, high) = (span.low.ln(), span.high.ln());
            ends.push((low, high));
            reaches.push(low.abs().max(high.abs()));
        }
        reaches.sort_by(f64::total_cmp);
        let place = whole_place(reaches.len() as f64 * MOST);
        let of_most = reaches.get(place.min(reaches.len().saturating_sub(1)));
        let limit = of_most.copied().unwrap_or(0.0).max(least_reach) * BEYOND;
        let (mut ln_low, mut ln_high) = (-least_reach, least_reach);
        for (low, high) in ends {
            if low >= -limit {
                ln_low = ln_low.min(low);
            }
            if high <= limit {
                ln_high = ln_high.max(high);
            }
        }
        let pad = (ln_high - ln_low) * PAD;
        Self {
            ln_low: ln_low - pad,
            ln_high: ln_high + pad,
        }
    }

    /// Returns the position of a ratio; outside 0 to 1 if it is beyond the axis.
    pub(crate) fn place(self, ratio: f64) -> f64 {
        if ratio <= 0.0 {
            return f64::NEG_INFINITY;
        }
        (ratio.ln() - self.ln_low) / (self.ln_high - self.ln_low)
    }

    /// Returns the ticks whose labels fit, outermost first; 1 is always included. `letter` is the width of a letter and
    /// `between` the gap between labels, as shares of the axis.
    pub(crate) fn labelled(self, letter: f64, between: f64) -> Vec<f64> {
        let half = |tick| letter * tick_label(tick).chars().count() as f64 / 2.0;
        let mut ticks = self.ticks();
        ticks.sort_by(|a, b| b.ln().abs().total_cmp(&a.ln().abs()));
        let mut shown = vec![1.0];
        for tick in ticks {
            let is_far = |other: &f64| {
                let apart = (self.place(tick) - self.place(*other)).abs();
                apart >= half(tick) + between + half(*other)
            };
            if shown.iter().all(is_far) {
                shown.push(tick);
            }
        }
        shown
    }

    /// Returns round ratios on the axis, at most about eight, including 1.
    pub(crate) fn ticks(self) -> Vec<f64> {
        // On a very long axis the ends overflow, so only powers are used.
        let length = self.ln_high - self.ln_low;
        if length > 100f64.ln() {
            return powers(10.0, self.ln_low, self.ln_high);
        }
        if length > 6f64.ln() {
            return powers(2.0, self.ln_low, self.ln_high);
        }
        let (low, high) = (self.ln_low.exp(), self.ln_high.exp());
        // Equal steps would crowd at the right and leave gaps at the left.
        if length > 3f64.ln() {
            let rounds =
                [0.1, 1.0].map(|power| [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].map(|it| it * power));
            let on_axis = |tick: &f64| (low..=high).contains(tick);
            return rounds.into_iter().flatten().filter(on_axis).collect();
        }
        let sizes = [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
        let multiples = |step: f64| -> Vec<f64> {
            let (from, to) = (((low - 1.0) / step).ceil(), ((high - 1.0) / step).floor());
            (steps(from)..=steps(to))
                .map(|n| 1.0 + f64::from(n) * step)
                .filter(|tick| *tick > 0.0)
                .collect()
        };
        let all = sizes.into_iter().map(multiples);
        all.into_iter()
            .find(|ticks| ticks.len() <= 7)
            .unwrap_or_else(|| vec![1.0])
    }
}

/// Converts a number of steps or powers, which is small on any axis.
#[allow(
    clippy::cast_possible_truncation,
    reason = "of a number with a fraction a cast takes the nearest that fits, and 0 of what is none"
)]
pub(crate) fn steps(number: f64) -> i32 {
    number as i32
}

/// Whether a tick is the exact 1 of no difference.
#[allow(clippy::float_cmp, reason = "it is 1 and no other is near it")]
pub(crate) fn is_one(tick: f64) -> bool {
    tick == 1.0
}

fn powers(base: f64, ln_low: f64, ln_high: f64) -> Vec<f64> {
    let exponent = |ln: f64| ln / base.ln();
    let (from, to) = (
        steps(exponent(ln_low).ceil()),
        steps(exponent(ln_high).floor()),
    );
    let every = ((to - from) / 8 + 1).max(1);
    (from..=to)
        .filter(|power| power % every == 0)
        .map(|power| base.powi(power))
        .collect()
}

/// Formats a ratio with as few digits as needed: `1`, `1.05`, `0.25`, `100`, `1e-5`.
pub(crate) fn tick_label(ratio: f64) -> String {
    if !(0.001..1e5).contains(&ratio) {
        return powered(ratio, 1);
    }
    without_idle_zeros(&format!("{ratio:.3}")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(low: f64, high: f64) -> (Span, f64) {
        let point = (low * high).sqrt();
        let span = Span::new(low, point, high);
        (span, 0.02)
    }

    #[test]
    fn axis_contains_one_with_few_ticks_in_range() {
        for rows in [
            vec![],
            vec![span(0.999, 1.001)],
            vec![span(1.2, 1.3), span(1.4, 1.5)],
            vec![span(0.2, 0.4), span(3.0, 9.0)],
            vec![span(1e-3, 1e3), span(1e-3, 1e3)],
            vec![span(1e-9, 1e9)],
            vec![span(1e-300, 1e300)],
            vec![span(1e300, 1e300)],
        ] {
            let axis = RatioAxis::of_spans(rows.clone().into_iter());
            assert!((0.0..=1.0).contains(&axis.place(1.0)), "{rows:?}");
            let ticks = axis.ticks();
            assert!(ticks.contains(&1.0), "{rows:?}: {ticks:?}");
            assert!(ticks.len() <= 9, "{rows:?}: {ticks:?}");
            let [letter, between] = [0.05, 0.06];
            let labelled = axis.labelled(letter, between);
            assert!(labelled.contains(&1.0), "{rows:?}: {labelled:?}");
            for (place, tick) in labelled.iter().enumerate() {
                for other in &labelled[..place] {
                    let letters = (tick_label(*tick) + &tick_label(*other)).len() as f64;
                    let apart = (axis.place(*tick) - axis.place(*other)).abs();
                    assert!(apart >= letter * letters / 2.0, "{rows:?}: {labelled:?}");
                }
            }
            for tick in ticks {
                assert!((0.0..=1.0).contains(&axis.place(tick)), "{rows:?}: {tick}");
            }
        }
    }

    #[test]
    fn outlier_row_does_not_compress_the_others() {
        let mut rows = vec![span(1.01, 1.05); 20];
        rows.push(span(190.0, 240.0));
        let axis = RatioAxis::of_spans(rows.into_iter());
        assert!(axis.place(200.0) > 1.0, "an arrow at the edge");
        assert!(axis.place(1.05) - axis.place(1.01) > 0.2);
        let alone = RatioAxis::of_spans([span(190.0, 240.0)].into_iter());
        assert!(
            alone.place(240.0) < 1.0,
            "where it is the rule, it is shown"
        );
    }

    #[test]
    fn unrepresentable_ratios_do_not_break_the_axis() {
        let rows = [span(0.0, f64::INFINITY), span(f64::NAN, f64::NAN)];
        let axis = RatioAxis::of_spans(rows.into_iter());
        assert!(axis.place(1.0).is_finite());
        assert!(axis.place(0.0) < 0.0 && axis.place(-1.0) < 0.0);
    }

    #[test]
    fn labels_have_no_idle_digits() {
        let shown: Vec<String> = [1.0, 1.05, 0.25, 100.0, 1.2].map(tick_label).into();
        assert_eq!(shown, ["1", "1.05", "0.25", "100", "1.2"]);
        let far: Vec<String> = [1e-5, 2f64.powi(-11), 1e5, 1e300].map(tick_label).into();
        assert_eq!(far, ["1e-5", "4.9e-4", "1e5", "1e300"]);
    }
}
