//! SARIF 2.1.0 report with one result per slower row, for code hosts that show such files.

use serde_json::json;

use super::shown;
use tare_core::compare::{Comparison, Word};
use tare_core::foreign::harmless;

/// Returns the SARIF log.
pub fn sarif(comparison: &Comparison) -> String {
    let slower = comparison
        .rows
        .iter()
        .filter(|row| row.gated && row.word == Word::Slower);
    let results: Vec<serde_json::Value> = slower
        .map(|row| {
            let change = row.change.as_ref().map(shown::change).unwrap_or_default();
            json!({
                "ruleId": "slower",
                "level": if comparison.gate { "error" } else { "warning" },
                "message": {"text": format!(
                    "{} of {}: {change}, {} ({})",
                    row.name,
                    harmless(comparison.label(&row.arm)),
                    shown::levels(row),
                    shown::says(row),
                )},
                "partialFingerprints": {"row": row.name},
            })
        })
        .collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "tare",
                "version": comparison.tare,
                "rules": [{
                    "id": "slower",
                    "shortDescription": {"text": "Slower than the base beyond margin and floor"},
                }],
            }},
            "results": results,
        }],
    });
    format!("{log:#}\n")
}
