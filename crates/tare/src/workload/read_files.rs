//! `read-files`: whole files of text read into memory, as a workload.
//!
//! The counterpart of two disk tests of Danilova and Sergeev (2024): with the defaults their large file, with
//! `kib = 1247`, `files = 10` and `how = "lines"` their small ones. What it cannot see: the device; neither could they.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "read-files",
    about: "reading whole files of text into memory",
    params: &[
        ParamSpec {
            name: "kib",
            default: DefaultValue::Int(12_464),
            doc: "size of each file, KiB, 1 to 4194304",
        },
        ParamSpec {
            name: "files",
            default: DefaultValue::Int(1),
            doc: "files that are read at the same time, 1 to 64",
        },
        ParamSpec {
            name: "how",
            default: DefaultValue::Text("whole"),
            doc: "whole: at a stretch; lines: line by line",
        },
    ],
    accepts: &[
        Accepts::Between(1, 4_194_304),
        Accepts::Between(1, 64),
        Accepts::OneOf(&["whole", "lines"]),
    ],
    metrics: &[MetricSpec {
        id: "fs.read-files.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Disk,
        floor_ok: false,
        doc: "Reading all files, each into a variable of its own, opening and closing included, all files at once.",
    }],
};
