//! `integer`: a workload for the latency chain of integer arithmetic.
//!
//! A control: no environment on the same processor should change it, so a difference comes from frequency or steal
//! time.
//! Limits: does not test memory or the kernel.

use super::probe_output::probe;

probe! {
    "integer": "dependent integer operations in registers";
    "cpu.integer.time", Nanosecond, Lower, Compute, floor: "One step of three shifts, three exclusive ors and a multiplication of 64 bits, each needing the one before.";
}
