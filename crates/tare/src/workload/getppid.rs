//! `getppid`: what entering the kernel costs, as a workload.
//!
//! Feels a seccomp filter (even one that allows the call by a constant answer), page-table isolation and
//! tracing. What it cannot see: what a filter costs for calls whose arguments it inspects.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "getppid",
    about: "the cheapest system call",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "syscall.getppid.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Kernel,
        floor_ok: true,
        doc: "One getppid, made as a direct system call.",
    }],
};
