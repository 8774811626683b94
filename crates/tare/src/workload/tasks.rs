//! `tasks`: tasks, as a workload.
//!
//! The counterpart of three multitasking rows of a published comparison of containers (2019): empty asynchronous method,
//! tasks one after another, concurrent insertions. What it cannot see: the pools of threads of runtimes.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "tasks",
    about: "calling and handing over tasks, and filling a table from two threads",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "task.call.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Making the state of an asynchronous function that is ready at once, and asking it.",
        },
        MetricSpec {
            id: "task.run.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Handing a task to a thread that waits for one, and waiting for its answer.",
        },
        MetricSpec {
            id: "task.insert.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "Inserting a number into a table of 16 locked parts from two threads, per insertion of both.",
        },
    ],
};
