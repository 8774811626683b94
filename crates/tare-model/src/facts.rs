//! Facts collected about an environment: the fingerprint of an arm or of the host.

use crate::fact;
use std::collections::BTreeMap;

/// Facts by dotted name, for example `kernel.release` or `status.Seccomp`.
///
/// A fact that could not be read is absent; `unreadable.<name>` then has the reason. Values are text exactly as
/// found, trimmed.
pub type Facts = BTreeMap<String, String>;

/// Returns what emulates the environment, if it is emulated; its numbers then do not show the overhead of its kind.
pub fn emulation(facts: &Facts) -> Option<&str> {
    let (name, _) = facts
        .iter()
        .find(|(name, value)| name.ends_with(fact::EMULATED) && *value == "true")?;
    let detail = facts.get(&format!("{name}{}", fact::EMULATED_DETAIL));
    Some(detail.map_or("software emulation", String::as_str))
}

/// No machine has a processor of a higher number; rejects a broken list in a recording.
const MOST_CPUS: usize = 1 << 16;

/// Parses a list of processors such as `0-3,6`; `None` if it names none.
pub fn cpu_list(list: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last > MOST_CPUS {
            return None;
        }
        cpus.extend(first..=last);
    }
    (!cpus.is_empty()).then_some(cpus)
}

/// Returns a cgroup's CPU quota in processors; `None` without a quota.
pub fn cpu_quota(facts: &Facts) -> Option<f64> {
    quota_us(facts).map(|(quota, period)| quota / period)
}

/// Returns a cgroup's CPU quota and its period, microseconds; `None` without a quota.
pub fn quota_us(facts: &Facts) -> Option<(f64, f64)> {
    let (quota, period) = match facts.get(fact::CGROUP_CPU_MAX) {
        Some(both) => both.split_once(' ').unwrap_or((both, "100000")),
        None => (
            facts.get(fact::CGROUP_CFS_QUOTA)?.as_str(),
            facts.get(fact::CGROUP_CFS_PERIOD)?.as_str(),
        ),
    };
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (quota > 0.0 && period > 0.0).then_some((quota, period))
}

/// Returns a cgroup's memory limit, bytes; `None` without one.
pub fn memory_limit(facts: &Facts) -> Option<u64> {
    let names = [fact::CGROUP_MEMORY_MAX, fact::CGROUP_MEMORY_LIMIT];
    let text = names.iter().find_map(|name| facts.get(*name))?;
    text.parse::<u64>().ok().filter(|bytes| *bytes < 1 << 62)
}

/// Returns the name and text of a cgroup's first limit on bytes or requests per second; `None` without one.
pub fn io_limit(facts: &Facts) -> Option<(&'static str, &str)> {
    let names = [
        fact::CGROUP_IO_MAX,
        fact::CGROUP_READ_BPS,
        fact::CGROUP_WRITE_BPS,
        fact::CGROUP_READ_IOPS,
        fact::CGROUP_WRITE_IOPS,
    ];
    let limits = names.into_iter().filter_map(|name| {
        let text = facts.get(name)?.as_str();
        Some((name, text))
    });
    limits.into_iter().find(|(_, text)| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_cgroup_v1_and_v2() {
        let facts = |pairs: &[(&str, &str)]| -> Facts {
            let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
            pairs.iter().map(owned).collect()
        };
        let first = facts(&[
            ("cgroup.cpu.cfs_quota_us", "20000"),
            ("cgroup.cpu.cfs_period_us", "100000"),
            ("cgroup.memory.limit_in_bytes", "1048576"),
            ("cgroup.blkio.throttle.write_bps_device", "8:0 1000000"),
        ]);
        let second = facts(&[
            ("cgroup.cpu.max", "20000 100000"),
            ("cgroup.memory.max", "1048576"),
            ("cgroup.io.max", "8:0 wbps=1000000"),
        ]);
        for limited in [first, second] {
            assert_eq!(cpu_quota(&limited), Some(0.2));
            assert_eq!(memory_limit(&limited), Some(1 << 20));
            assert!(io_limit(&limited).unwrap().1.starts_with("8:0"));
        }
        let free = [
            facts(&[
                ("cgroup.cpu.cfs_quota_us", "-1"),
                ("cgroup.cpu.cfs_period_us", "100000"),
                ("cgroup.memory.limit_in_bytes", "9223372036854771712"),
            ]),
            facts(&[
                ("cgroup.cpu.max", "max 100000"),
                ("cgroup.memory.max", "max"),
            ]),
            Facts::new(),
        ];
        for free in free {
            assert_eq!((cpu_quota(&free), memory_limit(&free)), (None, None));
        }
    }

    #[test]
    fn emulation_requires_an_explicit_fact() {
        let facts = |value: &str| Facts::from([("vm.emulated".to_owned(), value.to_owned())]);
        assert_eq!(emulation(&facts("true")), Some("software emulation"));
        assert_eq!(emulation(&facts("false")), None);
        assert_eq!(emulation(&Facts::new()), None);
        let mut shown = facts("true");
        shown.insert("vm.emulated.detail".into(), "by TCG".into());
        assert_eq!(emulation(&shown), Some("by TCG"));
    }
}
