//! `tcp-stream`: as many bytes as go through one connection, from the client to the server.
//!
//! The receiver counts. What it cannot see: whether the way or the processors are the limit; on one machine
//! it is the processors.

use tare_model::{Better, MetricSpec, Path, ResourceClass, Unit};

use super::paired::PairedWorkload;

/// The registered workload.
pub static WORKLOAD: PairedWorkload = PairedWorkload {
    id: "tcp-stream",
    about: "bytes through one TCP connection, as many as go",
    server: "tcp-sink",
    paths: &Path::ALL,
    params: &[],
    accepts: &[],
    metrics: &[MetricSpec {
        id: "net.tcp.throughput.rate",
        unit: Unit::BytePerSecond,
        better: Better::Higher,
        class: ResourceClass::Network,
        floor_ok: false,
        doc: "Bytes per second that the receiver read, by its own clock, of what the sender wrote 128 KiB at a time.",
    }],
};
