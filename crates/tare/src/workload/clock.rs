//! `clock`: what a timestamp costs, as a workload.
//!
//! Two metrics, because their ratio says whether the clock source can be read in user space: alike means that
//! every timestamp of a program is a system call. What it cannot see: which clock source it is (a fact of the arm).

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "clock",
    about: "reading the clock through the vDSO and through a system call",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "clock.vdso.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: true,
            doc: "One clock_gettime(CLOCK_MONOTONIC) through the C library, which takes the vDSO where there is one.",
        },
        MetricSpec {
            id: "clock.syscall.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: true,
            doc: "One clock_gettime(CLOCK_MONOTONIC) as a real system call.",
        },
    ],
};
