//! `fsync`: the time until a small write is safe.
//!
//! What it cannot see: whether the device kept its promise; a value below some thirty microseconds means
//! memory, or a flush that is acknowledged without being done.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

/// The registered workload.
pub static WORKLOAD: ProbeWorkload = ProbeWorkload {
    id: "fsync",
    about: "a small write and its synchronisation to the device",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "disk.fsync.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Disk,
        floor_ok: false,
        doc: "Time of a `pwrite` of 4 KiB over the first block of a file and of `fsync`.",
    }],
};
