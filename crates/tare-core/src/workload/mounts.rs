//! `mounts`: a workload that reads the list of mounts.
//!
//! The counterpart of "Get Logical Drives" of a published comparison of containers (2019).
//! Limits: reads only its mount namespace; a container usually has a different number of mounts.

use super::probe_output::probe;

probe! {
    "mounts": "reading the list of mounts";
    "fs.mount-list.time", Nanosecond, Lower, Kernel: "Opening /proc/self/mountinfo, reading it to its end and closing it.";
}
