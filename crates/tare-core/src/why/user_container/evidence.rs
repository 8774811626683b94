//! Weighs each difference by what the command used, printed and opened in the container.
//!
//! It orders the trials and rules nothing out: a brief command may end before it is seen.

use tare_model::command::Tie;
use tare_model::counter;

use super::super::observed::Observed;
use super::kinds::{Kind, kinds};
use crate::workload::stoppable;

/// Fewer bytes are written and read by every program.
const FEW_BYTES: f64 = 65_536.0;
/// A command that was watched for less may have had a socket that was not seen, nanoseconds.
const WATCHED_NS: u64 = 100_000_000;

/// Whether the observations fit a difference; `None` if they say nothing about it.
fn fits(id: &str, look: &Observed) -> Option<bool> {
    let is = |kind: Kind| kinds(id).contains(&kind);
    let seen = look.report.seen.as_ref();
    let counted = |names: &[&str]| {
        let values = names.iter().filter_map(|name| look.counters.get(*name));
        values.copied().reduce(|one, other| one + other)
    };
    if is(Kind::Memory) {
        let hits = counted(&[
            counter::MEMORY_LIMIT_HITS,
            counter::CHARGED_MEMORY_LIMIT_HITS,
        ]);
        return hits.map(|hits| hits > 0.0);
    }
    if is(Kind::Quota) {
        let throttled = counted(&[counter::THROTTLED, counter::CHARGED_THROTTLED]);
        return throttled.map(|ns| ns > 0.0);
    }
    if is(Kind::Device) {
        let moved = [
            counter::READ_BYTES,
            counter::WRITE_BYTES,
            counter::CHARGED_READ,
            counter::CHARGED_WRITE,
        ];
        return counted(&moved).map(|bytes| bytes >= FEW_BYTES);
    }
    if is(Kind::Output) {
        let printed = look.report.stdout.0.len() + look.report.stderr.0.len();
        return Some(printed as f64 >= FEW_BYTES);
    }
    if is(Kind::SharedMemory) {
        return seen
            .filter(|_| stoppable::was_seen(&look.report))
            .map(|seen| seen.shared_memory_bytes > 0);
    }
    if is(Kind::Socket) {
        let seen = seen.filter(|seen| seen.watched_ns >= WATCHED_NS)?;
        return Some(seen.ties.contains(&Tie::Socket));
    }
    // Folders that are only listed are not seen.
    let place = id.find('/').filter(|_| is(Kind::Folder));
    let place = &id[place?..];
    let is_below = |path: &String| std::path::Path::new(path).starts_with(place);
    seen?.opened.iter().any(is_below).then_some(true)
}

/// The likelihood of a difference, raised if the command's first run in the container fits it and lowered otherwise.
pub(super) fn weighed(id: &str, likelihood: f64, look: &Observed) -> f64 {
    match fits(id, look) {
        Some(true) => (1.5 * likelihood).min(0.95),
        Some(false) => 0.3 * likelihood,
        None => likelihood,
    }
}

#[cfg(test)]
mod tests {
    use tare_model::command::ProcessSamples;
    use tare_model::outcome::Bytes;

    use super::super::super::studies::tests::first;
    use super::*;

    #[test]
    fn differences_that_the_command_did_not_touch_come_last() {
        let mut look = first(1).env;
        look.report.stdout = Bytes(b"done".to_vec());
        look.report.seen = Some(ProcessSamples {
            opened: ["/data/a.db".to_owned()].into(),
            watched_ns: 10 * WATCHED_NS,
            ..ProcessSamples::default()
        });
        look.counters = [
            (counter::MEMORY_LIMIT_HITS.to_owned(), 0.0),
            (counter::THROTTLED.to_owned(), 5e6),
        ]
        .into();
        let of = |id: &str| weighed(id, 0.4, &look);
        for untouched in [
            "memory",
            "log",
            "engine.log",
            "dns",
            "sysctl.net.core.rmem_max",
        ] {
            assert!(of(untouched) < 0.4, "{untouched}");
        }
        for touched in ["cpus", "mounted./data"] {
            assert!(of(touched) > 0.4, "{touched}");
        }
        // Nothing is known about these.
        for other in [
            "mounted./dat",
            "cpuset-cpus",
            "env.A",
            "device-read-bps",
            "shm-size",
        ] {
            assert!((of(other) - 0.4).abs() < 1e-9, "{other}");
        }
        look.report.stdout = Bytes(vec![b'x'; 100_000]);
        assert!(weighed("log", 0.4, &look) > 0.4);
    }
}
