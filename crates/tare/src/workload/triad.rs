//! `triad`: memory bandwidth, as a workload.
//!
//! STREAM's kernel and STREAM's way of counting, with stores that bypass the cache, so that what is counted is
//! what moves. What it cannot see: what several threads reach together.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "triad",
    about: "the STREAM triad on one thread",
    params: &[ParamSpec {
        name: "mib",
        default: DefaultValue::Int(32),
        doc: "Size of each of the three arrays in MiB, 1 to 4096; together they should exceed the last-level cache by far.",
    }],
    accepts: &[Accepts::Between(1, 4096)],
    metrics: &[MetricSpec {
        id: "mem.triad.rate",
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        class: ResourceClass::Compute,
        floor_ok: false,
        doc: "One pass of a = b + s*c over three arrays, 24 bytes counted per element.",
    }],
};
