//! The steps of a `tare why` result as a figure: the contribution of each mechanism, each bar starting where the one
//! above ends.
//!
//! Base and whole start at 0, and each step has its interval as a whisker. The width of names is estimated.

use std::fmt::Write;

use tare_model::dossier::{Dossier, DossierLadder, Span};

use super::{Axis, Figure, GRID, INK, Sheet, broken, plain, text};
use crate::number::{Scale, or_dash, scale_for, typical};
use crate::terminal::{added, base, metric_text};
use crate::waterfall::{Adds, Bar, Waterfall};
use crate::words::command_line;
use tare_core::foreign::harmless;

const WIDTH: f64 = 760.0;
/// The ends of the axis; numbers are to its right.
const FROM: f64 = 250.0;
const TO: f64 = 596.0;
const LINE: f64 = 14.0;
/// The colour of the whole environment and of its baseline.
const WHOLE: &str = "#8b9096";

/// Draws the figure of a run with a ladder.
pub(super) fn figures(dossier: &Dossier) -> Vec<Figure> {
    let ladder = dossier.ladder.iter();
    ladder
        .map(|ladder| Figure {
            name: format!("steps-{}", plain(&ladder.arm)),
            svg: draw(ladder, dossier),
        })
        .collect()
}

/// A row of the figure.
struct Row {
    name: Vec<String>,
    number: String,
    bar: Option<Bar>,
    /// The ends of the whisker, if any.
    whisker: Option<(f64, f64)>,
    fill: &'static str,
    is_sure: bool,
}

impl Row {
    fn height(&self) -> f64 {
        self.name.len() as f64 * LINE + 10.0
    }

    fn whole(name: &str, span: Option<&Span>, bar: Option<Bar>, unit: &str) -> Self {
        Self {
            name: broken(name, 12.0, FROM - 40.0),
            number: typical(span, unit),
            bar,
            whisker: span
                .filter(|_| bar.is_some())
                .map(|span| (span.low, span.high)),
            fill: WHOLE,
            is_sure: true,
        }
    }
}

fn rows(ladder: &DossierLadder, of_base: &str) -> Vec<Row> {
    let bars = Waterfall::new(ladder);
    let unit = ladder.unit.as_str();
    let mut rows = vec![Row::whole(of_base, ladder.base.as_ref(), bars.base, unit)];
    let mut so_far = bars.base.map_or(0.0, |(_, to)| to);
    for (rung, bar) in bars.steps {
        let adds = rung.adds.as_ref();
        let sure = adds.map(Adds::classify);
        rows.push(Row {
            name: broken(&harmless(&rung.title), 12.0, FROM - 52.0),
            number: or_dash(adds, |span| added(span, unit)),
            bar,
            whisker: adds.map(|span| (so_far + span.low, so_far + span.high)),
            fill: match sure {
                Some(Adds::More) => "#B23C00",
                Some(Adds::Less) => "#0060A0",
                _ => "#ffffff",
            },
            is_sure: sure != Some(Adds::Unsure),
        });
        so_far += adds.map_or(0.0, |span| span.point);
    }
    let arm = harmless(&ladder.arm);
    rows.push(Row::whole(&arm, ladder.env.as_ref(), bars.env, unit));
    rows
}

fn draw(ladder: &DossierLadder, dossier: &Dossier) -> String {
    let rows = rows(ladder, base(dossier).1);
    let ends = rows.iter().flat_map(|row| [row.bar, row.whisker]);
    let most = ends.flatten().map(|(_, to)| to).fold(0.0, f64::max);
    let scale = scale_for(most, &ladder.unit);
    let axis = Axis::over(f64::INFINITY, most / scale.factor);
    let command = dossier.why.as_ref().map(|why| command_line(&why.command));
    let title = format!(
        "{}, {} in {}: what each step adds",
        harmless(&command.unwrap_or_default()),
        metric_text(&ladder.metric),
        harmless(&ladder.arm)
    );
    let foot = format!(
        "Each bar begins where the one above ends; lines are 95 % intervals of the step; dashed: not distinguishable from zero. Run {}.",
        harmless(&dossier.run)
    );
    let sheet = Sheet::new(WIDTH, &title, &foot);
    let top = 40.0 + sheet.title_height();
    let bottom = top + rows.iter().map(Row::height).sum::<f64>() + 4.0;
    let mut out = String::new();
    text(&mut out, FROM - 24.0, top - 6.0, "end", 10.0, scale.symbol);
    for tick in axis.ticks() {
        let at = FROM + axis.place(tick) * (TO - FROM);
        let _ = writeln!(
            out,
            r#"<line x1="{at:.1}" y1="{top:.1}" x2="{at:.1}" y2="{bottom:.1}" stroke="{GRID}"/>"#
        );
        text(&mut out, at, top - 6.0, "middle", 10.0, &axis.label(tick));
    }
    let mut y = top + 4.0;
    for (place, row) in rows.iter().enumerate() {
        let is_step = place > 0 && place + 1 < rows.len();
        draw_row(
            &mut out,
            row,
            (y, if is_step { 26.0 } else { 14.0 }),
            (axis, scale),
        );
        y += row.height();
    }
    sheet.around(&out, bottom + 22.0, 0.0)
}

fn draw_row(out: &mut String, row: &Row, (y, left): (f64, f64), (axis, scale): (Axis, Scale)) {
    let x = |value: f64| FROM + axis.place(value / scale.factor) * (TO - FROM);
    for (number, line) in row.name.iter().enumerate() {
        text(
            out,
            left,
            y + 12.0 + number as f64 * LINE,
            "start",
            12.0,
            line,
        );
    }
    if let Some((from, to)) = row.bar {
        let (stroke, dashes) = if row.is_sure {
            (row.fill, "")
        } else {
            ("#5D6167", "3 2")
        };
        let _ = writeln!(
            out,
            r#"<rect x="{:.1}" y="{:.1}" width="{:.1}" height="14.0" fill="{}" stroke="{stroke}" stroke-dasharray="{dashes}"/>"#,
            x(from),
            y + 1.0,
            (x(to) - x(from)).max(1.0),
            row.fill
        );
    }
    if let Some((low, high)) = row.whisker {
        let _ = writeln!(
            out,
            r#"<path d="M{0:.1} {2:.1}v6M{1:.1} {2:.1}v6M{0:.1} {3:.1}H{1:.1}" stroke="{INK}" fill="none"/>"#,
            x(low),
            x(high),
            y + 5.0,
            y + 8.0
        );
    }
    text(out, WIDTH - 14.0, y + 12.0, "end", 11.0, &row.number);
}
