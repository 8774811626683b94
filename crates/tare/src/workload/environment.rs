//! `environment`: environment variables and the locale, as a workload.
//!
//! The counterpart of "Get one Environment Variable", "Get all Environment Variable" and "Get current Cultureinfo" of a published
//! comparison of containers (2019). What it cannot see: how many variables an engine sets; the probe has its own.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "environment",
    about: "reading and writing environment variables, and asking for the locale",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "environment.get.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "One `getenv` of the last of 32 variables.",
        },
        MetricSpec {
            id: "environment.all.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "Copying all 32 variables.",
        },
        MetricSpec {
            id: "environment.set.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "One `setenv` of a variable that exists.",
        },
        MetricSpec {
            id: "environment.locale.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Compute,
            floor_ok: false,
            doc: "One `setlocale` that only asks for the present locale.",
        },
    ],
};
