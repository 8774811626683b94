//! `fsync`: measures the time until a small write is durable.
//!
//! Limits: does not see whether the device kept its promise; a value below about thirty microseconds means memory, or
//! a flush that is acknowledged without being done.

use super::probe_output::probe;

probe! {
    "fsync": "a small write and its synchronisation to the device";
    "disk.fsync.time", Nanosecond, Lower, Disk: "Time of a `pwrite` of 4 KiB over the first block of a file and of `fsync`.";
}
