//! The distribution of one metric's block values on both sides: for every value, the share of blocks at or below it.
//!
//! Every point is one block; no bin or kernel width is chosen for the reader.
//!
//! Limits: does not show which blocks belong together; the figure of the blocks does.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierCell};

use super::{Axis, Figure, GRID, INK, Sheet, text};
use crate::number::{Scale, scale_for};
use crate::words::{Names, purpose_of};
use tare_core::foreign::harmless;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = WIDTH - 22.0;
/// Space above the plot for the names of both sides, without the title.
const TOP: f64 = 34.0;
const FILL: &str = "#0060A0";
/// Above this many blocks, only the line is drawn.
const MOST_POINTS: usize = 400;

/// Draws a figure for every cell with blocks on both sides.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    let names = Names::new(dossier);
    let cells = dossier.cells.iter().enumerate();
    cells
        .filter(|(_, cell)| cell.blocks.len() > 1)
        .filter_map(|(place, cell)| {
            Some(Figure {
                name: format!("distribution-{place}-{}", super::plain(&cell.metric)),
                svg: draw(cell, &names.name(cell), dossier)?,
            })
        })
        .collect()
}

/// Returns one side's values of a single copy, in ascending order and in the printed unit.
fn sorted(cell: &DossierCell, side: usize, scale: Scale) -> Vec<f64> {
    let mut values: Vec<f64> = cell
        .blocks
        .iter()
        .map(|block| block.alone()[side] / scale.factor)
        .collect();
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    values
}

fn draw(cell: &DossierCell, name: &str, dossier: &Dossier) -> Option<String> {
    let typical = cell.base.or(cell.env)?.point;
    let scale = scale_for(typical, &cell.unit);
    let [base, env] = [0, 1].map(|side| sorted(cell, side, scale));
    let least = base.first()?.min(*env.first()?);
    let most = base.last()?.max(*env.last()?);
    let axis = Axis::around(least, most);
    let (of_base, of_env) = (harmless(&cell.baseline), harmless(&cell.arm));
    let title = format!(
        "{name}: the values of the blocks, {} and {of_base}",
        purpose_of(&cell.arm, dossier)
    );
    let foot = format!(
        "For every value the share of the {} blocks that are at most as large, each side in its own order; the figure of the blocks shows which belong together.{} Run {}.",
        cell.blocks.len(),
        if axis.is_logarithmic {
            " The axis of values is logarithmic."
        } else {
            " The axis of values need not begin at 0."
        },
        harmless(&dossier.run)
    );
    let sheet = Sheet::new(WIDTH, &title, &foot);
    let top = TOP + sheet.title_height();
    let bottom = top + HEIGHT;
    let mut out = String::new();
    grid(&mut out, axis, (top, bottom), scale.symbol);
    let sides = [(&base, &of_base, INK, "4 3"), (&env, &of_env, FILL, "")];
    for (place, (values, arm, colour, dashes)) in sides.into_iter().enumerate() {
        steps(&mut out, values, axis, bottom, (colour, dashes));
        let at = LEFT + place as f64 * 240.0;
        let _ = writeln!(
            out,
            r#"<path d="M{at:.1} {0:.1}h26" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}" fill="none"/>"#,
            top - 16.0
        );
        point(&mut out, at + 13.0, top - 16.0, (colour, dashes));
        text(&mut out, at + 34.0, top - 12.0, "start", 11.0, arm);
    }
    Some(sheet.around(&out, bottom + 50.0, 0.0))
}

/// Draws the grid: shares on the left, values with their unit below.
fn grid(out: &mut String, axis: Axis, (top, bottom): (f64, f64), unit: &str) {
    for percent in [0, 25, 50, 75, 100] {
        let at = bottom - f64::from(percent) / 100.0 * HEIGHT;
        let _ = writeln!(
            out,
            r#"<line x1="{LEFT}" y1="{at:.1}" x2="{RIGHT}" y2="{at:.1}" stroke="{GRID}"/>"#
        );
        text(
            out,
            LEFT - 6.0,
            at + 4.0,
            "end",
            10.0,
            &format!("{percent} %"),
        );
    }
    for tick in axis.ticks() {
        let at = x(axis, tick);
        let _ = writeln!(
            out,
            r#"<line x1="{at:.1}" y1="{top:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="{GRID}"/>"#
        );
        text(out, at, bottom + 15.0, "middle", 10.0, &axis.label(tick));
    }
    let counted = if unit.is_empty() { "value" } else { unit };
    text(
        out,
        f64::midpoint(LEFT, RIGHT),
        bottom + 31.0,
        "middle",
        11.0,
        counted,
    );
}

fn x(axis: Axis, value: f64) -> f64 {
    LEFT + axis.place(value) * (RIGHT - LEFT)
}

/// Draws a side's share as a step line with a point at each value.
fn steps(out: &mut String, values: &[f64], axis: Axis, bottom: f64, style: (&str, &str)) {
    let y = |n: usize| bottom - n as f64 / values.len() as f64 * HEIGHT;
    let mut path = String::new();
    for (before, value) in values.iter().enumerate() {
        let at = x(axis, *value);
        let begin = if before == 0 { 'M' } else { 'H' };
        let from = if before == 0 {
            format!(" {:.1}", y(0))
        } else {
            String::new()
        };
        let _ = write!(path, "{begin}{at:.1}{from}V{:.1}", y(before + 1));
    }
    let (colour, dashes) = style;
    let _ = writeln!(
        out,
        r#"<path d="{path}" stroke="{colour}" stroke-width="1.6" stroke-dasharray="{dashes}" fill="none"/>"#
    );
    if values.len() <= MOST_POINTS {
        for (before, value) in values.iter().enumerate() {
            point(out, x(axis, *value), y(before + 1), style);
        }
    }
}

/// Draws a block: hollow on the dashed side, solid on the other.
fn point(out: &mut String, x: f64, y: f64, (colour, dashes): (&str, &str)) {
    let fill = if dashes.is_empty() { colour } else { "#ffffff" };
    let _ = writeln!(
        out,
        r#"<circle cx="{x:.1}" cy="{y:.1}" r="2.6" fill="{fill}" stroke="{colour}"/>"#
    );
}
