//! A plain process, without any mechanism.

use super::{Declared, Files};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    files: Files::Hosts,
    switches: &["cpuset"],
    ..Declared::new("host", "a plain process on this machine")
};
