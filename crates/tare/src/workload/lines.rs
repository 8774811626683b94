//! `lines`: a text written line by line and read back, as a workload.
//!
//! The counterpart of the four disk tests of Danilova and Sergeev (2024): with `lines = 8000000` their large file, with
//! `files = 10` and `lines = 800000` their small ones. What it cannot see: the device; neither could they.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "lines",
    about: "writing a text line by line and reading it back",
    params: &[
        ParamSpec {
            name: "lines",
            default: DefaultValue::Int(20000),
            doc: "lines in each file, 100 to 100000000",
        },
        ParamSpec {
            name: "line_bytes",
            default: DefaultValue::Int(31),
            doc: "characters in a line, its end included, 2 to 4096",
        },
        ParamSpec {
            name: "files",
            default: DefaultValue::Int(1),
            doc: "files that are written and read at the same time, 1 to 64",
        },
    ],
    accepts: &[
        Accepts::Between(100, 100_000_000),
        Accepts::Between(2, 4096),
        Accepts::Between(1, 64),
    ],
    metrics: &[
        MetricSpec {
            id: "fs.line-write.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Writing one line through a buffer of 8 KiB to a file, opening and closing included, all files at once.",
        },
        MetricSpec {
            id: "fs.line-write-direct.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Writing one line by a `write` of its own to a file, all files at once.",
        },
        MetricSpec {
            id: "fs.line-read.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Disk,
            floor_ok: false,
            doc: "Reading one line of a file that was just written, all files at once.",
        },
    ],
};
