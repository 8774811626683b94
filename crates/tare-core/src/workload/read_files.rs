//! `read-files`: whole files of text read into memory, as a workload.
//!
//! The counterpart of two disk tests of Danilova and Sergeev (2024): with the defaults their large file, with
//! `kib = 1247`, `files = 10` and `how = "lines"` their small ones. What it cannot see: the device; neither could they.

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
