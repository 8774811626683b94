//! Values at ordered levels as a figure: one line per arm, with whiskers.
//!
//! The caller explains the whiskers below the figure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tare_model::dossier::Span;

use super::joined;
use super::{Axis, GRID, Sheet, text};
use crate::number::scale_for;
use tare_core::foreign::harmless;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 70.0;
/// Where the plot ends and the line names start.
const RIGHT: f64 = 500.0;
/// Space above the plot, without the title.
const TOP: f64 = 40.0;
/// Levels further apart than this factor are placed by their logarithms.
const LOGARITHMIC_FROM: f64 = 8.0;
/// The maximum number of level names on the axis.
const MOST_NAMES: usize = 12;
/// The minimum distance between level names.
const NAME: f64 = 26.0;
/// Okabe and Ito's colours, each with its dash pattern, so that lines differ without colour.
const LINES: [(&str, &str); 6] = [
    ("#222222", ""),
    ("#0072B2", "6 3"),
    ("#D55E00", "2 3"),
    ("#009E73", "8 3 2 3"),
    ("#CC79A7", "12 4"),
    ("#E69F00", "4 2"),
];

/// The content of a line figure.
pub(super) struct Plot<'a> {
    pub(super) title: String,
    /// The title of the level axis.
    pub(super) axis: &'a str,
    /// The unit of the values.
    pub(super) unit: &'a str,
    /// The note that explains points and whiskers.
    pub(super) foot: &'a str,
    /// Whether the levels are always placed linearly, however far apart they are.
    pub(super) is_in_proportion: bool,
    /// Formats a level.
    pub(super) shown: &'a dyn Fn(i64) -> String,
    /// The values of each arm by level, in order of appearance.
    pub(super) lines: &'a [(&'a str, BTreeMap<i64, Span>)],
    /// Published lines, drawn hollow.
    pub(super) beside: &'a [PublishedLine],
}

/// A published line.
pub(super) struct PublishedLine {
    pub(super) name: String,
    /// The index of the line whose colour it shares.
    pub(super) of: usize,
    pub(super) values: BTreeMap<i64, f64>,
}

/// Returns the levels with measurements.
pub(super) fn levels(lines: &[(&str, BTreeMap<i64, Span>)]) -> BTreeSet<i64> {
    let levels = lines.iter().flat_map(|(_, values)| values.keys().copied());
    levels.collect()
}

