//! Renders the dossier as text for a terminal.
//!
//! In reading order: whether the comparison can be trusted (A/A control), the answer of each arm in a few lines, one
//! table per arm with a summary in the heading, the marks explained, missing measurements with reasons, unequal
//! conditions, time used, and the scope of the result. One table rather than one column per arm, because the question
//! is "what overhead does this environment have", and a row must hold value, interval and verdict within 80 columns.
//! Width and colour come from the caller.

use tare_model::StoppedBy;
use tare_model::dossier::{Dossier, DossierArm, DossierCell, Flag, Span};
use tare_model::facts::emulation;
use tare_stats::Verdict;

use tare_core::analyze::{claims_difference, counted, is_held_up};

mod brief;
pub(crate) mod concurrency;
mod counters;
mod interval;
mod pairs;
mod plain;
mod publication;
mod published;
mod remedy;
pub(crate) mod tail;
mod text;
pub(crate) mod two_runs;
mod usage;
mod why;

pub use brief::brief;
pub(crate) use counters::{CHARGED, counters};
pub use plain::plain;
pub use two_runs::{Called, two_runs};
pub(crate) use why::{added, applied_text, base, base_arm, label, metric_text, share_text};
pub use why::{short_answer, time, why};

use super::answer::{self, trust};
pub use super::format::Style;
use super::format::{Format, ReportOutput};
use super::number::{
    Digits, Scale, are_far, decimals_of_value, difference, interval, or_dash, scales_for, whole,
    with_unit,
};
use super::words::{self, Names};
use tare_core::foreign::harmless;
use text::{Column, Paint, Text, paragraph, table_or};

/// The short format, printed at the end of a run.
pub static TABLE: Format = Format::new(
    "table",
    "one screen: headline per environment and its largest slowdowns (terminal)",
    |material| ReportOutput::Text(draw(material.dossier, material.style, brief)),
)
.for_terminals();

/// The full terminal format.
pub static FULL: Format = Format::new(
    "full",
    "all values, verdicts, remarks, causes and differences (terminal)",
    |material| ReportOutput::Text(draw(material.dossier, material.style, table)),
)
.for_terminals();

/// Renders a `tare why` result, else calls `otherwise`.
pub fn draw(dossier: &Dossier, style: Style, otherwise: fn(&Dossier, Style) -> String) -> String {
    if dossier.why.is_some() {
        why(dossier, style)
    } else {
        otherwise(dossier, style)
    }
}

/// From this width on, values, difference and floor have separate columns.
const WIDE: usize = 120;
/// Absolute differences are shown below this time: additive overheads of short operations carry over between
/// machines.
const SHORT_NS: f64 = 100_000.0;

/// Renders the dossier.
pub fn table(dossier: &Dossier, style: Style) -> String {
    let style = style.drawable();
    let mut out = String::new();
    paragraph(&mut out, "", &trust(dossier), style);
    paragraph(&mut out, "", &title(dossier), style);
    let names = Names::new(dossier);
    let arms = compared_arms(dossier);
    out.push('\n');
    for (arm, cells) in &arms {
        let answer = answer::summary(&arm.id, cells, &names);
        paragraph(&mut out, "", &answer, style);
    }
    let marks = Marks::new(dossier);
    for (arm, cells) in &arms {
        out.push('\n');
        draw_arm(&mut out, arm, cells, dossier, &names, &marks, style);
    }
    if dossier.cells.is_empty() {
        out.push('\n');
        paragraph(&mut out, "", "Nothing was compared.", style);
    }
    pairs::draw(&mut out, dossier, &names, style);
    concurrency::draw(&mut out, dossier, style);
    usage::draw(&mut out, dossier, style);
    legend(&mut out, dossier, style);
    marks.explain(&mut out, dossier, style);
    publication::draw(&mut out, dossier, style);
    tail::draw(&mut out, dossier, style);
    out
}

/// Returns the arms that were compared with their baseline, each with its cells.
fn compared_arms(dossier: &Dossier) -> Vec<(&DossierArm, Vec<&DossierCell>)> {
    let arms = dossier.arms.iter();
    let arms = arms.map(|arm| (arm, dossier.cells_of(&arm.id)));
    arms.filter(|(_, cells)| !cells.is_empty()).collect()
}

