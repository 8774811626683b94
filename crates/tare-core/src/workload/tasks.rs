//! `tasks`: a workload that runs tasks.
//!
//! The counterpart of three multitasking rows of a published comparison of containers (2019): empty asynchronous
//! method, tasks one after another, concurrent insertions.
//! Limits: does not test the thread pools of runtimes.

use super::probe_output::probe;

probe! {
    "tasks": "calling and handing over tasks, and filling a table from two threads";
    "task.call.time", Nanosecond, Lower, Compute, floor: "Making the state of an asynchronous function that is ready at once, and asking it.";
    "task.run.time", Nanosecond, Lower, Kernel: "Handing a task to a thread that waits for one, and waiting for its answer.";
    "task.insert.time", Nanosecond, Lower, Compute: "Inserting a number into a table of 16 locked parts from two threads, per insertion of both.";
}
