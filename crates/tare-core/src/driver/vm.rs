//! A virtual machine; no setting separates its mechanisms.

use super::{Declared, Files};

/// The driver's declaration.
pub static DECLARED: Declared = Declared {
    files: Files::Packed,
    links: &["tare"],
    switches: &["accel", "cache", "cpu", "disk", "nic"],
    ..Declared::new(
        "vm",
        "a virtual machine of QEMU's: a kernel of its own with nothing in it but the agent and the programs to run",
    )
};
