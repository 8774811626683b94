//! A plain process: no mechanism at all.

use super::{Declared, Files};

/// What is known of it.
pub static DECLARED: Declared = Declared {
    files: Files::Hosts,
    switches: &["cpuset"],
    ..Declared::new("host", "a plain process on this machine")
};
