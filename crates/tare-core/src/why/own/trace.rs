//! Where the time goes, as far as counters tell: which kinds of differences explain what was measured.
//!
//! It orders what is tried and rules nothing out.
//! What it cannot see: what processes other than the first waited for.

use std::collections::BTreeMap;
use tare_model::counter;

use super::super::readings::{Readings, user_command_id};

/// Counters of the command on both sides, as what the one has more than the other; nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Trace {
    /// What it took longer.
    pub(super) longer: f64,
    pub(super) on_processor: f64,
    pub(super) throttled: f64,
    pub(super) run_delay: f64,
    /// Whether more was read from devices, or faulted in from there.
    pub(super) reads: bool,
}

impl Trace {
    /// Between two arms, the medians over everything that was measured so far: a single look may have been made
    /// before a neighbour came.
    pub(super) fn of(readings: &Readings, base: &str, env: &str) -> Self {
        let of_arm = |arm: &str| {
            let mut all = readings.counters(arm);
            all.remove(&user_command_id()).unwrap_or_default()
        };
        Self::between(&of_arm(base), &of_arm(env))
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

    /// How likely a difference is with this in view: one whose kind explains what was seen goes first. Nothing is
    /// ever ruled out by it.
    pub(super) fn weighed(self, id: &str, likelihood: f64) -> f64 {
        const PROCESSOR: [&str; 7] = tare_model::rows! {
            "cpus", "cpu-quota", "cgroup-parent", "cpu-shares", "cpuset-cpus", "cpu-rt-runtime",
            "cpuset-mems",
        };
        const STORAGE: [&str; 7] = tare_model::rows! {
            "memory", "mounted./", "device-", "blkio", "shm-size", "tmpfs.", "storage-opt",
        };
        const PEERS: [&str; 8] = tare_model::rows! {
            "dns", "network", "add-host", "sysctl.net.", "publish", "engine.network", "log", "device-",
        };
        const ABLE: [&str; 6] = tare_model::rows! {
            "env.", "mounted./", "tmpfs", "sysctl.", "entrypoint", "workdir",
        };
        const SAME_WORK: [&str; 8] = [
            concat!("engine", ".ulimit"),
            "env.",
            // A look for a name costs the kernel's time.
            "mounted./",
            "security-opt",
            "engine.seccomp",
            "runtime",
            "ulimit",
            "sysctl.",
        ];
        let is = |kind: &[&str]| kind.iter().any(|it| id.starts_with(it));
        let part = |time: f64| time > 0.3 * self.longer;
        if self.longer <= 0.0 {
            // A limit makes nothing faster; what is read, or where it lies, may.
            let limits = self.longer < 0.0 && !is(&ABLE);
            return if limits { likelihood * 0.3 } else { likelihood };
        }
        let fits = if part(self.throttled) || part(self.run_delay) {
            is(&PROCESSOR)
        } else if self.reads {
            is(&STORAGE)
        } else if part(self.on_processor) {
            is(&SAME_WORK)
        } else {
            // It waited, and not for a processor.
            is(&PEERS) || is(&PROCESSOR) || is(&STORAGE)
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
    fn what_explains_what_was_seen_is_tried_first_and_nothing_is_ruled_out() {
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
    fn throttling_that_only_the_kernel_of_the_host_counts_is_seen() {
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
