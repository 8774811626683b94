//! `des`: the encryption of Danilova and Sergeev (2024), as a workload.
//!
//! Table look-ups and dependent shifts on one core; no memory traffic, no system call. What it cannot see:
//! hardware cryptography, which a guest's processor model may hide.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "des",
    about: "DES encryption of 80 000 characters",
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "cpu.des.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Compute,
        floor_ok: true,
        doc: "DES encryption of 80 000 characters, 10 000 blocks in electronic codebook mode, key schedule prepared.",
    }],
};
