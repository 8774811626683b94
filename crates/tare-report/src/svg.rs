//! Figures as SVG files: the overheads of every arm with their intervals, the blocks of every metric and their
//! distribution, the steps of a ladder, values over a parameter or a number of instances, trials over time, and a
//! publication's figures with this machine's numbers.
//!
//! An axis starts at 0 unless its values span more than a factor of thirty; then it is logarithmic, and says so.
//! Plain shapes and text: no script, no style sheet, no external reference. Text widths are estimated, since fonts
//! are unknown.

use std::fmt::Write;
use std::ops::Range;

use tare_model::dossier::{Dossier, Span};
use tare_model::{whole_part, whole_place};

use super::axis::steps;
use super::format::{File, Format, Material, ReportOutput};
use super::number::label;
use tare_core::analyze::LEVEL;

mod cell;
mod costs;
mod course;
mod distribution;
mod heat_map;
mod ladder;
mod lines;
mod published;
mod sweep;

pub(super) use course::{figures as courses, place_text, title as course_title};
pub use published::figures;
pub(super) use sweep::of_parameters as sweeps;

/// The SVG format.
pub static SVG: Format = Format::new(
    "svg",
    "figures: overhead per arm, blocks and distribution per metric, steps of `tare why`, sweeps, time courses, repeated publications",
    make,
);

fn make(material: &Material<'_>) -> ReportOutput {
    files_of(material.dossier, |figure| {
        Ok(File {
            name: format!("{}.svg", figure.name),
            content: figure.svg.into_bytes(),
        })
    })
}

/// A drawing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    /// Its file name, without directory and extension.
    pub name: String,
    /// The drawing as SVG.
    pub svg: String,
}

/// Renders each figure of a run to a file; returns the reason if there are no figures or one fails.
pub(super) fn files_of(
    dossier: &Dossier,
    file: impl Fn(Figure) -> Result<File, String>,
) -> ReportOutput {
    let figures = [
        costs::figures,
        ladder::figures,
        cell::figures,
        distribution::figures,
        sweep::figures,
        heat_map::figures,
        courses,
        figures,
    ];
    let all = figures.into_iter().flat_map(|figures| figures(dossier));
    let files: Result<Vec<File>, String> = all.map(file).collect();
    match files {
        Ok(files) if files.is_empty() => ReportOutput::Nothing(format!(
            "run `{}` has no figure: it has no ratio to draw",
            dossier.run
        )),
        Ok(files) => ReportOutput::Files(files),
        Err(reason) => ReportOutput::Nothing(reason),
    }
}

const TITLE_LINE: f64 = 18.0;
const FOOT_LINE: f64 = 13.0;
/// Characters in a line of a label; a longer line would overlap what is below.
const LABEL_LINE: usize = 19;
/// The mean width of a letter relative to its size.
const LETTER: f64 = 0.56;
/// Values further apart than this factor are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 30.0;
/// The powers of ten in the range of `f64`.
const POWERS: Range<f64> = -324.0..308.0;
/// Okabe and Ito's blue, distinguishable from the black of intervals by colour-blind readers.
const FILL: &str = "#56B4E9";
const INK: &str = "#222222";
const GRID: &str = "#dddddd";

/// Converts a name to a part of a file name.
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

