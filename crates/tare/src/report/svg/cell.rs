//! One metric's blocks as a figure: the cost of every block in order, the estimate with its interval, the margin.
//!
//! Every point is one block; nothing is smoothed and no line joins them, for blocks are no ordered levels. What it cannot
//! see: what happened inside of a trial.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell, Span};

use super::super::axis::{RatioAxis, tick_label};
use super::super::format::File;
use super::super::number::glance;
use super::super::terminal::harmless;
use super::super::words::Names;
use super::{FOOT_LINE, GRID, INK, begun, broken, text};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;
const TOP: f64 = 44.0;
const FILL: &str = "#0060A0";

/// A figure for every cell that has a ratio and its blocks.
pub(super) fn figures(dossier: &Dossier) -> Vec<File> {
    let names = Names::of(dossier);
    let cells = dossier.cells.iter().enumerate();
    cells
        .filter_map(|(place, cell)| {
            let ratio = cell.ratio.filter(|_| !cell.blocks.is_empty())?;
            Some(File {
                name: format!("blocks-{place}-{}.svg", super::plain(&cell.metric)),
                content: draw(cell, &ratio, &names.name(cell), dossier),
            })
        })
        .collect()
}

fn draw(cell: &DossierCell, ratio: &Span, name: &str, dossier: &Dossier) -> String {
    let values: Vec<Option<f64>> = cell
        .blocks
        .iter()
        .map(|block| block.ratio(cell.better))
        .collect();
    let (mut low, mut high) = (ratio.low.min(1.0), ratio.high.max(1.0));
    for value in values.iter().flatten() {
        (low, high) = (low.min(*value), high.max(*value));
    }
    let reach = Span::new(low, ratio.point, high);
    let axis = RatioAxis::of_spans([(reach, cell.margin)].into_iter());
    let bottom = TOP + HEIGHT;
    let y = |value: f64| bottom - axis.place(value).clamp(0.0, 1.0) * HEIGHT;
    let right = WIDTH - 14.0;
    let title = format!(
        "{name}: {} against {}, cost × {}",
        harmless(&cell.arm),
        harmless(&cell.baseline),
        glance(ratio)
    );
    let foot = format!(
        "Each point is the cost of one of {} blocks, in order; line and field: estimate and 95 % interval; grey: the margin of {:.3}. The axis is logarithmic. Run {}.",
        cell.blocks.len(),
        cell.margin,
        harmless(&dossier.run)
    );
    let title_lines = broken(&title, 14.0, WIDTH - 28.0);
    let foot = broken(&foot, 10.0, WIDTH - 28.0);
    let height = bottom + 22.0 + foot.len() as f64 * FOOT_LINE;
    let mut out = begun((WIDTH, height), &title);
    text(
        &mut out,
        14.0,
        24.0,
        "start",
        14.0,
        title_lines.first().map_or("", String::as_str),
    );
    for (from, to, fill) in [
        (1.0 + cell.margin, 1.0 / (1.0 + cell.margin), "#e9e9e4"),
        (ratio.high, ratio.low, "#cfe0ee"),
    ] {
        let _ = writeln!(
            out,
            r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{fill}" fill-opacity="0.7"/>"#,
            y(from),
            right - LEFT,
            (y(to) - y(from)).max(1.0)
        );
    }
    for tick in axis.ticks() {
        let at = y(tick);
        let stroke = if tick == 1.0 { INK } else { GRID };
        let _ = writeln!(
            out,
            r#"<line x1="{LEFT}" y1="{at:.1}" x2="{right:.1}" y2="{at:.1}" stroke="{stroke}"/>"#
        );
        text(
            &mut out,
            LEFT - 6.0,
            at + 4.0,
            "end",
            10.0,
            &tick_label(tick),
        );
    }
    let _ = writeln!(
        out,
        r#"<line x1="{LEFT}" y1="{0:.1}" x2="{right:.1}" y2="{0:.1}" stroke="{FILL}" stroke-width="2"/>"#,
        y(ratio.point)
    );
    let step = (right - LEFT) / values.len().max(1) as f64;
    for (place, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let _ = writeln!(
                out,
                r#"<circle cx="{:.1}" cy="{:.1}" r="3" fill="{FILL}" fill-opacity="0.8"/>"#,
                LEFT + step * (place as f64 + 0.5),
                y(*value)
            );
        }
    }
    text(&mut out, LEFT - 44.0, TOP - 8.0, "start", 10.0, "cost ×");
    for (number, words) in foot.iter().enumerate() {
        let at = bottom + 22.0 + number as f64 * FOOT_LINE;
        text(&mut out, 14.0, at, "start", 10.0, words);
    }
    out.push_str("</svg>\n");
    out
}
