//! `udp-round-trip`: a datagram there and back.
//!
//! Ports are published for TCP only, so the published paths are left out.
//! What it cannot see: which part of the time is the network's and which is that of waking a thread.

use tare_model::{Better, MetricSpec, Path, ResourceClass, Unit};

use super::paired::PairedWorkload;
use super::probe_output::Accepts;
use super::{DefaultValue, ParamSpec};

/// The registered workload.
pub static WORKLOAD: PairedWorkload = PairedWorkload {
    id: "udp-round-trip",
    about: "a datagram there and back",
    server: "udp-echo",
    paths: &[
        Path::Loopback,
        Path::HostToArm,
        Path::ArmToHost,
        Path::ArmToArm,
        Path::FirstToSecond,
        Path::SecondToThird,
    ],
    params: &[ParamSpec {
        name: "bytes",
        default: DefaultValue::Int(16),
        doc: "length of the datagram in bytes, 8 to 1024",
    }],
    accepts: &[Accepts::Between(8, 1024)],
    metrics: &[MetricSpec {
        id: "net.udp.round-trip.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Network,
        floor_ok: false,
        doc: "Time from sending a datagram of `bytes` bytes (16 by default) to having received its echo, both ends blocking.",
    }],
};
