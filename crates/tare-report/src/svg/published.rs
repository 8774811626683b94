//! A publication's figures with this machine's numbers, next to the published ones in the same panel.
//!
//! One panel per row, each with its axis, because rows differ in unit and by powers of ten. The series are drawn next
//! to each other with their intervals and the level of these, or with the full range of their blocks if the figure
//! asks for it. Published values are hollow; several in one place are drawn as their mean and range. A value in
//! another unit than the metric's is only in the report's table. Missing measurements are noted in place.
//!
//! Limits: the two come from different machines and may not be comparable; the caption says so.

use std::fmt::Write;

use tare_model::LayoutKind;
use tare_model::dossier::{Dossier, DossierLayout, DossierLayoutRow, DossierLayoutValue, Span};

use super::{
    Axis, FILL, Figure, GRID, INK, Sheet, interval_text, joined, label_lines, text, upright,
};
use crate::number::{Scale, scale_for};
use crate::published;

const PANEL_WIDTH: f64 = 300.0;
const PLOT_HEIGHT: f64 = 190.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 84.0;
const PANELS_A_LINE: usize = 3;
/// The width of a bar as a share of its slot, and its maximum in pixels.
const BAR: (f64, f64) = (0.6, 48.0);

/// Draws every figure of the study's publication; empty if it has none.
pub fn figures(dossier: &Dossier) -> Vec<Figure> {
    let figures = dossier
        .publication
        .as_ref()
        .map_or(&[][..], |publication| &publication.figures);
    (1..)
        .zip(figures)
        .map(|(number, figure)| Figure {
            name: format!("figure-{number}"),
            svg: draw(figure, dossier),
        })
        .collect()
}

fn draw(figure: &DossierLayout, dossier: &Dossier) -> String {
    let lines = figure.rows.len().div_ceil(PANELS_A_LINE).max(1);
    let across = figure.rows.len().clamp(1, PANELS_A_LINE);
    let panel_height = TOP + PLOT_HEIGHT + BOTTOM;
    let width = (across as f64 * PANEL_WIDTH + 20.0).max(520.0);
    let mut values = figure.rows.iter().flat_map(|row| &row.values);
    let beside = if values.any(|value| !value.printed.is_empty()) {
        " Hollow, next to them: published values, of other machines; several numbers in one place as their mean with its range."
    } else {
        ""
    };
    let scales: Vec<String> = published::scale_lines([figure])
        .map(|line| format!(" {line}."))
        .collect();
    let foot = format!(
        "Measured here; bars and points: typical value over blocks, whiskers: {}.{beside}{} Run {}.",
        whiskers(figure),
        scales.concat(),
        dossier.run
    );
    let sheet = Sheet::new(width, &figure.title, &foot);
    let first = 26.0 + sheet.title_height();
    let bottom = first + lines as f64 * panel_height + 16.0;
    let mut out = String::new();
    for (place, row) in figure.rows.iter().enumerate() {
        let left = 10.0 + (place % PANELS_A_LINE) as f64 * PANEL_WIDTH;
        let top = first + (place / PANELS_A_LINE) as f64 * panel_height;
        panel(&mut out, figure, row, left, top);
    }
    sheet.around(&out, bottom, -3.0)
}

/// Describes the whiskers of a figure: with fewer than six blocks there is no 95 % interval but a range of a lower
/// level.
fn whiskers(figure: &DossierLayout) -> String {
    if figure.full_range {
        return "full range over blocks".to_owned();
    }
    let values = figure.rows.iter().flat_map(|row| &row.values);
    interval_text(values.filter_map(|value| value.here))
}

/// Returns the measured value, with the whiskers that the figure asks for.
fn measured(figure: &DossierLayout, value: &DossierLayoutValue) -> Option<Span> {
    let here = value.here?;
    let range = value.range.filter(|_| figure.full_range);
    Some(range.map_or(here, |[low, high]| Span { low, high, ..here }))
}

/// Returns the published value.
fn printed(value: &DossierLayoutValue) -> Option<Span> {
    let values = || value.printed.iter().copied();
    let least = values().reduce(f64::min)?;
    let mean = values().sum::<f64>() / value.printed.len() as f64;
    Some(Span::new(least, mean, values().fold(0.0, f64::max)))
}

/// The geometry of a panel.
struct Plot {
    axis: Axis,
    scale: Scale,
    x0: f64,
    y0: f64,
    width: f64,
    kind: LayoutKind,
}

impl Plot {
    fn y(&self, value: f64) -> f64 {
        self.y0 - self.axis.place(value / self.scale.factor) * PLOT_HEIGHT
    }

