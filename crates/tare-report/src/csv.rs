//! Every reading as comma-separated values (RFC 4180): one row a block, and where arms took turns one a slice below it.
//!
//! What a spreadsheet would take for a formula is preceded by an apostrophe, for names come from anywhere. Numbers have
//! a point and as many digits as bring the same number back. What it cannot see: trials that left nothing.

use std::fmt::Write as _;

use super::format::{Format, Made, Material};
use tare_core::analyze::Series;
use tare_core::foreign::harmless;

/// The columns.
const COLUMNS: &str = "run,arm,workload,params,path,instances,metric,unit,better,block,launch,position,slice,value,best";

/// The table of readings.
pub static CSV: Format = Format {
    needs_readings: true,
    ..Format::new(
        "csv",
        "every block and slice of every arm, one row each",
        make,
    )
};

fn make(material: &Material<'_>) -> Made {
    let mut out = format!("{COLUMNS}\n");
    for series in material.readings {
        rows(&mut out, &material.dossier.run, series);
    }
    Made::Text(out)
}

fn rows(out: &mut String, run: &str, series: &Series) {
    let mut head = String::new();
    let path = series
        .path
        .map_or_else(String::new, |path| path.to_string());
    for text in [run, &series.arm, &series.workload, &params(series), &path] {
        let _ = write!(head, "{},", quoted(text));
    }
    let _ = write!(
        head,
        "{},{},{},{}",
        series.instances,
        quoted(series.metric),
        series.unit,
        series.better
    );
    for point in &series.points {
        let place = format!("{head},{},{},{}", point.block, point.launch, point.position);
        let _ = writeln!(out, "{place},,{},{}", point.typical, point.best);
        for (number, slice) in point.slices.iter().enumerate() {
            let _ = writeln!(out, "{place},{number},{slice},");
        }
    }
}

/// The parameters of a series in one text: `depth=32 size=64k`.
pub(super) fn params(series: &Series) -> String {
    let params = series.params.0.iter();
    let params: Vec<String> = params
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    params.join(" ")
}

/// A text as one field: in quotes where it must be, and never a formula; nor its part behind a semicolon, which
/// separates fields where the comma is the decimal point.
fn quoted(text: &str) -> String {
    let mut parts = Vec::new();
    for part in harmless(text).split(';') {
        let is_formula = part.trim_start().starts_with(['=', '+', '-', '@']);
        let mark = if is_formula { "'" } else { "" };
        parts.push(format!("{mark}{part}"));
    }
    let text = parts.join(";");
    if text.contains([',', '"', ';']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_one_field_and_no_formula() {
        assert_eq!(quoted("plain name"), "plain name");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=1+1"), "'=1+1");
        assert_eq!(quoted("x; =1+1;y"), "\"x;' =1+1;y\"");
        assert_eq!(quoted("a\nb\u{202e}"), "a\\nb\\u{202e}");
    }
}
