//! `float`: the latency chain of floating-point arithmetic, as a workload.
//!
//! A control: no environment on the same processor should change it. What it cannot see: vector units.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "float",
    about: "dependent floating-point operations in registers",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "cpu.float.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: true,
        doc: "One multiplication and one addition in double precision, each needing the one before, in registers.",
    }],
};
