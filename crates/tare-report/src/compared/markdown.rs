//! Markdown summary for a pull request, at most twelve rows and 4 KiB.

use std::fmt::Write as _;

use super::shown;
use crate::number::or_dash;
use tare_core::compare::{Comparison, Row, Word};
use tare_core::foreign::harmless;

/// Maximum number of table rows.
const ROWS_MOST: usize = 12;
/// Maximum size in bytes.
const BYTES_MOST: usize = 4096;
/// Maximum characters of an external text.
const TEXT_MOST: usize = 60;

/// Returns the summary. If not all rows fit, the more significant ones are kept; rows keep their order.
pub fn summary(comparison: &Comparison) -> String {
    let (exact, rows): (Vec<&Row>, Vec<&Row>) = comparison.rows.iter().partition(|row| row.exact);
    let mut count = rows.len().min(ROWS_MOST);
    loop {
        let text = drawn(comparison, &chosen(&rows, count), &rows, &exact);
        if text.len() <= BYTES_MOST || count == 0 {
            return text;
        }
        count -= 1;
    }
}

fn chosen<'a>(rows: &[&'a Row], count: usize) -> Vec<&'a Row> {
    if rows.len() <= count {
        return rows.to_vec();
    }
    let mut places: Vec<usize> = (0..rows.len()).collect();
    places.sort_by_key(|place| match rows[*place].word {
        Word::Slower => 0,
        Word::Inconclusive => 1,
        Word::Faster => 2,
        Word::Same => 3,
    });
    places.truncate(count);
    places.sort_unstable();
    places.into_iter().map(|place| rows[place]).collect()
}

fn drawn(comparison: &Comparison, table: &[&Row], rows: &[&Row], exact: &[&Row]) -> String {
    let mut out = format!("### {}\n", text(&shown::headline(comparison), 300));
    let labels: Vec<String> = comparison
        .sides
        .iter()
        .take(4)
        .map(|side| format!("{} {}", text(&side.arm, 20), text(&side.label, TEXT_MOST)))
        .collect();
    let blocks = comparison.blocks();
    let _ = writeln!(
        out,
        "{} · {:.0} s on this machine, {}, {blocks}\n",
        labels.join(" → "),
        comparison.wall_s,
        text(&comparison.how, 100),
    );
    if !table.is_empty() {
        out.push_str("| | against the base | base against itself | |\n|---|---|---|---|\n");
    }
    for row in table {
        let change = or_dash(row.change.as_ref(), shown::change);
        let control = row.control.as_ref().map(shown::change).unwrap_or_default();
        let name = text(&row.name, 30);
        let name = if row.word == Word::Slower && row.gated {
            format!("**{name}**")
        } else {
            name
        };
        let _ = writeln!(
            out,
            "| {name} | {change} · {} | {control} | {} |",
            shown::levels(row),
            text(&shown::says(row), 100)
        );
    }
    let mut more = Vec::new();
    if rows.len() > table.len() {
        more.push(format!("{} more rows", rows.len() - table.len()));
    }
    let differing = exact.iter().filter(|row| row.base != row.head).take(6);
    more.extend(differing.map(|row| format!("{}: {}", text(&row.name, 30), shown::levels(row))));
    let n_same = exact.iter().filter(|row| row.base == row.head).count();
    if n_same > 0 {
        more.push(format!("{n_same} counts exactly the same"));
    }
    more.extend(comparison.notes.iter().take(4).map(|note| text(note, 200)));
    if !more.is_empty() {
        let _ = writeln!(out, "\n<details>{}</details>", more.join(" · "));
    }
    if comparison.gate {
        out.push_str("\nRed for no reason in fewer than 1 of 100 runs. ");
    }
    let _ = writeln!(out, "Seed {}.", comparison.seed);
    out
}

/// Escapes external text for Markdown and HTML and cuts it to `most` characters.
fn text(foreign: &str, most: usize) -> String {
    let mut out = String::new();
    let foreign = harmless(foreign);
    let is_long = foreign.chars().count() > most;
    for letter in foreign.chars().take(if is_long { most - 1 } else { most }) {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // A mention or a reference would notify people.
            '@' => out.push_str("&#64;"),
            '#' => out.push_str("&#35;"),
            '|' | '`' | '*' | '_' | '[' | ']' | '!' | '~' | '\\' | '$' => {
                let _ = write!(out, "&#{};", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    if is_long {
        out.push('…');
    }
    // A URL would become a link.
    out.replace("://", "&#58;//")
}
