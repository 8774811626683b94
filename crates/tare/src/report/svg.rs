//! Figures as SVG files: the costs of every arm with their intervals, the blocks of every metric, and a publication's own
//! figures with this machine's numbers.
//!
//! Of a publication's figures: one panel a row, each with an axis of its own, because rows differ in unit and by powers
//! of ten; the series stand beside each other with their intervals, whose level is told. An axis begins at 0 unless its
//! values span more than a factor of thirty; then it is logarithmic, and says so. What could not be measured is written
//! in its place.
//! Plain shapes and text, no script, no style sheet, no reference to anything outside.
//! What it cannot see: fonts; widths of texts are estimated.

use std::fmt::Write;

use tare_model::LayoutKind;
use tare_model::dossier::{Dossier, DossierLayout, DossierLayoutRow, Span};

use super::format::{File, Format, Made, Material};
use super::number::{scale_for, significant};

mod cell;
mod costs;

/// The figures.
pub struct Svg;

impl Format for Svg {
    fn name(&self) -> &'static str {
        "svg"
    }

    fn about(&self) -> &'static str {
        "figures for papers and slides: the costs of every arm, the blocks of every metric, and those of a repeated publication"
    }

    fn make(&self, material: &Material<'_>) -> Made {
        let mut files = costs::figures(material.dossier);
        files.extend(cell::figures(material.dossier));
        files.extend(figures(material.dossier));
        if files.is_empty() {
            return Made::Nothing(format!(
                "run `{}` has no figure: it has no ratio to draw",
                material.dossier.run
            ));
        }
        Made::Files(files)
    }
}

const PANEL_WIDTH: f64 = 300.0;
const PLOT_HEIGHT: f64 = 190.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 84.0;
const PANELS_A_LINE: usize = 3;
const TITLE_LINE: f64 = 18.0;
const FOOT_LINE: f64 = 13.0;
/// Characters of a label's line; longer ones would reach into what is below.
const LABEL_LINE: usize = 19;
/// The width of a letter by its size, in the middle over a text.
const LETTER: f64 = 0.56;
/// Values further apart than this are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 30.0;
/// Okabe and Ito's blue, told apart from the black of intervals by every kind of sight.
const FILL: &str = "#56B4E9";
const INK: &str = "#222222";
const GRID: &str = "#dddddd";

/// A name as part of a file's name.
fn plain(name: &str) -> String {
    let letters = name.chars().take(40);
    letters
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '-'
            }
        })
        .collect()
}

/// Every figure of the study's publication; none if it has none.
pub fn figures(dossier: &Dossier) -> Vec<File> {
    let figures = dossier
        .publication
        .as_ref()
        .map_or(&[][..], |publication| &publication.figures);
    (1..)
        .zip(figures)
        .map(|(number, figure)| File {
            name: format!("figure-{number}.svg"),
            content: draw(figure, dossier),
        })
        .collect()
}

fn draw(figure: &DossierLayout, dossier: &Dossier) -> String {
    let lines = figure.rows.len().div_ceil(PANELS_A_LINE).max(1);
    let across = figure.rows.len().clamp(1, PANELS_A_LINE);
    let panel_height = TOP + PLOT_HEIGHT + BOTTOM;
    let width = (across as f64 * PANEL_WIDTH + 20.0).max(520.0);
    let foot = format!(
        "Measured here; bars and points: typical value over blocks, whiskers: {}. Run {}.",
        whiskers(figure),
        dossier.run
    );
    let title = broken(&figure.title, 14.0, width - 28.0);
    let foot = broken(&foot, 10.0, width - 28.0);
    let first = 26.0 + title.len() as f64 * TITLE_LINE;
    let bottom = first + lines as f64 * panel_height + 16.0;
    let height = bottom + (foot.len() - 1) as f64 * FOOT_LINE + 10.0;
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="{INK}">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(&figure.title));
    let _ = writeln!(
        out,
        r##"<rect width="{width}" height="{height}" fill="#ffffff"/>"##
    );
    for (number, line) in title.iter().enumerate() {
        let at = 24.0 + number as f64 * TITLE_LINE;
        text(&mut out, 14.0, at, "start", 14.0, line);
    }
    for (place, row) in figure.rows.iter().enumerate() {
        let left = 10.0 + (place % PANELS_A_LINE) as f64 * PANEL_WIDTH;
        let top = first + (place / PANELS_A_LINE) as f64 * panel_height;
        panel(&mut out, figure, row, left, top);
    }
    for (number, line) in foot.iter().enumerate() {
        let at = bottom + number as f64 * FOOT_LINE;
        text(&mut out, 14.0, at, "start", 10.0, line);
    }
    out.push_str("</svg>\n");
    out
}

