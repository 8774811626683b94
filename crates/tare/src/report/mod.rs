//! Reports: pure functions of a dossier.
//!
//! Nothing here opens a database, reads a clock or knows the terminal; what is drawn depends on the
//! dossier and the style alone, so that the same dossier is the same report everywhere. [`mod@format`] lists the forms.

mod answer;
mod axis;
pub mod csv;
pub mod format;
mod groups;
pub mod html;
pub mod json;
pub mod jsonl;
pub mod latex;
pub mod markdown;
mod method;
mod number;
pub mod svg;
pub mod terminal;
mod words;

pub use format::{FORMATS, Format, Made, Material};
