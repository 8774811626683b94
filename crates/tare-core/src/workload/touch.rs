//! `touch`: page faults, as a workload.
//!
//! Feels nested paging, memory cgroups and balloons. What it cannot see: huge pages, which it refuses, and
//! memory that a guest's host has to provide first, because the same pages come back.

use super::probe_output::probe;

probe! {
    "touch": "first writes to fresh pages";
    "mem.touch.time", Nanosecond, Lower, Kernel: "The first write to a fresh anonymous page of 4 KiB, in a batch of 512.";
}
