//! `tcp-stream`: as many bytes as go through one connection, from the client to the server.
//!
//! The receiver counts. What it cannot see: whether the way or the processors are the limit; on one machine
//! it is the processors.

use tare_model::{Path, metrics};

use super::declared::Declared;
use super::paired::PairedWorkload;

/// The registered workload.
pub static ENTRY: PairedWorkload = PairedWorkload {
    declared: Declared {
        id: "tcp-stream",
        about: "bytes through one TCP connection, as many as go",
        params: &[],
        metrics: metrics! {
            "net.tcp.throughput.rate", BytePerSecond, Higher, Network: "Bytes per second that the receiver read, by its own clock, of what the sender wrote 128 KiB at a time.";
        },
    },
    server: "tcp-sink",
    paths: &Path::ALL,
};
