//! `date`: the date and time of day, as a workload.
//!
//! The counterpart of "Get Current Date" and "Get Current Date UTC" of a published comparison of containers (2019).
//! What it cannot see: whether the arms have the same zone file, by which local time differs.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "date",
    about: "reading the clock and breaking the time down, in universal and in local time",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "clock.utc-date.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Reading the real-time clock and breaking it down into year to second, in universal time.",
        },
        MetricSpec {
            id: "clock.local-date.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Kernel,
            floor_ok: false,
            doc: "Reading the real-time clock and breaking it down into year to second, by the arm's time zone.",
        },
    ],
};
