//! Defines a report format: its name, its input and its output.

use tare_model::dossier::Dossier;

use tare_core::analyze::Series;

/// The minimum width in columns.
const LEAST: usize = 20;

/// Width and colour of terminal output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; less than 20 is treated as 20.
    pub width: usize,
    /// Whether to use colours. Colour is never the only carrier of information.
    pub colour: bool,
}

impl Style {
    /// Returns the style with at least the minimum width.
    pub(super) fn drawable(self) -> Self {
        Self {
            width: self.width.max(LEAST),
            ..self
        }
    }
}

/// The input of a format.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// The results of the run.
    pub dossier: &'a Dossier,
    /// Every reading of every arm; empty unless the format [needs](Format::needs_readings) them.
    pub readings: &'a [Series],
    /// Font files, the regular face first; empty unless the format [needs](Format::needs_fonts) them.
    pub fonts: &'a [Vec<u8>],
    /// Width and colours, for formats read in a terminal.
    pub style: Style,
}

/// One file of a format with several files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// The output of a format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReportOutput {
    /// Text, for stdout or a file.
    Text(String),
    /// One binary file.
    Bytes(Vec<u8>),
    /// Files for a directory, at least one.
    Files(Vec<File>),
    /// No output because the run has no such data; with the reason.
    Nothing(String),
}

/// A report format.
#[derive(Debug)]
pub struct Format {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its alias on the command line, if any.
    pub alias: Option<&'static str>,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// Whether it needs more than the dossier: every reading, and the slices of interleaved arms.
    pub needs_readings: bool,
    /// Whether it is read in the terminal that prints it, so that it may need plain letters.
    pub is_for_terminals: bool,
    /// Whether it draws letters itself and needs fonts.
    pub needs_fonts: bool,
    pub(super) make: fn(&Material<'_>) -> ReportOutput,
}

impl Format {
    /// Creates a format that needs only the dossier. `make` is a pure function: the same input gives the same text
    /// everywhere.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        make: fn(&Material<'_>) -> ReportOutput,
    ) -> Self {
        Self {
            name,
            alias: None,
            about,
            needs_readings: false,
            is_for_terminals: false,
            needs_fonts: false,
            make,
        }
    }

    /// Marks the format as read in a terminal.
    #[must_use]
    pub const fn for_terminals(self) -> Self {
        Self {
            is_for_terminals: true,
            ..self
        }
    }

    /// Adds an alias.
    #[must_use]
    pub(super) const fn or_called(self, alias: &'static str) -> Self {
        Self {
            alias: Some(alias),
            ..self
        }
    }

    /// Renders the run.
    pub fn make(&self, material: &Material<'_>) -> ReportOutput {
        (self.make)(material)
    }
}

/// Returns the message for a format that this `tare` was built without.
#[cfg(not(all(feature = "png", feature = "parquet")))]
pub(super) fn left_out(feature: &str) -> ReportOutput {
    ReportOutput::Nothing(format!(
        "this `tare` has no `{feature}`: that of `cargo xtask dist` has, and so has one built with `--features {feature}`"
    ))
}
