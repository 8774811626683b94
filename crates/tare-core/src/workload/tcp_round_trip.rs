//! `tcp-round-trip`: sends a small message back and forth over an open TCP connection.
//!
//! Limits: does not separate the time of the network from that of waking a thread.

use tare_model::Path;

use super::declared::described;
use super::paired::PairedWorkload;

pub(super) static ENTRY: PairedWorkload = PairedWorkload {
    declared: described! {
        "tcp-round-trip": "a small message there and back over an open TCP connection";
        params {
            "bytes" = Int(1), Between(1, 1024): "length of the message in bytes, 1 to 1024";
        }
        "net.tcp.round-trip.time", Nanosecond, Lower, Network:
            "Time from writing a message of `bytes` bytes (1 by default) to having read its echo, both ends blocking with TCP_NODELAY.";
    },
    server: "tcp-echo",
    paths: &Path::ALL,
};
