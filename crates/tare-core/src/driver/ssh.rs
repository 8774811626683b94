//! A process on another machine, with unknown mechanisms.

use super::{Declared, Files};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    files: Files::Elsewhere,
    ..Declared::new(
        "ssh",
        "a process on another machine that your own `ssh` reaches without questions",
    )
};
