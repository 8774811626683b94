//! The costs of an arm as a figure: a row a metric with its interval on one logarithmic axis, grouped like the table.
//!
//! Points with intervals rather than bars, for a ratio has no zero to stand on. What it cannot see: fonts; the room for
//! names is estimated.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell, Span};

use super::super::axis::{RatioAxis, tick_label};
use super::super::format::File;
use super::super::groups::{Group, grouped};
use super::super::number::glance;
use super::super::terminal::harmless;
use super::super::words::Names;
use super::{FOOT_LINE, GRID, INK, LETTER, begun, broken, escaped, plain, text};

const WIDTH: f64 = 760.0;
const ROW: f64 = 19.0;
/// Where the axis begins and ends; values stand right of it.
const FROM: f64 = 236.0;
const TO: f64 = 588.0;
/// Letters of a name that have room.
const NAME: usize = 34;

/// Vermilion and blue of Okabe and Ito, told apart by every kind of sight; signs say the same.
fn ink(group: Group) -> &'static str {
    match group {
        Group::More => "#B23C00",
        Group::Less => "#0060A0",
        Group::Nothing => "#3D6B4F",
        Group::Open | Group::Missing => "#5D6167",
    }
}

/// A figure for every arm with ratios.
pub(super) fn figures(dossier: &Dossier) -> Vec<File> {
    let names = Names::of(dossier);
    let arms = (1..).zip(&dossier.arms);
    arms.filter_map(|(number, arm)| {
        let cells = dossier.cells.iter();
        let cells: Vec<&DossierCell> = cells
            .filter(|cell| cell.arm == arm.id && cell.ratio.is_some())
            .collect();
        let first = cells.first()?;
        let title = format!(
            "{} against {}",
            harmless(&arm.id),
            harmless(&first.baseline)
        );
        Some(File {
            name: format!("costs-{number}-{}.svg", plain(&arm.id)),
            content: draw(&title, &cells, &names, dossier),
        })
    })
    .collect()
}

fn draw(title: &str, cells: &[&DossierCell], names: &Names<'_>, dossier: &Dossier) -> String {
    let groups = grouped(cells);
    let axis = RatioAxis::over(cells.iter().copied());
    let n_lines = cells.len() + groups.len();
    let foot = format!(
        "Cost × the baseline, logarithmic: points are estimates over blocks, lines their 95 % intervals, the grey field each row's margin; ◀ and ▶ point to what lies beyond the axis. Run {}.",
        harmless(&dossier.run)
    );
    let foot = broken(&foot, 10.0, WIDTH - 28.0);
    let top = 58.0;
    let bottom = top + n_lines as f64 * ROW + 8.0;
    let height = bottom + 20.0 + foot.len() as f64 * FOOT_LINE;
    let x = |ratio: f64| FROM + axis.place(ratio).clamp(0.0, 1.0) * (TO - FROM);
    let mut out = begun((WIDTH, height), title);
    text(&mut out, 14.0, 24.0, "start", 14.0, title);
    for tick in axis.ticks() {
        let at = x(tick);
        let stroke = if tick == 1.0 { INK } else { GRID };
        let _ = writeln!(
            out,
            r#"<line x1="{at:.1}" y1="{top:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="{stroke}"/>"#
        );
        text(&mut out, at, top - 6.0, "middle", 10.0, &tick_label(tick));
    }
    let mut line = 0.0;
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
            if let Some(ratio) = &cell.ratio {
                row(
                    &mut out,
                    *group,
                    cell,
                    ratio,
                    &names.name(cell),
                    y,
                    &x,
                    axis,
                );
            }
        }
    }
    for (number, words) in foot.iter().enumerate() {
        let at = bottom + 20.0 + number as f64 * FOOT_LINE;
        text(&mut out, 14.0, at, "start", 10.0, words);
    }
    out.push_str("</svg>\n");
    out
}

#[allow(
    clippy::too_many_arguments,
    reason = "a row is that many things at one height"
)]
fn row(
    out: &mut String,
    group: Group,
    cell: &DossierCell,
    ratio: &Span,
    name: &str,
    y: f64,
    x: &impl Fn(f64) -> f64,
    axis: RatioAxis,
) {
    let zone = (x(1.0 / (1.0 + cell.margin)), x(1.0 + cell.margin));
    let _ = writeln!(
        out,
        r##"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}" fill="#e9e9e4" fill-opacity="0.6"/>"##,
        zone.0,
        y - 7.0,
        zone.1 - zone.0,
        14.0
    );
    text(out, 26.0, y + 4.0, "start", 12.0, &fitted(name));
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
        let (at, tip) = if place > 1.0 { (TO, 8.0) } else { (FROM, -8.0) };
        let _ = writeln!(
            out,
            r#"<path d="M{at:.1} {:.1}l{tip} 5l{} 5z" fill="{ink}"/>"#,
            y - 5.0,
            -tip
        );
    }
    let value = glance(ratio);
    text(out, WIDTH - 14.0, y + 4.0, "end", 11.0, &value);
}

/// A name in the room that it has.
fn fitted(name: &str) -> String {
    let room = ((FROM - 30.0) / (12.0 * LETTER)) as usize;
    let room = room.min(NAME);
    if name.chars().count() <= room {
        return name.to_owned();
    }
    name.chars().take(room - 1).chain(['…']).collect()
}