/// What the whiskers of a figure hold: below six blocks there is no 95 % interval but a range of a lower level.
fn whiskers(figure: &DossierLayout) -> String {
    let values = figure.rows.iter().flat_map(|row| &row.values);
    let levels =
        values.filter_map(|value| Some(value.here?.level.unwrap_or(crate::analyze::LEVEL)));
    let percent = |level: f64| format!("{:.0}", level * 100.0);
    let (mut least, mut most) = (f64::INFINITY, 0f64);
    for level in levels {
        (least, most) = (least.min(level), most.max(level));
    }
    let (least, most) = if least > most {
        (crate::analyze::LEVEL, crate::analyze::LEVEL)
    } else {
        (least, most)
    };
    if percent(least) == percent(most) && least >= crate::analyze::LEVEL {
        format!("{} % interval", percent(most))
    } else if percent(least) == percent(most) {
        format!(
            "range, which holds the typical value with {} % only, for want of blocks",
            percent(least)
        )
    } else {
        format!(
            "interval of {} %, or for want of blocks a range of down to {} %",
            percent(most),
            percent(least)
        )
    }
}

fn panel(out: &mut String, figure: &DossierLayout, row: &DossierLayoutRow, left: f64, top: f64) {
    let spans: Vec<Option<Span>> = row.values.iter().map(|value| value.here).collect();
    let most = spans
        .iter()
        .flatten()
        .map(|span| span.high)
        .fold(0.0, f64::max);
    let least = spans
        .iter()
        .flatten()
        .map(|span| span.low)
        .filter(|low| *low > 0.0)
        .fold(f64::INFINITY, f64::min);
    let scale = scale_for(most, &row.unit);
    let axis = Axis::over(least / scale.factor, most / scale.factor);
    let (x0, y0) = (left + LEFT, top + TOP + PLOT_HEIGHT);
    let plot_width = PANEL_WIDTH - LEFT - 12.0;
    let y = |value: f64| y0 - axis.place(value) * PLOT_HEIGHT;
    text(out, x0 - 54.0, top + 12.0, "start", 12.0, &row.label);
    let unit = match (scale.symbol.is_empty(), axis.is_logarithmic) {
        (true, false) => String::new(),
        (true, true) => "logarithmic".to_owned(),
        (false, false) => scale.symbol.to_owned(),
        (false, true) => format!("{}, logarithmic", scale.symbol),
    };
    text(out, x0 - 54.0, top + 26.0, "start", 10.0, &unit);
    for tick in axis.ticks() {
        let at = y(tick);
        let _ = writeln!(
            out,
            r#"<line x1="{x0:.1}" y1="{at:.1}" x2="{:.1}" y2="{at:.1}" stroke="{GRID}"/>"#,
            x0 + plot_width
        );
        let label = format!("{tick:.*}", axis.decimals(tick));
        text(out, x0 - 5.0, at + 4.0, "end", 10.0, &label);
    }
    let n = row.values.len().max(1) as f64;
    let step = plot_width / n;
    let mut points = Vec::new();
    for (place, value) in row.values.iter().enumerate() {
        let x = x0 + step * (place as f64 + 0.5);
        if let Some(span) = value.here {
            let (point, low, high) = (
                y(span.point / scale.factor),
                y(span.low / scale.factor),
                y(span.high / scale.factor),
            );
            if figure.kind == LayoutKind::Lines {
                points.push(format!("{x:.1},{point:.1}"));
                let _ = writeln!(
                    out,
                    r#"<circle cx="{x:.1}" cy="{point:.1}" r="3.5" fill="{FILL}" stroke="{INK}"/>"#
                );
            } else {
                let width = (step * 0.6).min(48.0);
                let _ = writeln!(
                    out,
                    r#"<rect x="{:.1}" y="{point:.1}" width="{width:.1}" height="{:.1}" fill="{FILL}"/>"#,
                    x - width / 2.0,
                    (y0 - point).max(0.0)
                );
            }
            let _ = writeln!(
                out,
                r#"<path d="M{x:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8" stroke="{INK}" fill="none"/>"#,
                x - 4.0,
                x - 4.0
            );
        } else {
            upright(out, x + 4.0, y0 - 6.0, -90.0, "start", "not measured");
        }
        let label = figure.columns.get(place).map_or("", String::as_str);
        for (number, line) in label_lines(label).iter().enumerate() {
            // The second line lies below the first in the direction of the writing.
            let (away, angle) = (number as f64 * 11.0, 35f64.to_radians());
            let (x, y) = (x + away * angle.sin(), y0 + 14.0 + away * angle.cos());
            upright(out, x, y, -35.0, "end", line);
        }
    }
    if points.len() > 1 {
        let _ = writeln!(
            out,
            r#"<polyline points="{}" stroke="{INK}" fill="none"/>"#,
            points.join(" ")
        );
    }
    let _ = writeln!(
        out,
        r#"<path d="M{x0:.1} {:.1}V{y0:.1}H{:.1}" stroke="{INK}" fill="none"/>"#,
        top + TOP,
        x0 + plot_width
    );
}