/// Writes one catalogue entry: its name and title, and below it details, each after its prefix.
pub fn listed(out: &mut String, name: &str, title: &str, details: &[(&str, String)], style: Style) {
    out.push_str("  ");
    out.push_str(&Paint::Bold.apply(&harmless(name), style.colour));
    out.push('\n');
    paragraph(out, "    ", title, style);
    for (prefix, detail) in details {
        paragraph(out, &format!("      {prefix}"), detail, style);
    }
}

fn title(dossier: &Dossier) -> String {
    let blocks = dossier.cells.iter().chain(&dossier.aa);
    let blocks = blocks.map(|cell| cell.n_blocks).max().unwrap_or(0);
    let text = format!(
        "{} · {} · run {} · {}",
        harmless(&dossier.study.id),
        harmless(&dossier.study.title),
        harmless(&dossier.run),
        counted(blocks as usize, "block")
    );
    if dossier.complete {
        return text;
    }
    let how = match dossier.stopped_by {
        StoppedBy::Interrupted => "interrupted".to_owned(),
        StoppedBy::Failed => "ended by a failure".to_owned(),
        StoppedBy::Killed => "killed, or still running".to_owned(),
        other => format!("stopped by {other}"),
    };
    format!("{text} · INCOMPLETE, {how}")
}

/// Writes the meaning of the columns, if there is a ratio.
fn legend(out: &mut String, dossier: &Dossier, style: Style) {
    let mut ratios = dossier.cells.iter().filter_map(words::ratio);
    if ratios.next().is_none() {
        return;
    }
    out.push('\n');
    let mut text = "ratio 1.10: takes 1.10× as long as the baseline, or gives 1/1.10 of its throughput; in brackets the 95 % confidence interval.".to_owned();
    if style.width >= WIDE {
        text.push_str(" uncontended: the ratio of the best moments of the trials, hardly touched by other load.");
    }
    paragraph(out, "", &text, style);
}

fn draw_arm(
    out: &mut String,
    arm: &DossierArm,
    cells: &[&DossierCell],
    dossier: &Dossier,
    names: &Names<'_>,
    marks: &Marks,
    style: Style,
) {
    let baseline = cells[0].baseline.as_str();
    let heading = format!(
        "{}{} against {}{}, {}",
        words::purpose(arm),
        emulated(arm),
        baseline,
        dossier
            .arms
            .iter()
            .find(|other| other.id == baseline)
            .map(emulated)
            .unwrap_or_default(),
        sum(cells)
    );
    text::bold(out, &heading, style);
    let is_wide = style.width >= WIDE;
    let rows: Vec<Vec<Text>> = cells
        .iter()
        .map(|cell| row(cell, names, marks, is_wide))
        .collect();
    let columns = columns(&arm.id, baseline, is_wide);
    // Too narrow for columns: one paragraph per cell.
    table_or(out, &columns, &rows, style, |out, row, style| {
        let mut texts = row.iter().map(|cell| cell.text.as_str());
        let name = texts.next().unwrap_or("");
        let rest: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        paragraph(out, "", name, style);
        paragraph(out, "  ", &rest.join(" · "), style);
    });
}

/// Returns the note after an arm's name if its processor is emulated.
fn emulated(arm: &DossierArm) -> String {
    emulation(&arm.facts)
        .map(|detail| format!(" (EMULATED: {})", harmless(detail)))
        .unwrap_or_default()
}

/// Counts the cells with overhead, with gain, within the margin, and inconclusive.
fn sum(cells: &[&DossierCell]) -> String {
    let count = |words: &[Verdict]| {
        let held = cells.iter().filter(|cell| is_held_up(cell));
        held.filter(|cell| words.contains(&cell.verdict)).count()
    };
    let all = |words: &[Verdict]| {
        let all = cells.iter();
        all.filter(|cell| words.contains(&cell.verdict)).count()
    };
    let within = [
        Verdict::NegligibleCost,
        Verdict::Equivalent,
        Verdict::NegligibleGain,
    ];
    let n_doubtful = doubtful(cells).count();
    let parts = tare_model::rows! {
        (count(&[Verdict::MaterialCost, Verdict::Cost]), "with overhead"),
        (all(&within), "within the margin"),
        (count(&[Verdict::Gain, Verdict::MaterialGain]), "faster"),
        (all(&[Verdict::Inconclusive]), "inconclusive"),
        (n_doubtful, "not significant after correction"),
    };
    let message: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    format!("{}: {}", counted(cells.len(), "metric"), message.join(", "))
}

