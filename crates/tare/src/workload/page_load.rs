//! `page-load`: a tree of small files looked at, opened and read, as a workload.
//!
//! What a published comparison of storage (2025) set out to explain, the page load of a web application, and measured
//! by random reads of one large file instead. What it cannot see: the application's own work.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "page-load",
    about: "listing folders and looking at, opening and reading many small files",
    params: &[
        ParamSpec {
            name: "files",
            default: DefaultValue::Int(200),
            doc: "files in the tree, 1 to 100000, in folders of 50",
        },
        ParamSpec {
            name: "bytes",
            default: DefaultValue::Int(4096),
            doc: "bytes in each file, 0 to 1048576",
        },
    ],
    accepts: &[Accepts::Between(1, 100_000), Accepts::Between(0, 1 << 20)],
    metrics: &[
        MetricSpec {
            id: "fs.page-load.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "One pass over the tree: listing every folder; stat, open, fstat, read and close of every file.",
        },
        MetricSpec {
            id: "fs.source-file.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "One file: stat, open, fstat, read to its end, close.",
        },
        MetricSpec {
            id: "fs.missing-file.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "One stat of a file that is not there.",
        },
    ],
};