/// A linear or logarithmic value axis.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Axis {
    low: f64,
    high: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn over(least: f64, most: f64) -> Self {
        if let Some(axis) = Self::logarithmic(least, most) {
            return axis;
        }
        let high = if most > 0.0 { most } else { 1.0 };
        let step = step(high);
        Self {
            low: 0.0,
            high: (high / step).ceil() * step,
            is_logarithmic: false,
        }
    }

    /// Creates an axis for points only, which need not start at 0.
    fn around(least: f64, most: f64) -> Self {
        if let Some(axis) = Self::logarithmic(least, most) {
            return axis;
        }
        let step = step(if most > least {
            most - least
        } else {
            most.abs().max(1.0) / 10.0
        });
        let low = (least / step).floor() * step;
        Self {
            low,
            high: ((most / step).ceil() * step).max(low + step),
            is_logarithmic: false,
        }
    }

    fn logarithmic(least: f64, most: f64) -> Option<Self> {
        let is_wide = least.is_finite() && least > 0.0 && most / least > LOGARITHMIC_FROM;
        is_wide.then(|| Self {
            low: 10f64.powf(least.log10().floor()),
            high: 10f64.powf(most.log10().ceil()),
            is_logarithmic: true,
        })
    }

    /// Returns the position of a value: 0 at the lower end, 1 at the upper one.
    fn place(self, value: f64) -> f64 {
        let part = if self.is_logarithmic {
            (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (value - self.low) / (self.high - self.low)
        };
        part.clamp(0.0, 1.0)
    }

    /// Formats a tick with the digits that distinguish it from its neighbours.
    fn label(self, tick: f64) -> String {
        let is_power = self.is_logarithmic;
        label(tick, if is_power { tick } else { self.step() })
    }

    fn ticks(self) -> Vec<f64> {
        if self.is_logarithmic {
            let [from, to] = [self.low, self.high].map(|end| {
                let power = end.log10().round();
                steps(power.clamp(POWERS.start, POWERS.end))
            });
            // Skip powers if there are too many, so that labels do not overlap.
            let every = ((to - from) / 8 + 1).max(1);
            let powers = (from..=to).filter(|power| (power - from) % every == 0);
            return powers.map(|power| 10f64.powi(power)).collect();
        }
        let step = self.step();
        let n = whole_part(((self.high - self.low) / step).round());
        let from = (self.low / step).round();
        (0..=n).map(|tick| (from + tick as f64) * step).collect()
    }

    /// Returns the distance between ticks on a linear axis.
    fn step(self) -> f64 {
        step(self.high - self.low)
    }
}

/// Returns a round distance between ticks, so that four to eight fit below `high`.
fn step(high: f64) -> f64 {
    let power = 10f64.powf((high / 4.0).log10().floor());
    [5.0, 2.0, 1.0]
        .into_iter()
        .map(|digit| digit * power)
        .find(|step| high / step >= 4.0)
        .unwrap_or(power)
}

/// Describes the intervals of these values: with fewer than six blocks a range of a lower level instead of a 95 %
/// interval, and with a single block none.
pub(super) fn interval_text(spans: impl Iterator<Item = Span>) -> String {
    let percent = |level: f64| format!("{:.0}", level * 100.0);
    let levels: Vec<f64> = spans.map(|span| span.level.unwrap_or(LEVEL)).collect();
    let several = || levels.iter().copied().filter(|level| *level > 0.0);
    let least = several().fold(f64::INFINITY, f64::min);
    let most = several().fold(0.0, f64::max);
    let message = if least > most {
        if levels.is_empty() {
            return format!("{} % interval", percent(LEVEL));
        }
        return "none, too few blocks".to_owned();
    } else if least >= LEVEL {
        format!("{} % interval", percent(most))
    } else if most >= LEVEL {
        format!(
            "{} % interval, or with too few blocks a range that holds the typical value with {} % or more",
            percent(most),
            percent(least)
        )
    } else if percent(least) == percent(most) {
        format!(
            "range, which holds the typical value with {} % only, too few blocks",
            percent(least)
        )
    } else {
        format!(
            "range, which holds the typical value with {} to {} % only, too few blocks",
            percent(least),
            percent(most)
        )
    };
    if levels.iter().any(|level| *level <= 0.0) {
        format!("{message} (none where there is one block)")
    } else {
        message
    }
}

/// The frame of a figure: its title above the drawing and its foot below, both broken to the width.
struct Sheet<'a> {
    width: f64,
    title: &'a str,
    title_lines: Vec<String>,
    foot: Vec<String>,
}

impl<'a> Sheet<'a> {
    fn new(width: f64, title: &'a str, foot: &str) -> Self {
        Self {
            width,
            title,
            title_lines: broken(title, 14.0, width - 28.0),
            foot: broken(foot, 10.0, width - 28.0),
        }
    }

