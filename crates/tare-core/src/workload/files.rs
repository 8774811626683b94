//! `files`: a workload on many small files.
//!
//! Measures the metadata operations of the file system under the working directory, which often differs between arms;
//! the mount is one of an arm's facts.
//! Limits: does not reach the device, because nothing is synchronised.

use super::probe_output::probe;

probe! {
    "files": "creating, writing and removing files of 4 KiB";
    Nanosecond, Lower, Disk {
        "fs.create.time": "One open with O_CREAT and O_EXCL, in a batch of 16 in one directory.";
        "fs.write.time": "Writing 4 KiB to a new file and closing it, in a batch of 16.";
        "fs.unlink.time": "Removing a file of 4 KiB by name, in a batch of 16.";
    }
}
