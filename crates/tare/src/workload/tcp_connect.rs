//! `tcp-connect`: connections opened one after another.
//!
//! What it cannot see: how many connections at once a server could take.

use tare_model::{Better, MetricSpec, Path, ResourceClass, Unit};

use super::paired::PairedWorkload;

/// The registered workload.
pub static WORKLOAD: PairedWorkload = PairedWorkload {
    id: "tcp-connect",
    about: "opening and closing TCP connections one after another",
    server: "tcp-accept",
    paths: &Path::ALL,
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "net.tcp.connect.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Network,
            floor_ok: false,
            doc: "Making a socket, connecting, reading the first byte that the peer sends when it has accepted, and closing.",
        },
        MetricSpec {
            id: "net.tcp.connect.rate",
            unit: Unit::OperationPerSecond,
            better: Better::Higher,
            class: ResourceClass::Network,
            floor_ok: false,
            doc: "Connections opened and closed per second, one after another.",
        },
    ],
};
