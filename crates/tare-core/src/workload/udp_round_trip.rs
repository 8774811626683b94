//! `udp-round-trip`: sends a datagram back and forth.
//!
//! Ports are published for TCP only, so there are no published paths.
//! Limits: does not separate the time of the network from that of waking a thread.

use tare_model::Path;

use super::declared::described;
use super::paired::PairedWorkload;

pub(super) static ENTRY: PairedWorkload = PairedWorkload {
    declared: described! {
        "udp-round-trip": "a datagram there and back";
        params {
            "bytes" = Int(16), Between(8, 1024): "length of the datagram in bytes, 8 to 1024";
        }
        "net.udp.round-trip.time", Nanosecond, Lower, Network: "Time from sending a datagram of `bytes` bytes (16 by default) to having received its echo, both ends blocking.";
    },
    server: "udp-echo",
    paths: &Path::UNPUBLISHED,
};
