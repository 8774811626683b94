//! `triad`: memory bandwidth, as a workload.
//!
//! STREAM's kernel and STREAM's way of counting, with stores that bypass the cache, so that what is counted is
//! what moves. What it cannot see: what several threads reach together.

use super::probe_output::probe;

probe! {
    "triad": "the STREAM triad on one thread";
    params {
        "mib" = Int(32), Between(1, 4096): "Size of each of the three arrays in MiB, 1 to 4096; together they should exceed the last-level cache by far.";
    }
    "mem.triad.rate", BytePerSecond, Higher, Compute: "One pass of a = b + s*c over three arrays, 24 bytes counted per element.";
}
