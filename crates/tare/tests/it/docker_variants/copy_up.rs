//! Copy-up: material on the layer, and not on a volume or a bind, told by intervals.

use super::*;

use tare_model::wire::{Reply, Request};
use tare_model::{ProbeReport, RawOutput};
use tare_stats::{Interval, ratio_interval};

const MIB: i64 = 100;

fn copy_up(instance: &mut dyn Instance, trial: u64) -> Reply {
    let request = Request::Run {
        trial,
        call: tare_model::ProbeCall {
            name: "copy-up".into(),
            args: Params::new().with("mib", MIB),
        },
        target_ns: 0,
        limit_ns: 30_000_000_000,
        workdir: instance.workdir(),
    };
    instance.channel().send(&request).unwrap();
    instance.channel().receive(Duration::from_secs(40)).unwrap()
}
