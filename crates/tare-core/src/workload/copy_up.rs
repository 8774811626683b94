//! `copy-up`: the first write to a large file that came with the environment's image.
//!
//! A file can be copied up once, so a study with this workload has `lifecycle = "cold"`: every trial gets an
//! instance of its own, and with it a file that nobody has written to. The image must hold one of the same
//! size (`lower_file = "100m"` of a `docker` arm); where nothing is layered the probe makes it, untimed.
//! What it cannot see: what later accesses to the copied file cost.

use super::probe_output::probe;

probe! {
    "copy-up": "the first write to a large file of the image's; needs `lifecycle = \"cold\"`";
    params {
        "mib" = Int(100), Between(1, 8191): "length of the file in MiB, 1 to 8191; the arm's `lower_file` is as long";
    }
    "disk.copy-up.time", Nanosecond, Lower, Disk: "Time of opening a file of `mib` MiB for writing for the first time, and of writing one byte, its pages in memory.";
}
