//! The dossier as JSON: what `--json` prints and other programs read.
//!
//! `schema/dossier-1.schema.json` describes it; a test holds the two together.

use tare_model::dossier::Dossier;

use super::format::{Format, Made};

/// The dossier.
pub static JSON: Format = Format::new(
    "json",
    "the dossier, as in schema/dossier-1.schema.json",
    |material| Made::Text(to_string(material.dossier)),
);

/// The dossier as indented JSON, with a line feed at its end.
pub fn to_string(dossier: &Dossier) -> String {
    let mut text = serde_json::to_string_pretty(dossier)
        .expect("a dossier holds nothing but texts, finite numbers and maps with text keys");
    text.push('\n');
    text
}
