//! `threads`: threads, as a workload.
//!
//! The counterpart of "Single Yield Method Invocation" of a published comparison of containers (2019), and the
//! kernel's own part of multitasking. What it cannot see: switches across processors.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "threads",
    about: "starting threads, switching between two, and giving way",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "thread.create.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Starting a thread that returns at once and waiting for its end.",
        },
        MetricSpec {
            id: "thread.switch.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Waking another thread on the same processor and sleeping until woken, per switch.",
        },
        MetricSpec {
            id: "thread.yield.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "One `sched_yield`.",
        },
    ],
};
