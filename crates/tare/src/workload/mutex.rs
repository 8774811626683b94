//! `mutex`: locks, as a workload.
//!
//! The counterpart of "Lock with Mutex" and "MultiTasking with lock" of a published comparison of containers (2019).
//! What it cannot see: locks between processes.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "mutex",
    about: "taking and giving back locks, alone and against another thread",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "lock.mutex.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Taking and giving back a mutex that nobody else wants.",
        },
        MetricSpec {
            id: "lock.read.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Taking and giving back the shared side of a lock that nobody else wants.",
        },
        MetricSpec {
            id: "lock.contended.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Taking and giving back a mutex that a second thread takes all the time, per operation of both.",
        },
    ],
};
