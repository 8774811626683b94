//! Values over a parameter or over the number of instances as a figure: a line an arm, with intervals.
//!
//! Whatever a study measured at three or more values of one whole number or size, and else alike, is a sweep; its levels
//! are ordered, so lines join them. The levels stand in proportion, of their logarithms where they span a factor of eight.
//! What it cannot see: what lies between two levels.

use std::collections::BTreeMap;
use std::fmt::Write;

use tare_model::Value;
use tare_model::dossier::{Dossier, DossierCell, Span};

use super::super::format::File;
use super::super::number::scale_for;
use super::super::terminal::harmless;
use super::{Axis, FOOT_LINE, GRID, begun, broken, plain, text};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 250.0;
const LEFT: f64 = 70.0;
/// Where the plot ends and the names of the lines begin.
const RIGHT: f64 = 500.0;
const TOP: f64 = 58.0;
/// Fewer levels than this are no sweep.
const FEWEST_LEVELS: usize = 3;
/// Levels further apart than this stand in proportion of their logarithms.
const LOGARITHMIC_FROM: f64 = 8.0;
/// What the number of instances is called.
const INSTANCES: &str = "instances";
/// Okabe and Ito's colours, each with its own dashes, so that they are told apart without colour.
const LINES: [(&str, &str); 6] = [
    ("#222222", ""),
    ("#0072B2", "6 3"),
    ("#D55E00", "2 3"),
    ("#009E73", "8 3 2 3"),
    ("#CC79A7", "12 4"),
    ("#E69F00", "4 2"),
];

/// One sweep: what is on its axis, and each arm's values.
struct Sweep<'a> {
    of: &'a DossierCell,
    axis: &'a str,
    /// By arm, in the order in which they come, each by level.
    lines: Vec<(&'a str, BTreeMap<i64, Span>)>,
}

/// A figure for every sweep.
pub(super) fn figures(dossier: &Dossier) -> Vec<File> {
    let mut sweeps: Vec<Sweep<'_>> = Vec::new();
    for cell in &dossier.cells {
        for (axis, level) in levels(cell) {
            let known = sweeps
                .iter()
                .position(|sweep| sweep.axis == axis && is_same_but(sweep.of, cell, axis));
            let place = known.unwrap_or(sweeps.len());
            if known.is_none() {
                sweeps.push(Sweep {
                    of: cell,
                    axis,
                    lines: Vec::new(),
                });
            }
            let sweep = &mut sweeps[place];
            sweep.add(&cell.baseline, level, cell.base);
            sweep.add(&cell.arm, level, cell.env);
        }
    }
    sweeps.retain(|sweep| sweep.levels().len() >= FEWEST_LEVELS);
    (1..)
        .zip(&sweeps)
        .map(|(number, sweep)| File {
            name: format!("sweep-{number}-{}.svg", plain(&sweep.of.metric)),
            content: sweep.draw(dossier),
        })
        .collect()
}

/// What a cell could be a level of: its whole numbers and sizes, and how many instances there were.
fn levels(cell: &DossierCell) -> Vec<(&str, i64)> {
    let params = cell.params.0.iter();
    params
        .filter_map(|(name, value)| match value {
            Value::Int(number) => Some((name.as_str(), *number)),
            Value::Text(text) => Some((name.as_str(), size(text)?)),
            _ => None,
        })
        .chain([(INSTANCES, i64::from(cell.instances))])
        .collect()
}

/// A size such as `64k`, in bytes.
fn size(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(['k', 'm', 'g']);
    let shift = match &text[digits.len()..] {
        "k" => 10,
        "m" => 20,
        "g" => 30,
        _ => return None,
    };
    digits.parse::<i64>().ok()?.checked_mul(1 << shift)
}

/// A level as its axis shows it: a size in the largest unit that it fills.
fn shown(level: i64) -> String {
    [(30, "g"), (20, "m"), (10, "k")]
        .into_iter()
        .find(|(shift, _)| level > 0 && level % (1 << shift) == 0)
        .map_or_else(
            || level.to_string(),
            |(shift, unit)| format!("{}{unit}", level >> shift),
        )
}

/// Whether two cells are of the same but for this.
fn is_same_but(one: &DossierCell, other: &DossierCell, axis: &str) -> bool {
    let is_same_work = one.workload == other.workload
        && one.metric == other.metric
        && one.path == other.path
        && (axis == INSTANCES || one.instances == other.instances);
    let rest = |cell: &DossierCell| {
        let params = cell.params.0.clone();
        params
            .into_iter()
            .filter(|(name, _)| name != axis)
            .collect::<Vec<_>>()
    };
    is_same_work && rest(one) == rest(other)
}

impl<'a> Sweep<'a> {
    fn add(&mut self, arm: &'a str, level: i64, span: Option<Span>) {
        let Some(span) = span else {
            return;
        };
        match self.lines.iter_mut().find(|(known, _)| *known == arm) {
            Some((_, values)) => {
                values.entry(level).or_insert(span);
            }
            None => self.lines.push((arm, BTreeMap::from([(level, span)]))),
        }
    }