/// An axis from its lower to its upper end.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn over(least: f64, most: f64) -> Self {
        let is_logarithmic = least.is_finite() && least > 0.0 && most / least > LOGARITHMIC_FROM;
        if is_logarithmic {
            return Self {
                low: 10f64.powf(least.log10().floor()),
                high: 10f64.powf(most.log10().ceil()),
                is_logarithmic,
            };
        }
        let high = if most > 0.0 { most } else { 1.0 };
        let step = step(high);
        Self {
            low: 0.0,
            high: (high / step).ceil() * step,
            is_logarithmic,
        }
    }

    /// 0 at the lower end, 1 at the upper one.
    fn place(self, value: f64) -> f64 {
        let part = if self.is_logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            value / self.high
        };
        part.clamp(0.0, 1.0)
    }

    /// Digits after the point that tell a tick from its neighbours.
    fn decimals(self, tick: f64) -> usize {
        significant(
            if self.is_logarithmic {
                tick
            } else {
                step(self.high)
            },
            1,
        )
    }

    fn ticks(self) -> Vec<f64> {
        if self.is_logarithmic {
            let (from, to) = (
                self.low.log10().round() as i32,
                self.high.log10().round() as i32,
            );
            return (from..=to).map(|power| 10f64.powi(power)).collect();
        }
        let step = step(self.high);
        let n = (self.high / step).round() as u32;
        (0..=n).map(|tick| f64::from(tick) * step).collect()
    }
}

/// A round distance between ticks of which four to eight fit below `high`.
fn step(high: f64) -> f64 {
    let power = 10f64.powf((high / 4.0).log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| high / step >= 4.0)
        .unwrap_or(power)
}

fn text(out: &mut String, x: f64, y: f64, anchor: &str, size: f64, words: &str) {
    if !words.is_empty() {
        let _ = writeln!(
            out,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="{size}">{}</text>"#,
            escaped(words)
        );
    }
}

fn upright(out: &mut String, x: f64, y: f64, angle: f64, anchor: &str, words: &str) {
    if !words.is_empty() {
        let _ = writeln!(
            out,
            r#"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" font-size="10" transform="rotate({angle} {x:.1} {y:.1})">{}</text>"#,
            escaped(words)
        );
    }
}

/// A label in one line, or in two that are broken at the space nearest to the middle.
fn label_lines(label: &str) -> Vec<String> {
    let length = |text: &str| text.chars().count();
    if length(label) <= LABEL_LINE {
        return vec![label.to_owned()];
    }
    let spaces = label.match_indices(' ').map(|(at, _)| label.split_at(at));
    let halves = spaces.min_by_key(|(first, second)| length(first).abs_diff(length(second)));
    let (first, second) = halves.unwrap_or((label, ""));
    [first, second.trim_start()]
        .into_iter()
        .filter(|half| !half.is_empty())
        .map(shortened)
        .collect()
}

