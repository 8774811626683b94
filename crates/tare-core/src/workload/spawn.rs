//! `spawn`: starting a process, as a workload.
//!
//! The agent's own file, so the same bytes in every arm and no dynamic linker. What it cannot see: the start of
//! the environment itself, nor that of a large dynamically linked program.

use super::probe_output::probe;

probe! {
    "spawn": "fork, execution of a small static program, wait";
    "proc.spawn.time", Nanosecond, Lower, Kernel: "One fork, execution of the agent's own file with `true`, and waiting for its end.";
}