    /// Draws a value around `x`; published values are hollow.
    fn mark(&self, out: &mut String, mark: Span, x: f64, width: f64, is_hollow: bool) {
        let (point, low, high) = (self.y(mark.point), self.y(mark.low), self.y(mark.high));
        let style = if is_hollow {
            format!(r#"fill="none" stroke="{INK}" stroke-dasharray="3 2""#)
        } else {
            format!(r#"fill="{FILL}""#)
        };
        // A logarithmic axis has no zero for a bar to start from.
        let _ = if self.kind == LayoutKind::Lines || self.axis.is_logarithmic {
            writeln!(
                out,
                r#"<circle cx="{x:.1}" cy="{point:.1}" r="3.5" {style}{}/>"#,
                if is_hollow {
                    String::new()
                } else {
                    format!(r#" stroke="{INK}""#)
                }
            )
        } else {
            writeln!(
                out,
                r#"<rect x="{:.1}" y="{point:.1}" width="{width:.1}" height="{:.1}" {style}/>"#,
                x - width / 2.0,
                (self.y0 - point).max(0.0)
            )
        };
        if mark.high > mark.low {
            let _ = writeln!(
                out,
                r#"<path d="M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8" stroke="{INK}" fill="none"/>"#,
                x - 4.0,
                x - 4.0
            );
        }
    }

    /// Joins the points of a line.
    fn join(&self, out: &mut String, points: &[(f64, f64)], is_hollow: bool) {
        if points.len() < 2 || self.kind != LayoutKind::Lines {
            return;
        }
        let dashes = if is_hollow {
            r#" stroke-dasharray="3 2""#
        } else {
            ""
        };
        let _ = writeln!(
            out,
            r#"<polyline points="{}" stroke="{INK}" fill="none"{dashes}/>"#,
            joined(points.iter().map(|(x, value)| (*x, self.y(*value))))
        );
    }

    /// Draws the axis lines with their values.
    fn ticks(&self, out: &mut String) {
        for tick in self.axis.ticks() {
            let at = self.y(tick * self.scale.factor);
            let _ = writeln!(
                out,
                r#"<line x1="{:.1}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}" stroke="{GRID}"/>"#,
                self.x0,
                self.x0 + self.width
            );
            let label = self.axis.label(tick);
            text(out, self.x0 - 5.0, at + 4.0, "end", 10.0, &label);
        }
    }

    fn unit(&self) -> String {
        match (self.scale.symbol.is_empty(), self.axis.is_logarithmic) {
            (true, false) => String::new(),
            (true, true) => "logarithmic".to_owned(),
            (false, false) => self.scale.symbol.to_owned(),
            (false, true) => format!("{}, logarithmic", self.scale.symbol),
        }
    }
}

/// Writes a column's heading, slanted, below its slot.
fn slanted(out: &mut String, label: &str, middle: f64, y0: f64) {
    for (number, line) in label_lines(label).iter().enumerate() {
        // The second line is below the first relative to the slanted text.
        let (away, angle) = (number as f64 * 11.0, 35f64.to_radians());
        let (x, y) = (middle + away * angle.sin(), y0 + 14.0 + away * angle.cos());
        upright(out, x, y, -35.0, "end", line);
    }
}

fn panel(out: &mut String, figure: &DossierLayout, row: &DossierLayoutRow, left: f64, top: f64) {
    let pairs: Vec<(Option<Span>, Option<Span>)> = row
        .values
        .iter()
        .map(|value| (measured(figure, value), printed(value)))
        .collect();
    let marks = || {
        pairs
            .iter()
            .flat_map(|(here, there)| here.iter().chain(there))
    };
    let most = marks().map(|mark| mark.high).fold(0.0, f64::max);
    let least = marks()
        .map(|mark| mark.low)
        .filter(|low| *low > 0.0)
        .fold(f64::INFINITY, f64::min);
    let scale = scale_for(most, &row.unit);
    let plot = Plot {
        axis: Axis::over(least / scale.factor, most / scale.factor),
        scale,
        x0: left + LEFT,
        y0: top + TOP + PLOT_HEIGHT,
        width: PANEL_WIDTH - LEFT - 12.0,
        kind: figure.kind,
    };
    text(out, plot.x0 - 54.0, top + 12.0, "start", 12.0, &row.label);
    text(out, plot.x0 - 54.0, top + 26.0, "start", 10.0, &plot.unit());
    plot.ticks(out);
    let step = plot.width / pairs.len().max(1) as f64;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for (place, (here, there)) in pairs.iter().enumerate() {
        let middle = plot.x0 + step * (place as f64 + 0.5);
        let whole = (step * BAR.0).min(BAR.1);
        // Two bars share one slot; the points of lines are in one column.
        let is_shared = there.is_some() && figure.kind != LayoutKind::Lines;
        let (width, aside) = if is_shared {
            (whole / 2.0 - 1.0, whole / 4.0)
        } else {
            (whole, 0.0)
        };
        if let Some(mark) = here {
            plot.mark(out, *mark, middle - aside, width, false);
            ours.push((middle, mark.point));
        } else {
            upright(
                out,
                middle - aside + 4.0,
                plot.y0 - 6.0,
                -90.0,
                "start",
                "not measured",
            );
        }
        if let Some(mark) = there {
            plot.mark(out, *mark, middle + aside, width, true);
            theirs.push((middle, mark.point));
        }
        let label = figure.columns.get(place).map_or("", String::as_str);
        slanted(out, label, middle, plot.y0);
    }
    plot.join(out, &ours, false);
    plot.join(out, &theirs, true);
    let _ = writeln!(
        out,
        r#"<path d="M{0:.1} {1:.1}V{2:.1}H{3:.1}" stroke="{INK}" fill="none"/>"#,
        plot.x0,
        top + TOP,
        plot.y0,
        plot.x0 + plot.width
    );
}

#[cfg(test)]
mod tests {
    use super::super::escaped;
    use super::*;

    fn value(point: f64) -> DossierLayoutValue {
        DossierLayoutValue {
            here: Some(Span::new(point * 0.9, point, point * 1.2)),
            ..DossierLayoutValue::default()
        }
    }

    fn drawn(values: Vec<DossierLayoutValue>, kind: LayoutKind) -> String {
        let figure = DossierLayout {
            title: "A <b>title</b> & \u{1b}[31m".into(),
            kind,
            full_range: false,
            columns: values.iter().map(|_| "a column".to_owned()).collect(),
            rows: vec![DossierLayoutRow {
                label: "a row".into(),
                unit: "ns".into(),
                scale: None,
                values,
            }],
        };
        let mut out = String::new();
        panel(&mut out, &figure, &figure.rows[0], 0.0, 0.0);
        out + &escaped(&figure.title)
    }

    #[test]
    fn foreign_text_in_svg_is_escaped() {
        let svg = drawn(vec![value(5.0)], LayoutKind::Bars);
        assert!(!svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("&lt;b&gt;"));
    }

    #[test]
    fn unmeasured_value_is_labeled_without_a_bar() {
        let svg = drawn(
            vec![value(5.0), DossierLayoutValue::default()],
            LayoutKind::Bars,
        );
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains("not measured"));
        let lines = drawn(vec![value(5.0), value(9.0)], LayoutKind::Lines);
        assert_eq!(lines.matches("<circle").count(), 2);
        assert!(lines.contains("<polyline"));
    }

    #[test]
    fn log_axis_has_no_bars() {
        let svg = drawn(vec![value(1.0), value(500.0)], LayoutKind::Bars);
        assert_eq!(svg.matches("<rect").count(), 0, "{svg}");
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("logarithmic"));
    }

    #[test]
    fn caption_states_level_of_the_whiskers() {
        let caption = |levels: &[Option<f64>]| {
            let of = |level: &Option<f64>| {
                let mut value = value(5.0);
                value.here.as_mut().unwrap().level = *level;
                value
            };
            whiskers(&DossierLayout {
                title: String::new(),
                kind: LayoutKind::Bars,
                full_range: false,
                columns: Vec::new(),
                rows: vec![DossierLayoutRow {
                    label: String::new(),
                    unit: "ns".into(),
                    scale: None,
                    values: levels.iter().map(of).collect(),
                }],
            })
        };
        assert_eq!(caption(&[None, None]), "95 % interval");
        assert!(caption(&[Some(0.5), Some(0.5)]).starts_with("range, which holds"));
        assert!(caption(&[Some(0.5)]).contains("50 %"));
        let mixed = caption(&[None, Some(0.5)]);
        assert!(mixed.contains("95 %") && mixed.contains("50 %"), "{mixed}");
    }

    #[test]
    fn published_values_are_hollow_on_the_same_axis() {
        let both = DossierLayoutValue {
            printed: vec![40.0, 60.0],
            ..value(5.0)
        };
        let only = DossierLayoutValue {
            printed: vec![7.0],
            ..DossierLayoutValue::default()
        };
        let bars = drawn(vec![both.clone(), only.clone()], LayoutKind::Bars);
        assert_eq!(bars.matches("<rect").count(), 3, "{bars}");
        assert_eq!(bars.matches("stroke-dasharray").count(), 2);
        assert!(bars.contains("not measured"));
        // The axis includes the largest published value: a tick at 60.
        assert!(bars.contains(">60<"), "{bars}");
        let lines = drawn(vec![both, only.clone(), only], LayoutKind::Lines);
        assert_eq!(lines.matches("<circle").count(), 4);
        // One published line; the measured one has a single point.
        assert_eq!(lines.matches("<polyline").count(), 1);
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "copies")]
    fn whiskers_show_full_range_if_figure_requests_it() {
        let wide = DossierLayoutValue {
            range: Some([1.0, 90.0]),
            ..value(50.0)
        };
        let mut figure = DossierLayout {
            title: String::new(),
            kind: LayoutKind::Bars,
            full_range: true,
            columns: vec!["a".into()],
            rows: vec![DossierLayoutRow {
                label: "a row".into(),
                unit: "ns".into(),
                scale: None,
                values: vec![wide],
            }],
        };
        let high =
            |figure: &DossierLayout| measured(figure, &figure.rows[0].values[0]).unwrap().high;
        assert_eq!(high(&figure), 90.0);
        assert!(whiskers(&figure).contains("full range"));
        figure.full_range = false;
        assert_eq!(high(&figure), 60.0);
        assert!(whiskers(&figure).contains("95 %"));
    }
}
