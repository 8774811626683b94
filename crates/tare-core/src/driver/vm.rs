//! A virtual machine: nothing of it is taken apart by a setting.

use super::{Declared, Files};

/// What is known of it.
pub static DECLARED: Declared = Declared {
    files: Files::Packed,
    links: &["tare"],
    switches: &["accel", "cache", "cpu", "disk", "nic"],
    ..Declared::new(
        "vm",
        "a virtual machine of QEMU's: a kernel of its own with nothing in it but the agent and the programs to run",
    )
};
