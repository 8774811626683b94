//! `pipe`: a workload for the round trip between two processes.
//!
//! Four syscalls and two switches. Both processes are bound to one processor by default, because the scheduler's
//! choice otherwise gives two modes.
//! Limits: if bound, does not test wake-ups across processors.

use super::probe_output::probe;

probe! {
    "pipe": "one byte to another process and back over two pipes";
    params {
        "placement" = Text("one"), OneOf(&["one", "free"]): "`one` binds both processes to one processor, `free` leaves them to the scheduler.";
    }
    "ipc.pipe.round-trip.time", Nanosecond, Lower, Kernel: "One byte written to a partner process and its echo read, over two pipes.";
}
