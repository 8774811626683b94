//! `page-load`: a workload that lists, opens and reads a tree of small files.
//!
//! A published comparison of storage (2025) set out to explain this, the page load of a web application, but measured
//! random reads of one large file.
//! Limits: does not include the application's work.

use super::probe_output::probe;

probe! {
    "page-load": "listing folders and looking at, opening and reading many small files";
    params {
        "files" = Int(200), Between(1, 100_000): "files in the tree, 1 to 100000, in folders of 50";
        "bytes" = Int(4096), Between(0, 1 << 20): "bytes in each file, 0 to 1048576";
    }
    Nanosecond, Lower, Disk {
        "fs.page-load.time": "One pass over the tree: listing every folder; stat, open, fstat, read and close of every file.";
        "fs.source-file.time": "One file: stat, open, fstat, read to its end, close.";
        "fs.missing-file.time": "One stat of a file that is not there.";
    }
}
