//! `lines`: a workload that writes a text line by line and reads it back.
//!
//! The counterpart of the four disk tests of Danilova and Sergeev (2024): `lines = 8000000` for their large file,
//! `files = 10` and `lines = 800000` for their small ones.
//! Limits: does not reach the device; neither did theirs.

use super::probe_output::probe;

probe! {
    "lines": "writing a text line by line and reading it back";
    params {
        "lines" = Int(20000), Between(100, 100_000_000): "lines in each file, 100 to 100000000";
        "line_bytes" = Int(31), Between(2, 4096): "characters in a line, its end included, 2 to 4096";
        "files" = Int(1), Between(1, 64): "files that are written and read at the same time, 1 to 64";
    }
    Nanosecond, Lower, Disk {
        "fs.line-write.time": "Writing one line through a buffer of 8 KiB to a file, opening and closing included, all files at once.";
        "fs.line-write-direct.time": "Writing one line by a `write` of its own to a file, all files at once.";
        "fs.line-read.time": "Reading one line of a file that was just written, all files at once.";
    }
}
