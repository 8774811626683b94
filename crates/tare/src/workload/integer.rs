//! `integer`: the latency chain of integer arithmetic, as a workload.
//!
//! A control: no environment on the same processor should change it, so a difference is one of frequency or of
//! stolen time. What it cannot see: memory, the kernel.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "integer",
    about: "dependent integer operations in registers",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "cpu.integer.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: true,
        doc: "One step of three shifts, three exclusive ors and a multiplication of 64 bits, each needing the one before.",
    }],
};
