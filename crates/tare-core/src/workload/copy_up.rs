//! `copy-up`: measures the first write to a large file from the environment's image.
//!
//! A file can be copied up only once, so a study with this workload has `lifecycle = "cold"`: every trial gets a new
//! instance with an unwritten file. The image must contain a file of the same size (`lower_file = "100m"` of a
//! `docker` arm); without layers the probe creates it, untimed.
//! Limits: does not measure later accesses to the copied file.

use super::probe_output::probe;

probe! {
    "copy-up": "the first write to a large file of the image's; needs `lifecycle = \"cold\"`";
    params {
        "mib" = Int(100), Between(1, 8191): "length of the file in MiB, 1 to 8191; the arm's `lower_file` is as long";
    }
    "disk.copy-up.time", Nanosecond, Lower, Disk: "Time of opening a file of `mib` MiB for writing for the first time, and of writing one byte, its pages in memory.";
}
