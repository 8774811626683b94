//! `pipe`: the round trip between two processes, as a workload.
//!
//! Four system calls and two switches; with both processes bound to one processor, because the scheduler's
//! choice otherwise makes two modes. What it cannot see when bound: wake-ups across processors.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

pub(super) static ENTRY: ProbeWorkload = ProbeWorkload {
    id: "pipe",
    about: "one byte to another process and back over two pipes",
    params: &[ParamSpec {
        name: "placement",
        default: DefaultValue::Text("one"),
        doc: "`one` binds both processes to one processor, `free` leaves them to the scheduler.",
    }],
    accepts: &[Accepts::OneOf(&["one", "free"])],
    metrics: &[MetricSpec {
        id: "ipc.pipe.round-trip.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Kernel,
        floor_ok: false,
        doc: "One byte written to a partner process and its echo read, over two pipes.",
    }],
};
