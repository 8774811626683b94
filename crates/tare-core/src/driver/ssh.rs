//! A process on another machine, of which nothing is known here.

use super::{Declared, Files};

/// What is known of it.
pub static DECLARED: Declared = Declared {
    files: Files::Elsewhere,
    ..Declared::new(
        "ssh",
        "a process on another machine that your own `ssh` reaches without questions",
    )
};
