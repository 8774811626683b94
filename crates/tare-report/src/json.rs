//! The dossier as JSON, printed by `--json`, for other programs.
//!
//! Described by `schema/dossier-1.schema.json`; a test keeps the two in sync.

use tare_model::dossier::Dossier;

use super::format::{Format, ReportOutput};

/// The JSON format.
pub static JSON: Format = Format::new(
    "json",
    "the dossier, as in schema/dossier-1.schema.json",
    |material| ReportOutput::Text(to_string(material.dossier)),
);

/// Returns the dossier as indented JSON with a trailing newline.
pub fn to_string(dossier: &Dossier) -> String {
    let mut text = serde_json::to_string_pretty(dossier)
        .expect("a dossier holds nothing but texts, finite numbers and maps with text keys");
    text.push('\n');
    text
}
