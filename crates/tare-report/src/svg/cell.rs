//! One metric's blocks as a figure: the ratio of every block in order, the estimate with its interval, the margin.
//!
//! Every point is one block; nothing is smoothed and no line joins them, because blocks are not ordered levels.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierBlock, DossierCell, Span};

use super::{Figure, GRID, INK, Sheet, text};
use crate::axis::{RatioAxis, is_one, tick_label};
use crate::number::{glance, percent};
use crate::words::{Names, purpose_of};
use tare_core::foreign::harmless;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 58.0;
/// Space above the plot, without the title.
const TOP: f64 = 32.0;
const FILL: &str = "#0060A0";

/// Draws a figure for every cell with a ratio and blocks.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    let names = Names::new(dossier);
    let cells = dossier.cells.iter().enumerate();
    cells
        .filter_map(|(place, cell)| {
            let ratio = cell.ratio.filter(|_| !cell.blocks.is_empty())?;
            Some(Figure {
                name: format!("blocks-{place}-{}", super::plain(&cell.metric)),
                svg: draw(cell, &ratio, &names.name(cell), dossier),
            })
        })
        .collect()
}

/// Maps values to positions in the plot.
struct Plot {
    axis: RatioAxis,
    top: f64,
    right: f64,
}

impl Plot {
    fn y(&self, value: f64) -> f64 {
        self.bottom() - self.axis.place(value).clamp(0.0, 1.0) * HEIGHT
    }

    fn bottom(&self) -> f64 {
        self.top + HEIGHT
    }

    /// Draws a band over the whole width.
    fn field(&self, out: &mut String, (low, high): (f64, f64), fill: &str) {
        let _ = writeln!(
            out,
            r#"<rect x="{LEFT}" y="{:.1}" width="{:.1}" height="{:.1}" fill="{fill}" fill-opacity="0.7"/>"#,
            self.y(high),
            self.right - LEFT,
            (self.y(low) - self.y(high)).max(1.0)
        );
    }

    /// Draws a line over the whole width.
    fn line(&self, out: &mut String, value: f64, stroke: &str, width: u8) {
        let _ = writeln!(
            out,
            r#"<line x1="{LEFT}" y1="{0:.1}" x2="{1:.1}" y2="{0:.1}" stroke="{stroke}" stroke-width="{width}"/>"#,
            self.y(value),
            self.right
        );
    }

    /// Draws the axis lines with their numbers, and the first and last block below.
    fn labels(&self, out: &mut String, blocks: &[DossierBlock]) {
        for tick in self.axis.ticks() {
            self.line(out, tick, if is_one(tick) { INK } else { GRID }, 1);
            let at = self.y(tick) + 4.0;
            text(out, LEFT - 6.0, at, "end", 10.0, &tick_label(tick));
        }
        text(out, LEFT - 6.0, self.top - 8.0, "end", 10.0, "ratio");
        let below = self.bottom() + 14.0;
        if let [first, .., last] = blocks {
            let [first, last] = [first, last].map(|block| format!("block {}", block.block));
            text(out, LEFT, below, "start", 10.0, &first);
            text(out, self.right, below, "end", 10.0, &last);
        }
    }
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
    let title = format!(
        "{name}: {} against {}, ratio {}",
        purpose_of(&cell.arm, dossier),
        harmless(&cell.baseline),
        glance(ratio)
    );
    let foot = format!(
        "Each point is the cost of one of {} blocks, in order; line and field: estimate and 95 % interval; grey: the margin of {}. The axis is logarithmic. Run {}.",
        cell.blocks.len(),
        percent(cell.margin),
        harmless(&dossier.run)
    );
    let sheet = Sheet::new(WIDTH, &title, &foot);
    let plot = Plot {
        axis: RatioAxis::of_spans([(reach, cell.margin)].into_iter()),
        top: TOP + sheet.title_height(),
        right: WIDTH - 14.0,
    };
    let mut out = String::new();
    plot.field(
        &mut out,
        (1.0 / (1.0 + cell.margin), 1.0 + cell.margin),
        "#e9e9e4",
    );
    plot.field(&mut out, (ratio.low, ratio.high), "#cfe0ee");
    plot.labels(&mut out, &cell.blocks);
    plot.line(&mut out, ratio.point, FILL, 2);
    let step = (plot.right - LEFT) / values.len().max(1) as f64;
    for (place, value) in values.iter().enumerate() {
        if let Some(value) = value {
            let _ = writeln!(
                out,
                r#"<circle cx="{:.1}" cy="{:.1}" r="3" fill="{FILL}" fill-opacity="0.8"/>"#,
                LEFT + step * (place as f64 + 0.5),
                plot.y(*value)
            );
        }
    }
    sheet.around(&out, plot.bottom() + 36.0, 0.0)
}