/// A line of at most so many characters as a label has room for.
fn shortened(line: &str) -> String {
    if line.chars().count() <= LABEL_LINE {
        return line.to_owned();
    }
    line.chars().take(LABEL_LINE - 1).chain(['…']).collect()
}

/// A text in lines of at most this width, broken at spaces.
fn broken(words: &str, size: f64, width: f64) -> Vec<String> {
    let room = (width / (size * LETTER)).max(1.0) as usize;
    let mut lines = vec![String::new()];
    for word in words.split(' ') {
        let line = lines.last_mut().expect("it begins with one line");
        let length = line.chars().count();
        if length > 0 && length + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            if length > 0 {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Text that is neither a tag nor an entity, without characters that XML forbids.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter if letter.is_control() => out.extend(letter.escape_default()),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use tare_model::dossier::DossierLayoutValue;

    use super::*;

    fn value(point: f64) -> DossierLayoutValue {
        DossierLayoutValue {
            here: Some(Span::new(point * 0.9, point, point * 1.2)),
            reason: None,
            published: Vec::new(),
        }
    }

    fn drawn(values: Vec<DossierLayoutValue>, kind: LayoutKind) -> String {
        let figure = DossierLayout {
            title: "A <b>title</b> & \u{1b}[31m".into(),
            kind,
            columns: values.iter().map(|_| "a column".to_owned()).collect(),
            rows: vec![DossierLayoutRow {
                label: "a row".into(),
                unit: "ns".into(),
                values,
            }],
        };
        let mut out = String::new();
        panel(&mut out, &figure, &figure.rows[0], 0.0, 0.0);
        out + &escaped(&figure.title)
    }

    #[test]
    fn foreign_text_is_neither_a_tag_nor_a_control_character() {
        let svg = drawn(vec![value(5.0)], LayoutKind::Bars);
        assert!(!svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
        assert!(svg.contains("&lt;b&gt;"));
    }

    #[test]
    fn what_was_not_measured_is_written_and_has_no_bar() {
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
    fn the_caption_states_the_level_that_the_whiskers_have() {
        let caption = |levels: &[Option<f64>]| {
            let of = |level: &Option<f64>| {
                let mut value = value(5.0);
                value.here.as_mut().unwrap().level = *level;
                value
            };
            whiskers(&DossierLayout {
                title: String::new(),
                kind: LayoutKind::Bars,
                columns: Vec::new(),
                rows: vec![DossierLayoutRow {
                    label: String::new(),
                    unit: "ns".into(),
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
    fn long_headings_and_labels_are_broken_and_not_cut_off_at_the_edge() {
        let title = "Figure 2. Memory by encryption, by the number of programs on the host and in containers";
        let lines = broken(title, 14.0, 492.0);
        assert!(lines.len() > 1 && lines.join(" ") == title, "{lines:?}");
        assert!(lines.iter().all(|line| line.chars().count() <= 62));
        assert_eq!(
            label_lines("virtual machines (EMULATED here)"),
            ["virtual machines", "(EMULATED here)"]
        );
        assert_eq!(label_lines("short label"), ["short label"]);
        let long = label_lines("one-word-without-any-space-in-it");
        assert_eq!(long.len(), 1);
        assert!(long[0].ends_with('…') && long[0].chars().count() == LABEL_LINE);
    }

    #[test]
    fn an_axis_holds_its_values_and_is_logarithmic_only_where_it_must_be() {
        let plain = Axis::over(3.0, 17.0);
        assert!(!plain.is_logarithmic && plain.low == 0.0 && plain.high >= 17.0);
        assert!(
            (4..=10).contains(&plain.ticks().len()),
            "{:?}",
            plain.ticks()
        );
        let wide = Axis::over(0.8, 90.0);
        assert!(wide.is_logarithmic);
        assert_eq!(wide.ticks(), [0.1, 1.0, 10.0, 100.0]);
        for axis in [plain, wide, Axis::over(f64::INFINITY, 0.0)] {
            assert!(
                axis.ticks()
                    .iter()
                    .all(|tick| (0.0..=1.0).contains(&axis.place(*tick)))
            );
        }
    }
}
