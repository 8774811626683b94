//! `tcp-connect`: opens TCP connections one after another.
//!
//! Limits: does not show how many simultaneous connections a server could take.

use tare_model::Path;

use super::declared::described;
use super::paired::PairedWorkload;

pub(super) static ENTRY: PairedWorkload = PairedWorkload {
    declared: described! {
        "tcp-connect": "opening and closing TCP connections one after another";
        "net.tcp.connect.time", Nanosecond, Lower, Network: "Making a socket, connecting, reading the first byte that the peer sends when it has accepted, and closing.";
        "net.tcp.connect.rate", OperationPerSecond, Higher, Network: "Connections opened and closed per second, one after another.";
    },
    server: "tcp-accept",
    paths: &Path::ALL,
};
