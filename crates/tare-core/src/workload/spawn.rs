//! `spawn`: a workload that starts a process.
//!
//! It starts the agent's file, so that the bytes are the same in every arm and there is no dynamic linker.
//! Limits: does not measure the start of the environment or of a large dynamically linked program.

use super::probe_output::probe;

probe! {
    "spawn": "fork, execution of a small static program, wait";
    "proc.spawn.time", Nanosecond, Lower, Kernel: "One fork, execution of the agent's own file with `true`, and waiting for its end.";
}
