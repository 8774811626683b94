//! `triad`: a workload for memory bandwidth.
//!
//! STREAM's kernel and its way of counting, with non-temporal stores, so that the counted bytes are those that move.
//! Limits: does not show what several threads reach together.

use super::probe_output::probe;

probe! {
    "triad": "the STREAM triad on one thread";
    params {
        "mib" = Int(32), Between(1, 4096): "Size of each of the three arrays in MiB, 1 to 4096; together they should exceed the last-level cache by far.";
    }
    "mem.triad.rate", BytePerSecond, Higher, Compute: "One pass of a = b + s*c over three arrays, 24 bytes counted per element.";
}
