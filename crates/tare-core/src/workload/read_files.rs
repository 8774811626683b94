//! `read-files`: a workload that reads whole text files into memory.
//!
//! The counterpart of two disk tests of Danilova and Sergeev (2024): the defaults for their large file, `kib = 1247`,
//! `files = 10` and `how = "lines"` for their small ones.
//! Limits: does not reach the device; neither did theirs.

use super::probe_output::probe;

probe! {
    "read-files": "reading whole files of text into memory";
    params {
        "kib" = Int(12_464), Between(1, 4_194_304): "size of each file, KiB, 1 to 4194304";
        "files" = Int(1), Between(1, 64): "files that are read at the same time, 1 to 64";
        "how" = Text("whole"), OneOf(&["whole", "lines"]): "whole: at a stretch; lines: line by line";
    }
    "fs.read-files.time", Nanosecond, Lower, Disk: "Reading all files, each into a variable of its own, opening and closing included, all files at once.";
}
