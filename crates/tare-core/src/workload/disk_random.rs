//! `disk-random`: 4 KiB direct reads at random offsets, one at a time and 32 in flight.
//!
//! One at a time is measured both by `pread` and by io_uring: if io_uring is blocked, the first remains; otherwise
//! their difference is the interface's overhead.
//! Limits: does not see caches below the block device.

use super::probe_output::probe;

probe! {
    "disk-random": "small reads at random places of a file, past the page cache";
    params {
        "file_mib" = Int(64), Between(1, 65_536): "size of the file in MiB, 1 to 65536; larger than the caches below is better";
    }
    Nanosecond, Lower, Disk {
        "disk.random-read-sync.time": "Time of one direct `pread` of 4 KiB at a random place.";
        "disk.random-read-qd1.time": "Time of one direct read of 4 KiB at a random place by io_uring, submission and wait in one call.";
    }
    OperationPerSecond, Higher, Disk {
        "disk.random-read-qd32.rate": "Direct reads of 4 KiB at random places completed per second, 32 in flight by io_uring.";
    }
}
