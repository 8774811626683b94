//! `mounts`: the list of mounts, as a workload.
//!
//! The counterpart of "Get Logical Drives" of a published comparison of containers (2019).
//! What it cannot see: mounts of other namespaces; a container mostly has fewer of them, or more.

use super::probe_output::probe;

probe! {
    "mounts": "reading the list of mounts";
    "fs.mount-list.time", Nanosecond, Lower, Kernel: "Opening /proc/self/mountinfo, reading it to its end and closing it.";
}
