//! `tcp-round-trip`: a small message there and back over an open connection.
//!
//! What it cannot see: which part of the time is the network's and which is that of waking a thread.

use tare_model::{Better, MetricSpec, Path, ResourceClass, Unit};

use super::paired::PairedWorkload;
use super::probe_output::Accepts;
use super::{DefaultValue, ParamSpec};

/// The registered workload.
pub static WORKLOAD: PairedWorkload = PairedWorkload {
    id: "tcp-round-trip",
    about: "a small message there and back over an open TCP connection",
    server: "tcp-echo",
    paths: &Path::ALL,
    params: &[ParamSpec {
        name: "bytes",
        default: DefaultValue::Int(1),
        doc: "length of the message in bytes, 1 to 1024",
    }],
    accepts: &[Accepts::Between(1, 1024)],
    metrics: &[MetricSpec {
        id: "net.tcp.round-trip.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Network,
        floor_ok: false,
        doc: "Time from writing a message of `bytes` bytes (1 by default) to having read its echo, both ends blocking with TCP_NODELAY.",
    }],
};
