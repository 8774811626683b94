//! Reports: pure functions of a dossier.
//!
//! Nothing here opens a database, reads a clock or knows the terminal; what is drawn depends on the
//! dossier and the style alone, so that the same dossier is the same report everywhere.

pub mod json;
mod number;
pub mod svg;
pub mod terminal;
