//! `chase`: the probe of memory speculation, as a workload.
//!
//! Feels Speculative Store Bypass Disable, which seccomp filters used to switch on before Linux 5.16 and which
//! interpreters suffer from; other processor work barely does. What it cannot see: where the processor or the
//! kernel never speculates, both arms are equally slow.

use super::probe_output::probe;

probe! {
    "chase": "dependent loads behind stores of late address: what disabling memory speculation costs";
    "cpu.chase.time", Nanosecond, Lower, Compute, floor:
        "One load whose address is the last load's value, behind a store whose address is known later; all in the first-level cache.";
}
