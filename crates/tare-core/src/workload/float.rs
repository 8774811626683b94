//! `float`: a workload for the latency chain of floating-point arithmetic.
//!
//! A control: no environment on the same processor should change it.
//! Limits: does not use vector units.

use super::probe_output::probe;

probe! {
    "float": "dependent floating-point operations in registers";
    "cpu.float.time", Nanosecond, Lower, Compute, floor: "One multiplication and one addition in double precision, each needing the one before, in registers.";
}
