//! `directory`: a workload on directories.
//!
//! The counterpart of "Get Current Directory" and "Create Directory" of a published comparison of containers (2019).
//! Limits: does not reach the device, because nothing is synchronised.

use super::probe_output::probe;

probe! {
    "directory": "asking for the working directory, making, removing and listing directories";
    Nanosecond, Lower, Kernel {
        "fs.getcwd.time": "One `getcwd` system call in the worker's directory.";
    }
    Nanosecond, Lower, Disk {
        "fs.mkdir.time": "Making one directory, in a batch of 16 in one directory.";
        "fs.rmdir.time": "Removing one empty directory, in a batch of 16.";
        "fs.readdir.time": "Opening a directory of 64 entries, reading all of them and closing it.";
    }
}
