//! Every reading as comma-separated values (RFC 4180): one row per block and, for interleaved arms, one per slice
//! below it.
//!
//! Text that a spreadsheet would take for a formula gets an apostrophe, because names can come from outside. Numbers
//! use a decimal point and enough digits to round-trip.
//!
//! Limits: trials without a reading are missing.

use std::fmt::Write as _;

use super::format::{Format, Material, ReportOutput};
use tare_core::analyze::Series;
use tare_core::foreign::harmless;

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

fn make(material: &Material<'_>) -> ReportOutput {
    let mut out = format!("{COLUMNS}\n");
    for series in material.readings {
        rows(&mut out, &material.dossier.run, series);
    }
    ReportOutput::Text(out)
}

fn rows(out: &mut String, run: &str, series: &Series) {
    let mut head = String::new();
    let path = series.path.map(|path| path.to_string()).unwrap_or_default();
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

/// Joins the parameters of a series: `depth=32 size=64k`.
pub(super) fn params(series: &Series) -> String {
    let params = series.params.0.iter();
    let params: Vec<String> = params
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    params.join(" ")
}

/// Quotes text as one field if needed, and neutralises formulas, including after a semicolon, which separates fields
/// in locales with a decimal comma.
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
