//! `allocate`: memory taken and given back, as a workload.
//!
//! The counterpart of "Memory Allocation" of a published comparison of containers (2019), without a garbage collector.
//! What it cannot see: other allocators than the agent's own.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "allocate",
    about: "taking and giving back memory in small and in large blocks",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "mem.allocate.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "Taking one block of 16 to 512 bytes, writing its first word and giving it back, 1 000 of them alive at once.",
        },
        MetricSpec {
            id: "mem.allocate-large.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Taking one block of 1 MiB, writing one byte of each of its pages, and giving it back.",
        },
    ],
};
