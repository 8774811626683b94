//! What a form is in which a run is told, what it is made of and what it makes.

use tare_model::dossier::Dossier;

use super::terminal::Style;
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
