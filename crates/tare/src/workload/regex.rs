//! `regex`: regular expressions, as a workload.
//!
//! The counterpart of "Regex Match" and its heavy and parallel forms of a published comparison of containers (2019).
//! What it cannot see: the libraries of languages, of which some compile their expressions.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "regex",
    about: "matching regular expressions by backtracking",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "cpu.regex.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Finding all addresses of mail in a text of 2 000 characters.",
        },
        MetricSpec {
            id: "cpu.regex-heavy.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: true,
            doc: "Refusing a text of 14 letters after backtracking through some ten thousand ways.",
        },
        MetricSpec {
            id: "cpu.regex-threads.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "The same refusal by two threads at once, per refusal of both.",
        },
    ],
};
