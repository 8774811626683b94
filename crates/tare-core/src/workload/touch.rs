//! `touch`: a workload for page faults.
//!
//! Detects nested paging, memory cgroups and balloons.
//! Limits: does not use huge pages; the same pages come back, so memory that a guest's host has to provide first is
//! not measured.

use super::probe_output::probe;

probe! {
    "touch": "first writes to fresh pages";
    "mem.touch.time", Nanosecond, Lower, Kernel: "The first write to a fresh anonymous page of 4 KiB, in a batch of 512.";
}
