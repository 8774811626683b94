//! JUnit report: one test case per row; inconclusive rows are skipped, with the bound.

use std::fmt::Write as _;

use super::shown;
use super::xml;
use tare_core::compare::{Comparison, Row, Word};

/// Returns the report. If the comparison is not a gate, nothing fails.
pub fn junit(comparison: &Comparison) -> String {
    let is_red = |row: &Row| comparison.gate && row.gated && row.word == Word::Slower;
    let is_open = |row: &Row| row.word == Word::Inconclusive;
    let rows = &comparison.rows;
    let (failures, skipped) = (
        rows.iter().filter(|row| is_red(row)).count(),
        rows.iter().filter(|row| is_open(row)).count(),
    );
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\" time=\"{:.3}\"",
        rows.len(),
        comparison.wall_s
    );
    let _ = writeln!(
        out,
        "<testsuites {counts}>\n<testsuite name=\"tare\" {counts}>"
    );
    for row in rows {
        let says = format!(
            "{}: {}{}",
            shown::says(row),
            row.change
                .as_ref()
                .map(|it| shown::change(it) + ", ")
                .unwrap_or_default(),
            shown::levels(row)
        );
        let _ = write!(
            out,
            "<testcase classname=\"tare.{}\" name=\"{}\" time=\"0\">",
            xml(comparison.label(&row.arm)),
            xml(&row.name)
        );
        if is_red(row) {
            let _ = write!(out, "<failure message=\"{}\"></failure>", xml(&says));
        } else if is_open(row) {
            let _ = write!(out, "<skipped message=\"{}\"/>", xml(&says));
        } else {
            let _ = write!(out, "<system-out>{}</system-out>", xml(&says));
        }
        out.push_str("</testcase>\n");
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
