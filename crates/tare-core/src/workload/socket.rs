//! `socket`: a workload on a TCP connection within one thread.
//!
//! The counterpart of the networking rows of a published comparison of containers (2019). It has one end: both sides
//! of the connection are in one thread.
//! Limits: only tests the loopback.

use super::probe_output::probe;

probe! {
    "socket": "one byte over a TCP connection within one thread";
    Nanosecond, Lower, Network {
        "net.tcp.send-receive.time": "Writing a byte at one end of a connection and reading it at the other, in one thread.";
        "net.tcp.receive-send.time": "Asking for a byte that is not there, writing it at the other end, waiting with epoll, and reading it.";
    }
}