    fn title_height(&self) -> f64 {
        self.title_lines.len() as f64 * TITLE_LINE
    }

    /// Returns the figure with the foot from `foot_from` on and so much room below it.
    fn around(&self, drawing: &str, foot_from: f64, below: f64) -> String {
        let height = foot_from + self.foot.len() as f64 * FOOT_LINE + below;
        let mut out = begun((self.width, height), self.title);
        text_lines(&mut out, &self.title_lines, 24.0, (14.0, TITLE_LINE));
        out.push_str(drawing);
        text_lines(&mut out, &self.foot, foot_from, (10.0, FOOT_LINE));
        out.push_str("</svg>\n");
        out
    }
}

/// Starts an empty figure with an accessible title.
fn begun((width, height): (f64, f64), title: &str) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="{INK}">"#
    );
    let _ = writeln!(out, "<title>{}</title>", escaped(title));
    let _ = writeln!(
        out,
        r##"<rect width="{width}" height="{height}" fill="#ffffff"/>"##
    );
    out
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

/// Writes the lines of a text below each other, the first at `y`, with the letter size and line distance given.
fn text_lines(out: &mut String, words: &[String], y: f64, (size, far): (f64, f64)) {
    for (number, line) in words.iter().enumerate() {
        text(out, 14.0, y + number as f64 * far, "start", size, line);
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

/// Formats the points of a line.
fn joined(points: impl Iterator<Item = (f64, f64)>) -> String {
    let points: Vec<String> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    points.join(" ")
}

/// Splits a label into one line, or into two at the space nearest to the middle.
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
        .map(|half| shortened(half, LABEL_LINE))
        .collect()
}

/// Shortens a line to so many letters.
pub(super) fn shortened(line: &str, most: usize) -> String {
    if line.chars().count() <= most {
        return line.to_owned();
    }
    line.chars().take(most - 1).chain(['…']).collect()
}

/// Breaks text at spaces into lines of at most this width.
fn broken(words: &str, size: f64, width: f64) -> Vec<String> {
    let room = whole_place((width / (size * LETTER)).max(1.0));
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

/// Escapes text for XML, including control characters.
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
    use super::*;

    #[test]
    fn long_headings_and_labels_wrap_without_clipping() {
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
    fn whisker_text_shows_levels_or_none_for_one_block() {
        let shown = |levels: &[f64]| {
            interval_text(levels.iter().map(|level| Span {
                level: Some(*level),
                ..Span::new(1.0, 2.0, 3.0)
            }))
        };
        assert_eq!(shown(&[]), "95 % interval");
        assert_eq!(shown(&[0.95, 0.95]), "95 % interval");
        assert_eq!(shown(&[0.0, 0.0]), "none, too few blocks");
        assert!(shown(&[0.5, 0.75]).contains("with 50 to 75 % only"));
        assert!(shown(&[0.95, 0.5]).contains("value with 50 % or more"));
        let mixed = shown(&[0.5, 0.0]);
        assert!(
            mixed.contains("with 50 % only") && !mixed.contains(" 0 %"),
            "{mixed}"
        );
        assert!(
            mixed.ends_with("(none where there is one block)"),
            "{mixed}"
        );
    }

    #[test]
    fn axis_contains_values_and_is_log_only_if_needed() {
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
        for tiny in [Axis::over(3e-9, 5e-3), Axis::over(1e-8, 9e-8)] {
            let labels: Vec<String> = tiny.ticks().iter().map(|it| tiny.label(*it)).collect();
            let mut apart = labels.clone();
            apart.dedup();
            assert_eq!(apart, labels);
        }
        for (least, most) in [(1e-300, 1e300), (5e-324, f64::MAX), (1e-9, f64::INFINITY)] {
            assert!(Axis::over(least, most).ticks().len() <= 9, "{least} {most}");
        }
        for axis in [plain, wide, Axis::over(f64::INFINITY, 0.0)] {
            assert!(
                axis.ticks()
                    .iter()
                    .all(|tick| (0.0..=1.0).contains(&axis.place(*tick)))
            );
        }
    }
}
