//! `copy-up`: the first write to a large file that came with the environment's image.
//!
//! A file can be copied up once, so a study with this workload has `lifecycle = "cold"`: every trial gets an
//! instance of its own, and with it a file that nobody has written to. The image must hold one of the same
//! size (`lower_file = "100m"` of a `docker` arm); where nothing is layered the probe makes it, untimed.
//! What it cannot see: what later accesses to the copied file cost.

use tare_model::{Better, MetricSpec, ResourceClass, Unit};

use super::probe_output::{Accepts, ProbeWorkload};
use super::{DefaultValue, ParamSpec};

/// The registered workload.
pub static WORKLOAD: ProbeWorkload = ProbeWorkload {
    id: "copy-up",
    about: "the first write to a large file of the image's; needs `lifecycle = \"cold\"`",
    params: &[ParamSpec {
        name: "mib",
        default: DefaultValue::Int(100),
        doc: "length of the file in MiB, 1 to 8191; the arm's `lower_file` is as long",
    }],
    accepts: &[Accepts::Between(1, 8191)],
    metrics: &[MetricSpec {
        id: "disk.copy-up.time",
        unit: Unit::Nanosecond,
        better: Better::Lower,
        class: ResourceClass::Disk,
        floor_ok: false,
        doc: "Time of opening a file of `mib` MiB for writing that nobody has written to, and of writing one byte, its pages in memory.",
    }],
};
