//! `threads`: a workload on threads.
//!
//! The counterpart of "Single Yield Method Invocation" of a published comparison of containers (2019), and the
//! kernel's part of multitasking.
//! Limits: does not test switches across processors.

use super::probe_output::probe;

probe! {
    "threads": "starting threads, switching between two, and giving way";
    Nanosecond, Lower, Kernel {
        "thread.create.time": "Starting a thread that returns at once and waiting for its end.";
        "thread.switch.time": "Waking another thread on the same processor and sleeping until woken, per switch.";
        "thread.yield.time": "One `sched_yield`.";
    }
}
