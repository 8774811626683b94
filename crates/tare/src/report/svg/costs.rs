//! The costs of an arm as a figure: a row a metric with its interval on one logarithmic axis, grouped like the table.
//!
//! Points with intervals rather than bars, for a ratio has no zero to stand on. What it cannot see: fonts; the room for
//! names is estimated.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell, Span};

use super::super::axis::{RatioAxis, tick_label};
use super::super::groups::{Group, grouped};
use super::super::number::glance;
use super::super::terminal::harmless;
use super::super::words::Names;
use super::{
    FOOT_LINE, Figure, GRID, INK, LETTER, TITLE_LINE, begun, broken, escaped, plain, text,
    text_lines,
};

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
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
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
        Some(Figure {
            name: format!("costs-{number}-{}", plain(&arm.id)),
            svg: draw(&title, &cells, &names, dossier),
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
    let title_lines = broken(title, 14.0, WIDTH - 28.0);
    let top = 40.0 + title_lines.len() as f64 * TITLE_LINE;
    let bottom = top + n_lines as f64 * ROW + 8.0;
    let height = bottom + 20.0 + foot.len() as f64 * FOOT_LINE;
    let x = |ratio: f64| FROM + axis.place(ratio).clamp(0.0, 1.0) * (TO - FROM);
    let mut out = begun((WIDTH, height), title);
    text_lines(&mut out, &title_lines, 24.0, (14.0, TITLE_LINE));
    text(&mut out, FROM - 24.0, top - 6.0, "end", 10.0, "cost ×");
    let places = groups
        .iter()
        .enumerate()
        .flat_map(|(before, (_, members))| members.iter().map(move |cell| (before, *cell)));
    // The margins below everything.
    for (line, (before, cell)) in (1..).zip(places) {
        let (low, high) = (x(1.0 / (1.0 + cell.margin)), x(1.0 + cell.margin));
        let _ = writeln!(
            out,
            r##"<rect x="{low:.1}" y="{:.1}" width="{:.1}" height="14.0" fill="#e9e9e4" fill-opacity="0.6"/>"##,
            top + f64::from(line + before as u32) * ROW + 3.0,
            high - low
        );
    }
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
                row(&mut out, *group, ratio, &names.name(cell), y, &x, axis);
            }
        }
    }
    text_lines(&mut out, &foot, bottom + 20.0, (10.0, FOOT_LINE));
    out.push_str("</svg>\n");
    out
}

fn row(
    out: &mut String,
    group: Group,
    ratio: &Span,
    name: &str,
    y: f64,
    x: &impl Fn(f64) -> f64,
    axis: RatioAxis,
) {
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
