//! `random-access`: the latency of memory, as a workload.
//!
//! With small pages most loads miss the translation buffer too, and a guest then walks two page tables; with
//! huge pages that part vanishes, so the pair tells translation from memory. What it cannot see: throughput.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "random-access",
    about: "dependent loads along a random cycle through memory",
    params: &[
        ParamSpec {
            name: "mib",
            default: DefaultValue::Int(64),
            doc: "Extent of the memory in MiB, 1 to 4096; should exceed the last-level cache.",
        },
        ParamSpec {
            name: "pages",
            default: DefaultValue::Text("small"),
            doc: "`small` refuses huge pages, `huge` asks for them.",
        },
    ],
    accepts: &[
        Accepts::Between(1, 4096),
        Accepts::OneOf(&["small", "huge"]),
    ],
    metrics: &[MetricSpec {
        id: "mem.random.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: false,
        doc: "One load from a random cache line whose address the load before has given.",
    }],
};
