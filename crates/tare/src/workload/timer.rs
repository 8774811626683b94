//! `timer`: timers, as a workload.
//!
//! The counterpart of "Schedule Timer" of a published comparison of containers (2019).
//! What it cannot see: whether a late wake-up is the timer's or the scheduler's.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "timer",
    about: "setting and taking back timers, and sleeping for a short while",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "timer.short.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Making a timer, setting it to 50 ms, and closing it before it expires.",
        },
        MetricSpec {
            id: "timer.long.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Making a timer, setting it to one hour, and closing it.",
        },
        MetricSpec {
            id: "timer.sleep.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "A sleep of 50 µs, until the thread runs again.",
        },
    ],
};
