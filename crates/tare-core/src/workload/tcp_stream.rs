//! `tcp-stream`: sends as many bytes as possible through one TCP connection, from client to server.
//!
//! The receiver counts.
//! Limits: does not show whether the network or the processors are the bottleneck; on one machine it is the
//! processors.

use tare_model::Path;

use super::declared::described;
use super::paired::PairedWorkload;

pub(super) static ENTRY: PairedWorkload = PairedWorkload {
    declared: described! {
        "tcp-stream": "bytes through one TCP connection, as many as go";
        "net.tcp.throughput.rate", BytePerSecond, Higher, Network: "Bytes per second that the receiver read, by its own clock, of what the sender wrote 128 KiB at a time.";
    },
    server: "tcp-sink",
    paths: &Path::ALL,
};
