//! `random`: random numbers, as a workload.
//!
//! The counterpart of "Random Int" and "Random Bytes" of a published comparison of containers (2019).
//! What it cannot see: the generators of languages and libraries.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "random",
    about: "random numbers of an own generator and of the kernel",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "random.integer.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "One random whole number below a limit, of a generator in registers.",
        },
        MetricSpec {
            id: "random.bytes.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Filling 1 000 bytes from a generator in registers.",
        },
        MetricSpec {
            id: "random.kernel.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "One `getrandom` system call for 32 bytes.",
        },
    ],
};
