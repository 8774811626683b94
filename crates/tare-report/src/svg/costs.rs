//! The overheads of an arm as a figure: one row per metric with its interval on one logarithmic axis, grouped like
//! the table.
//!
//! Points with intervals rather than bars, because a ratio has no natural zero. The width of names is estimated.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell, Span};

use super::{Figure, GRID, INK, LETTER, Sheet, escaped, plain, shortened, text};
use crate::axis::{RatioAxis, is_one, tick_label};
use crate::groups::{Group, grouped};
use crate::words::{self, Names, purpose};
use tare_core::foreign::harmless;

const ROW: f64 = 19.0;
/// The axis length, and the width of the values to its right.
const AXIS: f64 = 352.0;
const VALUES: f64 = 172.0;
/// The maximum rows per figure, so that it fits on a page.
const MOST_ROWS: usize = 100;
/// The minimum and maximum width of names, in letters.
const NAMES: (usize, usize) = (30, 60);

/// The ends of the axis and the total width: names are to its left, values to its right.
#[derive(Debug, Clone, Copy)]
struct Frame {
    from: f64,
    to: f64,
    width: f64,
}

impl Frame {
    /// Creates a frame with room for these names.
    fn new<'a>(names: impl Iterator<Item = &'a String>) -> Self {
        let longest = names.map(|name| name.chars().count()).max().unwrap_or(0);
        let from = 34.0 + longest.clamp(NAMES.0, NAMES.1) as f64 * 12.0 * LETTER;
        Self {
            from,
            to: from + AXIS,
            width: from + AXIS + VALUES,
        }
    }
}

/// Returns Okabe and Ito's vermilion and blue, which colour-blind readers can distinguish; signs carry the same
/// information.
fn ink(group: Group) -> &'static str {
    match group {
        Group::More => "#B23C00",
        Group::Less => "#0060A0",
        Group::Nothing => "#3D6B4F",
        Group::ByItself | Group::Open | Group::Missing => "#5D6167",
    }
}

/// Draws a figure for every arm with ratios, or several if it has too many rows.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    let names = Names::new(dossier);
    let arms = (1..).zip(&dossier.arms);
    arms.flat_map(|(number, arm)| {
        let cells = dossier.cells.iter();
        let cells: Vec<&DossierCell> = cells
            .filter(|cell| cell.arm == arm.id && cell.ratio.is_some())
            .collect();
        let in_order: Vec<&DossierCell> = grouped(&cells)
            .into_iter()
            .flat_map(|(_, members)| members)
            .collect();
        let axis = RatioAxis::over(cells.iter().copied());
        let n_parts = in_order.len().div_ceil(MOST_ROWS);
        let part = |(place, cells): (usize, &[&DossierCell])| {
            let (mut name, mut title) = (
                format!("costs-{number}-{}", plain(&arm.id)),
                format!("{} against {}", purpose(arm), harmless(&cells[0].baseline)),
            );
            if n_parts > 1 {
                name = format!("{name}-{}", place + 1);
                title = format!("{title}, {} of {n_parts}", place + 1);
            }
            Figure {
                name,
                svg: draw(&title, cells, axis, &names, dossier),
            }
        };
        let parts = in_order.chunks(MOST_ROWS).enumerate();
        parts.map(part).collect::<Vec<_>>()
    })
    .collect()
}

