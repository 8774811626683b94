//! What a form is in which a run is told, what it is made of and what it makes.

use tare_model::dossier::Dossier;

use tare_core::analyze::Series;

/// Narrower than this nothing fits, in columns.
const LEAST: usize = 20;

/// How to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; less than 20 is taken as 20.
    pub width: usize,
    /// Whether to use colours. Nothing is said by colour alone.
    pub colour: bool,
}

impl Style {
    /// With columns in which something fits.
    pub(super) fn drawable(self) -> Self {
        Self {
            width: self.width.max(LEAST),
            ..self
        }
    }
}

/// What a form is made of.
#[derive(Debug, Clone, Copy)]
pub struct Material<'a> {
    /// What the run found out.
    pub dossier: &'a Dossier,
    /// Every reading of every arm; empty for forms that do not [ask](Format::needs_readings) for them.
    pub readings: &'a [Series],
    /// Files of fonts, the first of the plain face; empty for forms that do not [ask](Format::needs_fonts) for them.
    pub fonts: &'a [Vec<u8>],
    /// How wide, with which colours; for forms that are read in a terminal.
    pub style: Style,
}

/// A file of a form that is several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its name, without a folder.
    pub name: String,
    /// What is in it.
    pub content: Vec<u8>,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Made {
    /// One text, for standard output or a file.
    Text(String),
    /// One file that is no text.
    Bytes(Vec<u8>),
    /// Files for a folder, at least one.
    Files(Vec<File>),
    /// Nothing, because the run has nothing of the kind; with the reason.
    Nothing(String),
}

/// One form in which a run is told.
#[derive(Debug)]
pub struct Format {
    /// What it is called on the command line.
    pub name: &'static str,
    /// What else it may be called there.
    pub alias: Option<&'static str>,
    /// What it is for, in a line.
    pub about: &'static str,
    /// Whether it tells more than the dossier holds: every reading, and the slices of those that took turns.
    pub needs_readings: bool,
    /// Whether it is read where it is printed, so that it may need plain letters there.
    pub is_for_terminals: bool,
    /// Whether it draws letters itself.
    pub needs_fonts: bool,
    pub(super) make: fn(&Material<'_>) -> Made,
}

impl Format {
    /// A form of the dossier alone. `make` is a pure function: the same material is the same text everywhere.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        make: fn(&Material<'_>) -> Made,
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

    /// The same, to be read where it is printed.
    #[must_use]
    pub const fn for_terminals(self) -> Self {
        Self {
            is_for_terminals: true,
            ..self
        }
    }

    /// The same with another name beside its own.
    #[must_use]
    pub(super) const fn or_called(self, alias: &'static str) -> Self {
        Self {
            alias: Some(alias),
            ..self
        }
    }

    /// Tells the run.
    pub fn make(&self, material: &Material<'_>) -> Made {
        (self.make)(material)
    }
}

/// What is said of a form that this `tare` was built without.
#[cfg(not(all(feature = "png", feature = "parquet")))]
pub(super) fn left_out(feature: &str) -> Made {
    Made::Nothing(format!(
        "this `tare` has no `{feature}`: that of `cargo xtask dist` has, and so has one built with `--features {feature}`"
    ))
}
