//! Compares two runs in a terminal: how many overheads agree, then one row per metric, differences first.
//!
//! Limits: does not show why they differ; it prints the known facts of both machines.

use std::fmt::Write as _;

use tare_model::dossier::Dossier;
use tare_model::fact;
use tare_stats::Verdict;

use super::Style;
use super::text::{Column, Paint, Text, paragraph, table_or};
use crate::groups::Group;
use crate::number::{glance, or_dash, percent};
use crate::words::{self, Names, Tone};
use tare_core::analyze::run_comparison::{Row, RunComparison, beside as set_beside};
use tare_core::foreign::{NO_BREAK, harmless};

/// The names of the two runs in the text.
#[derive(Debug, Clone, Copy)]
pub struct Called {
    /// As a name: `A`.
    name: [&'static str; 2],
    /// As a location: `in A`.
    place: [&'static str; 2],
}

impl Called {
    /// A run from elsewhere, and its repeat here.
    pub const HERE: Self = Self {
        name: ["there", "here"],
        place: ["there", "here"],
    };
    /// Two runs of one store.
    pub const A_AND_B: Self = Self {
        name: ["A", "B"],
        place: ["in A", "in B"],
    };
}

/// Renders the comparison of two runs.
pub fn two_runs(first: &Dossier, second: &Dossier, called: Called, style: Style) -> String {
    let style = style.drawable();
    let set = set_beside(first, second);
    let mut out = String::new();
    for (dossier, word) in [first, second].into_iter().zip(called.name) {
        let text = format!("{word}: {}", describe(dossier));
        paragraph(&mut out, "", &text, style);
    }
    out.push('\n');
    paragraph(&mut out, "", &sum(&set, called), style);
    let names = Names::new(second);
    let mut rows: Vec<&Row<'_>> = set.rows.iter().collect();
    rows.sort_by_key(|row| order(row));
    if !rows.is_empty() {
        out.push('\n');
        draw(&mut out, &rows, &names, called, style);
    }
    for (cells, word, dossier) in [
        (&set.only_first, called.place[0], first),
        (&set.only_second, called.place[1], second),
    ] {
        if cells.is_empty() {
            continue;
        }
        let names = Names::new(dossier);
        let named = cells
            .iter()
            .map(|cell| format!("{} in {}", names.name(cell), cell.arm));
        let text = format!("Only {word}: {}.", named.collect::<Vec<_>>().join(", "));
        paragraph(&mut out, "", &text, style);
    }
    out
}

/// Describes a run and its machine.
pub(crate) fn describe(dossier: &Dossier) -> String {
    let [processor, kernel] = machine(dossier);
    format!(
        "run {} of {}, Tare {}; processor {processor}; kernel {kernel}",
        harmless(&dossier.run),
        harmless(&dossier.started),
        harmless(&dossier.tare)
    )
}

/// Returns the processor and the kernel of the baseline.
pub(crate) fn machine(dossier: &Dossier) -> [String; 2] {
    let baseline = words::baseline(dossier);
    [fact::CPU_MODEL, fact::KERNEL_RELEASE].map(|name| {
        let value = baseline.and_then(|arm| arm.facts.get(name));
        value.map_or_else(|| "not recorded".to_owned(), |value| harmless(value))
    })
}

/// Returns the sort order of a row: 0 if the overhead differs, 1 if inconclusive, 2 if it is the same, 3 if there is
/// none.
pub(crate) fn order(row: &Row<'_>) -> u8 {
    match row.verdict {
        _ if row.quotient.is_none() => 3,
        Verdict::Equivalent | Verdict::NegligibleCost | Verdict::NegligibleGain => 2,
        Verdict::Inconclusive => 1,
        _ => 0,
    }
}

/// Summarises the agreement of two runs in a sentence or two.
pub(crate) fn sum(set: &RunComparison<'_>, called: Called) -> String {
    let count = |wanted: u8| set.rows.iter().filter(|row| order(row) == wanted).count();
    let [differ, open, same, none] = [0, 1, 2, 3].map(count);
    let compared = differ + open + same;
    if compared == 0 {
        return format!(
            "There is no cost that was measured both {} and {}.",
            called.place[0], called.place[1]
        );
    }
    let mut parts = vec![format!(
        "{same} of {compared} costs are the same within their margins"
    )];
    if differ > 0 {
        parts.push(format!(
            "{differ} differ{}",
            if differ == 1 { "s" } else { "" }
        ));
    }
    if open > 0 {
        parts.push(format!(
            "{open} {} open",
            if open == 1 { "is" } else { "are" }
        ));
    }
    let mut text = format!("{}.", parts.join(", "));
    let verdicts = set.rows.iter().filter(|row| order(row) != 3);
    let reversed = verdicts.filter(|row| contradict(row)).count();
    if reversed > 0 {
        let plural = if reversed == 1 { "s" } else { "" };
        let _ = write!(
            text,
            " {reversed} cost{plural} more in one run and less in the other."
        );
    }
    if differ > 0 {
        let by_chance = (compared as f64 * 0.05).ceil();
        let _ = write!(
            text,
            " Among {compared} comparisons at 95{NO_BREAK}% up to about {by_chance} may differ by chance."
        );
    }
    if none > 0 {
        let has = if none == 1 { "has" } else { "have" };
        let _ = write!(text, " {none} {has} no ratio in one of the runs.");
    }
    text
}

/// Whether one run reports an overhead and the other a gain.
fn contradict(row: &Row<'_>) -> bool {
    let [first, second] = [row.first, row.second].map(Group::for_cell);
    matches!(
        (first, second),
        (Group::More, Group::Less) | (Group::Less, Group::More)
    )
}

/// Returns the verdict of a row, with any qualification of its cells, and its tone.
pub(crate) fn verdict_word(row: &Row<'_>, called: Called) -> (String, Tone) {
    let (mut word, tone) = unqualified(row, called);
    if row.quotient.is_some() {
        for qualification in row.qualifications() {
            word.push_str(", ");
            word.push_str(qualification);
        }
    }
    (word, tone)
}

fn unqualified(row: &Row<'_>, called: Called) -> (String, Tone) {
    match order(row) {
        3 => ("no ratio".to_owned(), Tone::Open),
        2 => (
            format!("same within {}", percent(row.second.margin)),
            Tone::Nothing,
        ),
        1 => ("inconclusive".to_owned(), Tone::Open),
        _ if row.verdict.is_cost() => (format!("slower {}", called.place[1]), Tone::Cost),
        _ => (format!("faster {}", called.place[1]), Tone::Less),
    }
}

fn draw(out: &mut String, rows: &[&Row<'_>], names: &Names<'_>, called: Called, style: Style) {
    let [first, second] = called.name;
    let columns = [
        Column::words("metric, arm", 14),
        Column::number(&format!("{first} ×")),
        Column::number(&format!("{second} ×")),
        Column::number(&format!("{second} ÷ {first}")),
        Column::words("", 8),
    ];
    let texts: Vec<Vec<Text>> = rows
        .iter()
        .map(|row| {
            let (said, tone) = verdict_word(row, called);
            let quotient = or_dash(row.quotient.as_ref(), glance);
            let name = format!("{}, {}", names.name(row.second), row.second.arm);
            vec![
                Text::plain(name),
                Text::plain(words::effect_or_dash(row.first)),
                Text::plain(words::effect_or_dash(row.second)),
                Text::plain(quotient),
                Text::painted(said, Paint::for_tone(tone)),
            ]
        })
        .collect();
    table_or(out, &columns, &texts, style, |out, row, style| {
        paragraph(out, "", &row[0].text, style);
        let numbers = [
            format!("{first} {}", row[1].text),
            format!("{second} {}", row[2].text),
            row[4].text.clone(),
        ];
        paragraph(out, "  ", &numbers.join(" · "), style);
    });
}
