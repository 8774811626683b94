//! `tcp-stream`: as many bytes as go through one connection, from the client to the server.
//!
//! The receiver counts. What it cannot see: whether the way or the processors are the limit; on one machine
//! it is the processors.

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
