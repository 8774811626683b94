//! The forms in which a run is told, one file each, and the list of them.
//!
//! `tare report --format` and its help are made from the list; nothing else names a form. A new one is a file with a
//! [`Format`] and a line in [`FORMATS`].

use tare_model::dossier::Dossier;

use super::terminal::Style;
use super::{csv, html, json, jsonl, latex, markdown, svg, terminal};
use crate::analyze::Series;

/// What a form is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// What the run found out.
    pub dossier: &'a Dossier,
    /// Every reading of every arm; empty for forms that do not [ask](Format::needs_readings) for them.
    pub readings: &'a [Series],
    /// How wide, with which colours and letters; for forms that are read in a terminal.
    pub style: Style,
}

/// A file of a form that is several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub content: String,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// One text, for standard output or a file.
    Text(String),
    /// Files for a folder, at least one.
    Files(Vec<File>),
    /// Nothing, because the run has nothing of the kind; with the reason.
    Nothing(String),
}

/// One form in which a run is told. A pure function: the same material is the same text everywhere.
pub trait Format: Sync {
    /// What it is called on the command line.
    fn name(&self) -> &'static str;
    /// What it is for, in a line.
    fn about(&self) -> &'static str;
    /// Whether it tells more than the dossier holds: every reading, and the slices of those that took turns.
    fn needs_readings(&self) -> bool {
        false
    }
    /// Tells the run.
    fn make(&self, material: &Material<'_>) -> Made;
}

/// Every form, in the order in which help lists them.
pub static FORMATS: &[&dyn Format] = &[
    &terminal::Table,
    &terminal::Full,
    &html::Html,
    &markdown::Markdown,
    &latex::Latex,
    &svg::Svg,
    &csv::Csv,
    &jsonl::JsonLines,
    &json::Json,
];

/// The form of this name.
pub fn find(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_listed_once_and_found_by_its_name() {
        for format in FORMATS {
            let same = FORMATS.iter().filter(|it| it.name() == format.name());
            assert_eq!(same.count(), 1, "{}", format.name());
            assert!(find(format.name()).is_some());
            assert!(format.about().len() > 10 && !format.about().ends_with('.'));
        }
        assert!(find("word").is_none());
    }
}
