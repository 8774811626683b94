//! `disk-sequential`: large direct reads in order, with a queue and one at a time.
//!
//! Both ways side by side, because an environment that blocks or serialises the queue shows only in the
//! difference. What it cannot see: caches below the block device of the kernel that it runs on.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

/// The registered workload.
pub static WORKLOAD: ProbeWorkload = ProbeWorkload {
    id: "disk-sequential",
    about: "large reads of a file in order, past the page cache",
    params: &[
        ParamSpec {
            name: "block_kib",
            default: DefaultValue::Int(1024),
            doc: "size of one read in KiB: a multiple of 4, 4 to 16384",
        },
        ParamSpec {
            name: "depth",
            default: DefaultValue::Int(4),
            doc: "reads in flight at once for `disk.sequential-read.rate`, 1 to 64",
        },
        ParamSpec {
            name: "file_mib",
            default: DefaultValue::Int(64),
            doc: "size of the file in MiB, 1 to 65536; larger than the caches below is better",
        },
    ],
    accepts: &[
        Accepts::Between(4, 16_384),
        Accepts::Between(1, 64),
        Accepts::Between(1, 65_536),
    ],
    metrics: &[
        MetricSpec {
            id: "disk.sequential-read.rate",
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Bytes per second of direct reads in order, `depth` of `block_kib` KiB in flight by io_uring (4 of 1 MiB by default).",
        },
        MetricSpec {
            id: "disk.sequential-read-sync.rate",
            unit: Unit::BytePerSecond,
            better: Better::Higher,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Bytes per second of direct reads in order, one `pread` of `block_kib` KiB after the other (1 MiB by default).",
        },
    ],
};