/// Returns the cells whose difference does not survive the correction for many cells.
fn doubtful<'a>(cells: &'a [&'a DossierCell]) -> impl Iterator<Item = &'a DossierCell> {
    let all = cells.iter().copied();
    all.filter(|cell| !is_held_up(cell) && claims_difference(cell))
        .filter(|cell| cell.verdict.is_cost() || cell.verdict.is_gain())
}

fn columns(arm: &str, baseline: &str, is_wide: bool) -> Vec<Column> {
    let cost = "ratio [95 % CI]";
    let mut columns = vec![Column::words("metric", 12)];
    if is_wide {
        columns.extend([baseline, arm, "difference", cost, "uncontended"].map(Column::number));
    } else {
        columns.push(Column {
            least: Some(13),
            ..Column::number(&format!("{baseline} → {arm}"))
        });
        columns.push(Column::number(cost));
    }
    columns.push(Column::words("verdict", 18));
    columns
}

fn row(cell: &DossierCell, names: &Names<'_>, marks: &Marks, is_wide: bool) -> Vec<Text> {
    let (of_base, of_env) = scales_for(cell.base.as_ref(), cell.env.as_ref(), &cell.unit);
    let digits = if is_wide { Digits::Full } else { Digits::Short };
    let cost = match words::ratio(cell) {
        Some(ratio) => interval(ratio, digits),
        None => words::effect_or_dash(cell),
    };
    let (mut words, tone) = words::verdict(cell);
    let additive = additive(cell);
    if let (Some(text), false) = (&additive, is_wide)
        && cell.verdict.is_difference()
    {
        words = format!("{words}, {text}");
    }
    words.push_str(&marks.for_cell(cell));
    let mut texts = vec![Text::plain(names.name(cell))];
    if is_wide {
        texts.extend([
            Text::plain(whole(cell.base.as_ref(), of_base)),
            Text::plain(whole(cell.env.as_ref(), of_env)),
            Text::plain(additive.unwrap_or_default()),
            Text::plain(cost),
            Text::plain(or_dash(cell.floor, |floor| interval(&floor, digits))),
        ]);
    } else {
        texts.extend([Text::plain(both(cell)), Text::plain(cost)]);
    }
    texts.push(Text::painted(words, Paint::for_tone(tone)));
    texts
}

/// Formats `92.1 → 107 ns`, both with the digits of the less precise one; `507 µs → 191 ms` if they are far apart.
pub(crate) fn both(cell: &DossierCell) -> String {
    let spans = [cell.base, cell.env];
    let (base, env) = scales_for(cell.base.as_ref(), cell.env.as_ref(), &cell.unit);
    let decimals = [(cell.base, base), (cell.env, env)]
        .map(|(span, scale)| span.map(|span| decimals_of_value(&span, scale, Digits::Short)));
    let Some(fewer) = decimals.into_iter().flatten().min() else {
        return "–".to_owned();
    };
    let shown = |span: Option<Span>, scale: Scale, decimals: usize| {
        or_dash(span, |span| {
            format!("{:.decimals$}", span.point / scale.factor)
        })
    };
    let is_far = matches!(spans, [Some(one), Some(other)] if are_far(&one, &other));
    let decimals = decimals.map(|own| if is_far { own.unwrap_or(fewer) } else { fewer });
    let (left, right) = (
        shown(cell.base, base, decimals[0]),
        shown(cell.env, env, decimals[1]),
    );
    if base == env {
        with_unit(&format!("{left} → {right}"), env)
    } else {
        format!("{} → {}", with_unit(&left, base), with_unit(&right, env))
    }
}

/// Formats the difference for metrics where it carries over to other machines: the times of short operations.
fn additive(cell: &DossierCell) -> Option<String> {
    let is_short = cell.unit == "ns" && cell.base.is_some_and(|base| base.point < SHORT_NS);
    is_short.then_some(())?;
    Some(difference(&cell.difference?, &cell.unit))
}

/// The maximum number of different details of a mark shown below the table.
const MOST_SEEN: usize = 2;

/// The marks after verdicts, numbered in order of appearance in the table.
struct Marks {
    flags: Vec<String>,
    /// Marks of most cells: explained once below the table instead of in every row.
    common: Vec<(String, usize)>,
}

impl Marks {
    fn new(dossier: &Dossier) -> Self {
        let mut counts: Vec<(String, usize)> = Vec::new();
        for flag in dossier.cells.iter().flat_map(marked) {
            match counts.iter_mut().find(|(id, _)| *id == flag.id) {
                Some((_, count)) => *count += 1,
                None => counts.push((flag.id.clone(), 1)),
            }
        }
        let is_common = |count: usize| count > 6 && count * 2 > dossier.cells.len();
        let (common, rare): (Vec<_>, Vec<_>) =
            counts.into_iter().partition(|(_, count)| is_common(*count));
        Self {
            flags: rare.into_iter().map(|(id, _)| id).collect(),
            common,
        }
    }

    /// Returns the marks of one cell, as printed after its verdict.
    fn for_cell(&self, cell: &DossierCell) -> String {
        let is_on = |id: &String| marked(cell).any(|flag| flag.id == *id);
        let numbers: Vec<String> = (1..)
            .zip(&self.flags)
            .filter(|(_, id)| is_on(id))
            .map(|(number, _)| superscript(number))
            .collect();
        if numbers.is_empty() {
            String::new()
        } else {
            format!(" {}", numbers.join("·"))
        }
    }

    /// Explains the marks, with details if only one cell has a mark or the mark makes readings doubtful.
    fn explain(&self, out: &mut String, dossier: &Dossier, style: Style) {
        if !self.flags.is_empty() || !self.common.is_empty() {
            out.push('\n');
        }
        for (id, count) in &self.common {
            let meaning = words::meaning(id).unwrap_or_default();
            let seen = seen(dossier, id);
            let line = format!(
                "in {count} of {} rows: {meaning}{seen}",
                dossier.cells.len()
            );
            paragraph(out, "* ", &line, style);
        }
        for (number, id) in (1..).zip(&self.flags) {
            let Some(meaning) = words::meaning(id) else {
                continue;
            };
            let seen = seen(dossier, id);
            let mark = format!("{} ", superscript(number));
            paragraph(out, &mark, &format!("{meaning}{seen}"), style);
        }
    }
}

/// Returns details of the cells with this mark, in brackets: at most `MOST_SEEN`, if only one cell has it or for a
/// doubt; else none.
fn seen(dossier: &Dossier, id: &str) -> String {
    let mut details: Vec<&str> = Vec::new();
    let mut n_cells = 0;
    for flag in dossier.cells.iter().flat_map(marked) {
        if flag.id == id {
            n_cells += 1;
            if !details.contains(&flag.detail.as_str()) {
                details.push(&flag.detail);
            }
        }
    }
    if n_cells > 1 && !words::is_doubt(id) {
        return String::new();
    }
    let shown: Vec<&str> = details.iter().copied().take(MOST_SEEN).collect();
    match details.len().saturating_sub(MOST_SEEN) {
        _ if shown.is_empty() => String::new(),
        0 => format!(" ({})", shown.join("; ")),
        more => format!(" ({}; and {more} more)", shown.join("; ")),
    }
}

/// Returns the flags of a cell that the table must show. `contended` implies the milder `steal`.
fn marked(cell: &DossierCell) -> impl Iterator<Item = &Flag> {
    let is_contended = words::is_flagged(cell, "contended");
    cell.flags.iter().filter(move |flag| {
        words::meaning(&flag.id).is_some() && !(is_contended && flag.id == "steal")
    })
}

fn superscript(number: usize) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let digits = number.to_string();
    digits
        .bytes()
        .map(|digit| DIGITS[usize::from(digit - b'0')])
        .collect()
}
