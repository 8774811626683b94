//! The comparison table for a terminal.

use super::shown;
use crate::number::or_dash;
use crate::svg::shortened;
use tare_core::compare::{Comparison, Row};
use tare_core::foreign::harmless;

/// Maximum columns of a label.
const LABEL_MOST: usize = 60;

/// Returns headline, table and notes; lines are at most `width` columns if words allow it.
pub fn terminal(comparison: &Comparison, width: usize) -> String {
    let mut lines = vec![harmless(&shown::headline(comparison)), String::new()];
    for (place, side) in comparison.sides.iter().enumerate() {
        let note = if place == 0 { "  (base)" } else { "" };
        let label = shortened(&harmless(&side.label), LABEL_MOST);
        lines.push(format!("  {}: {label}{note}", side.arm));
    }
    lines.push(String::new());
    let (exact, rows): (Vec<&Row>, Vec<&Row>) = comparison.rows.iter().partition(|row| row.exact);
    table(comparison, &rows, &mut lines);
    counts(&exact, &mut lines);
    if !comparison.rows.is_empty() {
        lines.push(String::new());
        let blocks = comparison.blocks();
        lines.push(format!(
            "{blocks} in {:.0} s · {} · seed {}",
            comparison.wall_s,
            harmless(&comparison.how),
            comparison.seed
        ));
    }
    lines.extend(comparison.notes.iter().map(|note| harmless(note)));
    if let Some(run) = comparison.runs.last() {
        lines.push(format!("every block: tare show {run}"));
    }
    let lines = lines.iter().flat_map(|line| wrapped(line, width));
    lines.map(|line| line + "\n").collect()
}

/// Writes the rows with intervals, each with its verdict below.
fn table(comparison: &Comparison, rows: &[&Row], lines: &mut Vec<String>) {
    if rows.is_empty() {
        return;
    }
    let control = if comparison.paired {
        "base against itself"
    } else {
        ""
    };
    let head = ["", "against base", "base → other", control];
    let mut cells = vec![head.map(str::to_owned)];
    for row in rows {
        let change = or_dash(row.change.as_ref(), shown::change);
        let control = row.control.as_ref().map(shown::change).unwrap_or_default();
        cells.push([row.name.clone(), change, shown::levels(row), control]);
    }
    let width = |column: usize| {
        let widths = cells.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let widths = [0, 1, 2, 3].map(width);
    for (place, row) in cells.iter().enumerate() {
        let columns = row.iter().zip(widths);
        let padded: Vec<String> = columns
            .map(|(text, width)| format!("{text:<width$}"))
            .collect();
        lines.push(format!("  {}", padded.join("  ")).trim_end().to_owned());
        if let Some(row) = place.checked_sub(1).map(|place| rows[place]) {
            lines.push(format!("    {}", shown::says(row)));
        }
    }
}

/// Writes the exact rows: those that differ with values, the others by name.
fn counts(exact: &[&Row], lines: &mut Vec<String>) {
    let is_same = |row: &&&Row| row.base == row.head;
    for row in exact.iter().filter(|row| !is_same(row)) {
        lines.push(format!(
            "  {}: {} ({})",
            row.name,
            shown::levels(row),
            shown::says(row)
        ));
    }
    let same: Vec<&str> = exact
        .iter()
        .filter(is_same)
        .map(|row| row.name.as_str())
        .collect();
    if !same.is_empty() {
        lines.push(format!("  exactly the same: {}", same.join(", ")));
    }
}

/// Wraps text at `width` columns between words; keeps the indent of the first line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let indent = text.len() - text.trim_start().len();
    let mut rest = text;
    while let Some((end, _)) = rest.char_indices().nth(width) {
        let least = if lines.is_empty() { indent } else { 0 };
        let Some(at) = rest[..end].rfind(' ').filter(|at| *at > least) else {
            break;
        };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}
