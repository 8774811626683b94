//! `stat`: a workload that looks up paths.
//!
//! `/` is on the root file system of the arm (an overlay in most containers), the path below the working directory on
//! whatever is mounted there.
//! Limits: does not test cold caches.

use super::probe_output::probe;

probe! {
    "stat": "attributes of files that exist";
    Nanosecond, Lower, Kernel {
        "fs.stat.time", floor: "One stat of the root directory.";
        "fs.stat-path.time", floor: "One fstatat of a file four components below an open directory in the working directory.";
    }
}
