//! `spawn`: starting a process, as a workload.
//!
//! The agent's own file, so the same bytes in every arm and no dynamic linker. What it cannot see: the start of
//! the environment itself, nor that of a large dynamically linked program.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "spawn",
    about: "fork, execution of a small static program, wait",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "proc.spawn.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Kernel,
        floor_ok: false,
        doc: "One fork, execution of the agent's own file with `true`, and waiting for its end.",
    }],
};