impl Plot<'_> {
    /// Draws the figure, with the run named below it.
    pub(super) fn draw(&self, run: &str) -> String {
        let mut levels = levels(self.lines);
        levels.extend(self.beside.iter().flat_map(|it| it.values.keys()));
        let levels: Vec<i64> = levels.into_iter().collect();
        let spans = || self.lines.iter().flat_map(|(_, values)| values.values());
        let published = || {
            self.beside
                .iter()
                .flat_map(|it| it.values.values().copied())
        };
        let most = spans()
            .map(|span| span.high)
            .chain(published())
            .fold(0.0, f64::max);
        let least = spans()
            .map(|span| span.low)
            .chain(published())
            .filter(|low| *low > 0.0)
            .fold(f64::INFINITY, f64::min);
        let scale = scale_for(most, self.unit);
        let axis = Axis::over(least / scale.factor, most / scale.factor);
        let x = |level: i64| LEFT + 14.0 + self.place(&levels, level) * (RIGHT - LEFT - 28.0);
        let foot = format!(
            "{}{} Run {}.",
            self.foot,
            if axis.is_logarithmic {
                " The axis of values is logarithmic."
            } else {
                ""
            },
            harmless(run)
        );
        let sheet = Sheet::new(WIDTH, &self.title, &foot);
        let top = TOP + sheet.title_height();
        let bottom = top + HEIGHT;
        let y = |value: f64| bottom - axis.place(value / scale.factor) * HEIGHT;
        let mut out = String::new();
        text(&mut out, 14.0, top - 12.0, "start", 10.0, scale.symbol);
        for tick in axis.ticks() {
            let at = y(tick * scale.factor);
            let _ = writeln!(
                out,
                r#"<line x1="{LEFT}" y1="{at:.1}" x2="{RIGHT}" y2="{at:.1}" stroke="{GRID}"/>"#
            );
            let label = axis.label(tick);
            text(&mut out, LEFT - 5.0, at + 4.0, "end", 10.0, &label);
        }
        let every = levels.len().div_ceil(MOST_NAMES).max(1);
        // Counted from the last one, which is always named.
        let mut named: Vec<i64> = Vec::new();
        for level in levels.iter().rev().step_by(every) {
            let has_room = |next: &i64| x(*next) - x(*level) >= NAME;
            if named.last().is_none_or(has_room) {
                named.push(*level);
            }
        }
        for level in named.iter().rev() {
            let name = (self.shown)(*level);
            text(&mut out, x(*level), bottom + 16.0, "middle", 10.0, &name);
        }
        let middle = f64::midpoint(LEFT, RIGHT);
        text(&mut out, middle, bottom + 32.0, "middle", 11.0, self.axis);
        self.draw_lines(&mut out, top, x, y);
        sheet.around(&out, bottom + 52.0, -4.0)
    }

    /// Draws the lines, each with its arm's name next to the plot.
    fn draw_lines(
        &self,
        out: &mut String,
        top: f64,
        x: impl Fn(i64) -> f64,
        y: impl Fn(f64) -> f64,
    ) {
        for (number, (arm, values)) in self.lines.iter().enumerate() {
            let (colour, dashes) = LINES[number % LINES.len()];
            // Offset, so that whiskers of several arms at one level do not overlap.
            let aside = (number as f64 - (self.lines.len() as f64 - 1.0) / 2.0) * 5.0;
            let points: Vec<(f64, Span)> = values
                .iter()
                .map(|(level, span)| (x(*level) + aside, *span))
                .collect();
            line(out, &points, &y, (colour, dashes));
            let at = top + 8.0 + number as f64 * 18.0;
            let _ = writeln!(
                out,
                r#"<path d="M{:.1} {at:.1}h26" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}" fill="none"/>"#,
                RIGHT + 12.0
            );
            text(out, RIGHT + 44.0, at + 4.0, "start", 11.0, &harmless(arm));
        }
        for (number, beside) in self.beside.iter().enumerate() {
            let (colour, _) = LINES[beside.of % LINES.len()];
            let points = beside.values.iter();
            let points: Vec<(f64, f64)> = points.map(|(at, value)| (x(*at), y(*value))).collect();
            hollow(out, &points, colour);
            let at = top + 8.0 + (self.lines.len() + number) as f64 * 18.0;
            hollow(out, &[(RIGHT + 25.0, at)], colour);
            let name = harmless(&beside.name);
            text(out, RIGHT + 44.0, at + 4.0, "start", 11.0, &name);
        }
    }

    /// Returns the position of a level between the first and the last, from 0 to 1.
    fn place(&self, levels: &[i64], level: i64) -> f64 {
        let (Some(first), Some(last)) = (levels.first(), levels.last()) else {
            return 0.0;
        };
        let (first, last, level) = (*first as f64, *last as f64, level as f64);
        if !self.is_in_proportion && first > 0.0 && last / first >= LOGARITHMIC_FROM {
            return (level / first).ln() / (last / first).ln();
        }
        (level - first) / (last - first).max(f64::MIN_POSITIVE)
    }
}

/// Draws an arm's points with whiskers, joined by a line.
fn line(
    out: &mut String,
    points: &[(f64, Span)],
    y: impl Fn(f64) -> f64,
    (colour, dashes): (&str, &str),
) {
    for (x, span) in points {
        let (low, point, high) = (y(span.low), y(span.point), y(span.high));
        let _ = writeln!(
            out,
            r#"<path d="M{x:.1} {low:.1}V{high:.1}" stroke="{colour}" fill="none"/><circle cx="{x:.1}" cy="{point:.1}" r="3" fill="{colour}"/>"#
        );
    }
    if points.len() > 1 {
        let _ = writeln!(
            out,
            r#"<polyline points="{}" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}" fill="none"/>"#,
            joined(points.iter().map(|(x, span)| (*x, y(span.point))))
        );
    }
}

/// Draws published points, joined by a thin line.
fn hollow(out: &mut String, points: &[(f64, f64)], colour: &str) {
    for (x, y) in points {
        let _ = writeln!(
            out,
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="none" stroke="{colour}"/>"#
        );
    }
    if points.len() > 1 {
        let _ = writeln!(
            out,
            r#"<polyline points="{}" stroke="{colour}" stroke-width="0.8" stroke-dasharray="1 2" fill="none"/>"#,
            joined(points.iter().copied())
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(is_in_proportion: bool) -> Plot<'static> {
        Plot {
            title: String::new(),
            axis: "",
            unit: "ns",
            foot: "",
            is_in_proportion,
            shown: &|_| String::new(),
            lines: &[],
            beside: &[],
        }
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "ends and middles are exact")]
    fn levels_are_placed_linearly_or_by_logarithm() {
        let place = |levels: &[i64], level| lines(false).place(levels, level);
        assert_eq!(place(&[1, 2, 3], 2), 0.5);
        let wide = [1, 4, 16, 64];
        for (number, level) in wide.iter().enumerate() {
            assert!((place(&wide, *level) - number as f64 / 3.0).abs() < 1e-9);
        }
        assert_eq!(place(&[0, 5, 100], 0), 0.0);
        assert_eq!(place(&[0, 5, 100], 100), 1.0);
        let in_proportion = lines(true).place(&[1, 51, 101], 51);
        assert_eq!(in_proportion, 0.5);
    }
}
