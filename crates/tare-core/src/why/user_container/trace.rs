//! Uses counters to find where the time goes, and so which kinds of differences fit the measurement.
//!
//! It orders the trials and rules nothing out.
//! Limits: does not see what processes other than the first waited for.

use std::collections::BTreeMap;
use tare_model::counter;

use super::super::readings::Readings;
use super::kinds::{Kind, kinds};

/// How much higher the command's counters are on one side than on the other; nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Trace {
    /// Additional wall time.
    pub(super) longer: f64,
    pub(super) on_processor: f64,
    pub(super) throttled: f64,
    pub(super) run_delay: f64,
    /// Whether more was read from devices, including by page faults.
    pub(super) reads: bool,
}

impl Trace {
    /// Compares two arms by the medians of all measurements so far: a single look may precede other load on the
    /// machine.
    pub(super) fn new(readings: &Readings, base: &str, env: &str) -> Self {
        Self::between(&readings.of_command(base), &readings.of_command(env))
    }

    pub(super) fn between(base: &BTreeMap<String, f64>, env: &BTreeMap<String, f64>) -> Self {
        let of = |counters: &BTreeMap<String, f64>, name: &str| {
            counters.get(name).copied().unwrap_or_default()
        };
        let more = |name: &str| of(env, name) - of(base, name);
        Self {
            longer: more("wall_ns"),
            on_processor: more(counter::CHILDREN_USER) + more(counter::CHILDREN_SYS),
            throttled: more(counter::THROTTLED).max(more(counter::CHARGED_THROTTLED)),
            run_delay: more(counter::RUN_DELAY),
            reads: more(counter::MAJFLT) > 10.0 || more(counter::READ_BYTES) > f64::from(1 << 20),
        }
    }

    /// The likelihood of a difference, raised if its kind fits the counters and lowered otherwise. Never rules one
    /// out.
    pub(super) fn weighed(self, id: &str, likelihood: f64) -> f64 {
        use Kind::{Gain, Peer, Processor, Storage, Work};
        let is = |kind: Kind| kinds(id).contains(&kind);
        let part = |time: f64| time > 0.3 * self.longer;
        if self.longer <= 0.0 {
            // A limit makes nothing faster; a variable or the location of files may.
            let limits = self.longer < 0.0 && !is(Gain);
            return if limits { likelihood * 0.3 } else { likelihood };
        }
        let fits = if part(self.throttled) || part(self.run_delay) {
            is(Processor)
        } else if self.reads {
            is(Storage)
        } else if part(self.on_processor) {
            is(Work)
        } else {
            // It waited, and not for a processor.
            is(Peer) || is(Processor) || is(Storage)
        };
        if fits {
            (2.0 * likelihood).min(0.95)
        } else {
            likelihood / 2.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trace_ranks_matching_differences_higher() {
        let slow = Trace {
            longer: 100.0,
            run_delay: 60.0,
            ..Trace::default()
        };
        assert!(slow.weighed("cgroup-parent", 0.7) > 0.9 && slow.weighed("dns", 0.5) > 0.2);
        assert!(slow.weighed("dns", 0.5) < slow.weighed("cpu-shares", 0.5));
        let faster = Trace {
            longer: -100.0,
            ..Trace::default()
        };
        assert!(faster.weighed("env.TZ", 0.6) > faster.weighed("memory", 0.9));
        let works = Trace {
            longer: 100.0,
            on_processor: 90.0,
            ..Trace::default()
        };
        assert!(works.weighed("env.LD_PRELOAD", 0.6) > works.weighed("cpus", 0.9));
        let waits = Trace {
            longer: 100.0,
            ..Trace::default()
        };
        assert!(waits.weighed("dns", 0.5) > waits.weighed("env.X", 0.5));
    }

    #[test]
    fn trace_uses_throttling_counted_only_by_the_host() {
        let counters = |entries: &[(&str, f64)]| -> BTreeMap<String, f64> {
            let named = entries.iter();
            named
                .map(|(name, value)| ((*name).to_owned(), *value))
                .collect()
        };
        let trace = Trace::between(
            &counters(&[("wall_ns", 1e9)]),
            &counters(&[("wall_ns", 3e9), ("charged_throttled_ns", 1.9e9)]),
        );
        assert!(trace.weighed("cpu-quota", 0.5) > trace.weighed("log", 0.5));
    }
}
