//! `touch`: page faults, as a workload.
//!
//! Feels nested paging, memory cgroups and balloons. What it cannot see: huge pages, which it refuses, and
//! memory that a guest's host has to provide first, because the same pages come back.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "touch",
    about: "first writes to fresh pages",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "mem.touch.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Kernel,
        floor_ok: false,
        doc: "The first write to a fresh anonymous page of 4 KiB, in a batch of 512.",
    }],
};
