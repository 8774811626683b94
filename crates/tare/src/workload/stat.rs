//! `stat`: looking up a path, as a workload.
//!
//! `/` lies on the root file system of the arm (overlay in most containers), the path below the working
//! directory on whatever is mounted there. What it cannot see: cold caches.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "stat",
    about: "attributes of files that exist",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "fs.stat.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: true,
            doc: "One stat of the root directory.",
        },
        MetricSpec {
            id: "fs.stat-path.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: true,
            doc: "One fstatat of a file four components below an open directory in the working directory.",
        },
    ],
};
