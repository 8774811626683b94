//! `socket`: a connection to oneself, as a workload.
//!
//! The counterpart of the networking rows of a published comparison of containers (2019). It has one end: both sides of the
//! connection are in one thread. What it cannot see: anything outside of the loopback.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::ProbeWorkload;

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "socket",
    about: "one byte over a TCP connection within one thread",
    params: &[],
    accepts: &[],
    metrics: &[
        MetricSpec {
            id: "net.tcp.send-receive.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Network,
            floor_ok: false,
            doc: "Writing a byte at one end of a connection and reading it at the other, in one thread.",
        },
        MetricSpec {
            id: "net.tcp.receive-send.time",
            unit: Unit::Nanosecond,
            better: Better::Lower,
            class: ResourceClass::Network,
            floor_ok: false,
            doc: "Asking for a byte that is not there, writing it at the other end, waiting with epoll, and reading it.",
        },
    ],
};
