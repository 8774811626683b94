//! `mounts`: the list of mounts, as a workload.
//!
//! The counterpart of "Get Logical Drives" of a published comparison of containers (2019).
//! What it cannot see: mounts of other namespaces; a container mostly has fewer of them, or more.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "mounts",
    about: "reading the list of mounts",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "fs.mount-list.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Kernel,
        floor_ok: false,
        doc: "Opening /proc/self/mountinfo, reading it to its end and closing it.",
    }],
};
