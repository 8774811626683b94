//! `files`: many small files, as a workload.
//!
//! The bookkeeping of whatever file system lies under the working directory, which is often not the same in two
//! arms; the mount is among the facts of an arm. What it cannot see: the device, for nothing is synchronised.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "files",
    about: "creating, writing and removing files of 4 KiB",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "fs.create.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "One open with O_CREAT and O_EXCL, in a batch of 64 in one directory.",
        },
        MetricSpec {
            id: "fs.write.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Writing 4 KiB to a new file and closing it, in a batch of 64.",
        },
        MetricSpec {
            id: "fs.unlink.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Removing a file of 4 KiB by name, in a batch of 64.",
        },
    ],
};
