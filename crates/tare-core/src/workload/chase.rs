//! `chase`: a workload for memory speculation.
//!
//! Detects Speculative Store Bypass Disable, which seccomp filters switched on before Linux 5.16 and which slows
//! interpreters; other CPU work hardly reacts.
//! Limits: if the processor or the kernel never speculates, both arms are equally slow.

use super::probe_output::probe;

probe! {
    "chase": "dependent loads behind stores of late address: what disabling memory speculation costs";
    "cpu.chase.time", Nanosecond, Lower, Compute, floor:
        "One load whose address is the last load's value, behind a store whose address is known later; all in the first-level cache.";
}
