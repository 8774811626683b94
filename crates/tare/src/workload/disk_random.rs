//! `disk-random`: 4 KiB direct reads at random places, one at a time and 32 at once.
//!
//! One at a time both by `pread` and by io_uring: where io_uring is blocked the first is still there, and
//! where both are, their difference is the interface's. What it cannot see: caches below the block device.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

/// The registered workload.
pub static WORKLOAD: ProbeWorkload = ProbeWorkload {
    id: "disk-random",
    about: "small reads at random places of a file, past the page cache",
    params: &[ParamSpec {
        name: "file_mib",
        default: DefaultValue::Int(64),
        doc: "size of the file in MiB, 1 to 65536; larger than the caches below is better",
    }],
    accepts: &[Accepts::Between(1, 65_536)],
    metrics: &[
        MetricSpec {
            id: "disk.random-read-sync.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Time of one direct `pread` of 4 KiB at a random place.",
        },
        MetricSpec {
            id: "disk.random-read-qd1.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Time of one direct read of 4 KiB at a random place by io_uring, submission and wait in one call.",
        },
        MetricSpec {
            id: "disk.random-read-qd32.rate",
            unit: Unit::OperationPerSecond,
            better: Better::Higher,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Direct reads of 4 KiB at random places completed per second, 32 in flight by io_uring.",
        },
    ],
};
