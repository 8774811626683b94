//! `directory`: directories, as a workload.
//!
//! The counterpart of "Get Current Directory" and "Create Directory" of a published comparison of containers (2019).
//! What it cannot see: the device, for nothing is synchronised.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "directory",
    about: "asking for the working directory, making, removing and listing directories",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "fs.getcwd.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "One `getcwd` system call in the worker's directory.",
        },
        MetricSpec {
            id: "fs.mkdir.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Making one directory, in a batch of 64 in one directory.",
        },
        MetricSpec {
            id: "fs.rmdir.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Removing one empty directory, in a batch of 64.",
        },
        MetricSpec {
            id: "fs.readdir.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Opening a directory of 64 entries, reading all of them and closing it.",
        },
    ],
};
