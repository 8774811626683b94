//! `pipe`: the round trip between two processes, as a workload.
//!
//! Four system calls and two switches; with both processes bound to one processor, because the scheduler's
//! choice otherwise makes two modes. What it cannot see when bound: wake-ups across processors.

use super::probe_output::probe;

probe! {
    "pipe": "one byte to another process and back over two pipes";
    params {
        "placement" = Text("one"), OneOf(&["one", "free"]): "`one` binds both processes to one processor, `free` leaves them to the scheduler.";
    }
    "ipc.pipe.round-trip.time", Nanosecond, Lower, Kernel: "One byte written to a partner process and its echo read, over two pipes.";
}
