//! `files`: many small files, as a workload.
//!
//! The bookkeeping of whatever file system lies under the working directory, which is often not the same in two
//! arms; the mount is among the facts of an arm. What it cannot see: the device, for nothing is synchronised.

use super::probe_output::probe;

probe! {
    "files": "creating, writing and removing files of 4 KiB";
    "fs.create.time", Nanosecond, Lower, Disk: "One open with O_CREAT and O_EXCL, in a batch of 16 in one directory.";
    "fs.write.time", Nanosecond, Lower, Disk: "Writing 4 KiB to a new file and closing it, in a batch of 16.";
    "fs.unlink.time", Nanosecond, Lower, Disk: "Removing a file of 4 KiB by name, in a batch of 16.";
}