    /// The levels at which something was measured.
    fn levels(&self) -> Vec<i64> {
        let mut all: Vec<i64> = self
            .lines
            .iter()
            .flat_map(|(_, values)| values.keys().copied())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    fn draw(&self, dossier: &Dossier) -> String {
        let levels = self.levels();
        let spans = || self.lines.iter().flat_map(|(_, values)| values.values());
        let most = spans().map(|span| span.high).fold(0.0, f64::max);
        let least = spans()
            .map(|span| span.low)
            .filter(|low| *low > 0.0)
            .fold(f64::INFINITY, f64::min);
        let scale = scale_for(most, &self.of.unit);
        let axis = Axis::over(least / scale.factor, most / scale.factor);
        let bottom = TOP + HEIGHT;
        let x = |level: i64| LEFT + 14.0 + place(&levels, level) * (RIGHT - LEFT - 28.0);
        let y = |value: f64| bottom - axis.place(value / scale.factor) * HEIGHT;
        let title = format!("{}: {} by {}", self.of.workload, self.of.metric, self.axis);
        let foot = format!(
            "Points are typical values over blocks, whiskers their intervals; lines join the levels of one arm.{} Run {}.",
            if axis.is_logarithmic {
                " The axis of values is logarithmic."
            } else {
                ""
            },
            harmless(&dossier.run)
        );
        let foot = broken(&foot, 10.0, WIDTH - 28.0);
        let height = bottom + 48.0 + foot.len() as f64 * FOOT_LINE;
        let mut out = begun((WIDTH, height), &title);
        text(&mut out, 14.0, 24.0, "start", 14.0, &title);
        text(&mut out, 14.0, TOP - 12.0, "start", 10.0, scale.symbol);
        for tick in axis.ticks() {
            let at = y(tick * scale.factor);
            let _ = writeln!(
                out,
                r#"<line x1="{LEFT}" y1="{at:.1}" x2="{RIGHT}" y2="{at:.1}" stroke="{GRID}"/>"#
            );
            let label = format!("{tick:.*}", axis.decimals(tick));
            text(&mut out, LEFT - 5.0, at + 4.0, "end", 10.0, &label);
        }
        for level in &levels {
            text(
                &mut out,
                x(*level),
                bottom + 16.0,
                "middle",
                10.0,
                &shown(*level),
            );
        }
        text(
            &mut out,
            f64::midpoint(LEFT, RIGHT),
            bottom + 32.0,
            "middle",
            11.0,
            self.axis,
        );
        for (number, (arm, values)) in self.lines.iter().enumerate() {
            let (colour, dashes) = LINES[number % LINES.len()];
            // Whiskers of several arms at one level stand beside each other.
            let aside = (number as f64 - (self.lines.len() as f64 - 1.0) / 2.0) * 5.0;
            let points: Vec<(f64, Span)> = values
                .iter()
                .map(|(level, span)| (x(*level) + aside, *span))
                .collect();
            line(&mut out, &points, y, (colour, dashes));
            let at = TOP + 8.0 + number as f64 * 18.0;
            let _ = writeln!(
                out,
                r#"<path d="M{:.1} {at:.1}h26" stroke="{colour}" stroke-width="2" stroke-dasharray="{dashes}" fill="none"/>"#,
                RIGHT + 12.0
            );
            text(
                &mut out,
                RIGHT + 44.0,
                at + 4.0,
                "start",
                11.0,
                &harmless(arm),
            );
        }
        for (number, words) in foot.iter().enumerate() {
            let at = bottom + 52.0 + number as f64 * FOOT_LINE;
            text(&mut out, 14.0, at, "start", 10.0, words);
        }
        out.push_str("</svg>\n");
        out
    }
}

/// An arm's points with their whiskers, joined.
fn line(
    out: &mut String,
    points: &[(f64, Span)],
    y: impl Fn(f64) -> f64,
    (colour, dashes): (&str, &str),
) {
    let mut joined = Vec::new();
    for (x, span) in points {
        let (low, point, high) = (y(span.low), y(span.point), y(span.high));
        joined.push(format!("{x:.1},{point:.1}"));
        let _ = writeln!(
            out,
            r#"<path d="M{x:.1} {low:.1}V{high:.1}" stroke="{colour}" fill="none"/><circle cx="{x:.1}" cy="{point:.1}" r="3" fill="{colour}"/>"#
        );
    }
    if joined.len() > 1 {
        let _ = writeln!(
            out,
            r#"<polyline points="{}" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}" fill="none"/>"#,
            joined.join(" ")
        );
    }
}

/// Where a level stands between the first and the last, from 0 to 1.
fn place(levels: &[i64], level: i64) -> f64 {
    let (Some(first), Some(last)) = (levels.first(), levels.last()) else {
        return 0.0;
    };
    let (first, last, level) = (*first as f64, *last as f64, level as f64);
    if first > 0.0 && last / first >= LOGARITHMIC_FROM {
        return (level / first).ln() / (last / first).ln();
    }
    (level - first) / (last - first).max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_stand_in_proportion_or_in_that_of_their_logarithms() {
        assert_eq!(place(&[1, 2, 3], 2), 0.5);
        let wide = [1, 4, 16, 64];
        for (number, level) in wide.iter().enumerate() {
            assert!((place(&wide, *level) - number as f64 / 3.0).abs() < 1e-9);
        }
        assert_eq!(
            (size("64k"), size("1g"), size("k"), size("libaio")),
            (Some(65_536), Some(1 << 30), None, None)
        );
        assert_eq!(
            (shown(65_536), shown(3), shown(0)),
            ("64k".into(), "3".into(), "0".into())
        );
        assert_eq!(place(&[0, 5, 100], 0), 0.0);
        assert_eq!(place(&[0, 5, 100], 100), 1.0);
    }
}
