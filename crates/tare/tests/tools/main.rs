//! Tests the decoders with real output of other programs, whole and damaged.
//!
//! `golden/tools` holds one folder for each workload and in it one for each capture; see `golden.rs`.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test fails by panicking, and a search tells what it found"
)]
#![allow(
    clippy::float_cmp,
    reason = "a decoder hands on the number that was printed"
)]

mod fuzz;
mod golden;
mod traps;
mod whole;