fn draw(
    title: &str,
    cells: &[&DossierCell],
    axis: RatioAxis,
    names: &Names<'_>,
    dossier: &Dossier,
) -> String {
    let groups = grouped(cells);
    let n_lines = cells.len() + groups.len();
    let foot = format!(
        "Ratio to the baseline, logarithmic: points are estimates over blocks, lines their 95 % intervals, the grey field each row's margin; ◀ and ▶ point to what lies beyond the axis. Run {}.",
        harmless(&dossier.run)
    );
    let called: Vec<String> = groups
        .iter()
        .flat_map(|(_, members)| members.iter().map(|cell| names.name(cell)))
        .collect();
    let frame = Frame::new(called.iter());
    let sheet = Sheet::new(frame.width, title, &foot);
    let top = 40.0 + sheet.title_height();
    let bottom = top + n_lines as f64 * ROW + 8.0;
    let x = |ratio: f64| frame.from + axis.place(ratio).clamp(0.0, 1.0) * AXIS;
    let mut out = String::new();
    text(&mut out, frame.from - 24.0, top - 6.0, "end", 10.0, "ratio");
    let places = groups
        .iter()
        .enumerate()
        .flat_map(|(before, (_, members))| members.iter().map(move |cell| (before, *cell)));
    // The margins, below everything else.
    for (line, (before, cell)) in (1..).zip(places) {
        let (low, high) = (x(1.0 / (1.0 + cell.margin)), x(1.0 + cell.margin));
        let _ = writeln!(
            out,
            r##"<rect x="{low:.1}" y="{:.1}" width="{:.1}" height="14.0" fill="#e9e9e4" fill-opacity="0.6"/>"##,
            top + (line + before) as f64 * ROW + 3.0,
            high - low
        );
    }
    for tick in axis.ticks() {
        let at = x(tick);
        let stroke = if is_one(tick) { INK } else { GRID };
        let _ = writeln!(
            out,
            r#"<line x1="{at:.1}" y1="{top:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="{stroke}"/>"#
        );
        text(&mut out, at, top - 6.0, "middle", 10.0, &tick_label(tick));
    }
    let mut line = 0.0;
    let mut called = called.iter();
    for (group, members) in &groups {
        let y = top + line * ROW + 14.0;
        let heading = format!("{} {} ({})", group.sign(), group.title(), members.len());
        let _ = writeln!(
            out,
            r#"<text x="14" y="{y:.1}" font-weight="bold" fill="{}">{}</text>"#,
            ink(*group),
            escaped(&heading)
        );
        line += 1.0;
        for cell in members {
            let y = top + line * ROW + 10.0;
            line += 1.0;
            if let (Some(effect), Some(name)) = (words::effect(cell), called.next()) {
                text(
                    &mut out,
                    26.0,
                    y + 4.0,
                    "start",
                    12.0,
                    &shortened(name, NAMES.1),
                );
                if let Some(ratio) = words::ratio(cell) {
                    row(&mut out, *group, ratio, (y, frame), &x, axis);
                }
                text(&mut out, frame.width - 14.0, y + 4.0, "end", 11.0, &effect);
            }
        }
    }
    sheet.around(&out, bottom + 20.0, 0.0)
}

fn row(
    out: &mut String,
    group: Group,
    ratio: &Span,
    (y, frame): (f64, Frame),
    x: &impl Fn(f64) -> f64,
    axis: RatioAxis,
) {
    let ink = ink(group);
    let (low, high) = (x(ratio.low), x(ratio.high));
    let _ = writeln!(
        out,
        r#"<path d="M{low:.1} {y:.1}H{high:.1}" stroke="{ink}" stroke-width="2" fill="none"/>"#
    );
    for (end, at) in [(ratio.low, low), (ratio.high, high)] {
        if (0.0..=1.0).contains(&axis.place(end)) {
            let _ = writeln!(
                out,
                r#"<path d="M{at:.1} {:.1}v8" stroke="{ink}" stroke-width="2" fill="none"/>"#,
                y - 4.0
            );
        }
    }
    let place = axis.place(ratio.point);
    if (0.0..=1.0).contains(&place) {
        let _ = writeln!(
            out,
            r#"<circle cx="{:.1}" cy="{y:.1}" r="3.6" fill="{ink}"/>"#,
            x(ratio.point)
        );
    } else {
        let (at, tip) = if place > 1.0 {
            (frame.to, 8.0)
        } else {
            (frame.from, -8.0)
        };
        let _ = writeln!(
            out,
            r#"<path d="M{at:.1} {:.1}l{tip} 5l{} 5z" fill="{ink}"/>"#,
            y - 5.0,
            -tip
        );
    }
}
