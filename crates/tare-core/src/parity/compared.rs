//! The table of compared facts: their names, the meaning of a difference, and the settings that request one.
//!
//! Cgroup limits are normalised between v1 and v2 first, because their files differ and their meaning does not.
//! Limits: misses limits that none of these files contains, such as those of a hypervisor.

use tare_model::fact;
use tare_model::names::Use;
use tare_model::{CheckResult, Facts};

pub(super) struct Compared {
    pub(super) id: &'static str,
    /// Facts under one of these names; a trailing `*` matches any suffix.
    pub(super) names: &'static [&'static str],
    /// What a difference means.
    pub(super) meaning: &'static str,
    /// Settings of the arm that request a difference.
    pub(super) settings: &'static [&'static str],
}

impl Compared {
    /// The result of a difference that no setting requests: what an arm is given must be equal.
    pub(super) fn result(&self) -> CheckResult {
        let is_given = |name: &&str| fact::row(name).is_some_and(|row| row.used == Use::Given);
        if self.names.iter().any(is_given) {
            CheckResult::Fail
        } else {
            CheckResult::Differs
        }
    }
}

/// One row each: `"id", facts: "what a difference means", the settings that request one;`.
macro_rules! compared {
    ($($id:literal, [$($name:path),+]: $meaning:literal, [$($setting:literal),*];)+) => {
        &[$(Compared {
            id: $id,
            names: &[$($name),+],
            meaning: $meaning,
            settings: &[$($setting),*],
        }),+]
    };
}

pub(super) const COMPARED: &[Compared] = compared! {
    "cpus", [fact::CPU_AFFINITY]:
        "not the same processors: work in several threads is not comparable", ["cpuset", "cpus"];
    "memory", [fact::MEMORY_TOTAL]:
        "not the same memory: page cache and large buffers are cut off earlier on one side", ["memory"];
    "cpu-model", [fact::CPU_MODEL]:
        "another processor, or another name for it: programs choose their instructions by it", ["cpu"];
    "governor", [fact::CPU_GOVERNOR]:
        "not the same choice of the processor's frequency", [];
    "clocksource", [fact::CLOCKSOURCE_CURRENT]:
        "not the same clock: reading it costs differently, and its steps differ", [];
    "huge-pages", [fact::THP_ENABLED, fact::STATUS_THP_ENABLED]:
        "not the same use of huge pages: first touch and translation cost differently", [];
    "mitigations", [fact::MITIGATION]:
        "not the same mitigations: kernel entries cost differently", [];
    "store-bypass", [fact::STATUS_STORE_BYPASS]:
        "loads may not pass stores on one side: interpreters are slower there", [];
    "indirect-branch", [fact::STATUS_INDIRECT_BRANCH]:
        "indirect branches are predicted differently", [];
    "seccomp", [fact::STATUS_SECCOMP, fact::STATUS_SECCOMP_FILTERS]:
        "system calls pass a filter on one side", ["seccomp", "privileged"];
    "open-files", [fact::RLIMIT_NOFILE]:
        "not the same limit of open files: programs that close or reserve by it take longer", ["ulimits", "rlimits"];
    "locked-memory", [fact::RLIMIT_MEMLOCK]:
        "not the same limit of locked memory: rings and pinned buffers may be refused", ["ulimits", "rlimits"];
    "stack", [fact::RLIMIT_STACK]:
        "not the same limit of the stack: threads reserve by it", ["ulimits", "rlimits"];
    "shared-memory", [fact::SHM_SIZE]:
        "not the same room in /dev/shm: what shares memory fails earlier on one side", ["shm"];
};

/// Cgroup limits, made comparable between v1 and v2.
pub(super) struct Limit {
    pub(super) id: &'static str,
    /// The controller that sets it.
    pub(super) controller: &'static str,
    pub(super) read: fn(&Facts) -> Option<String>,
    pub(super) meaning: &'static str,
    pub(super) setting: &'static str,
}

pub(super) const LIMITS: &[Limit] = &[
    Limit {
        id: "cpu-quota",
        controller: "cpu",
        read: cpu_quota,
        meaning: "not the same share of the processors: long work is stopped at the limit",
        setting: "cpus",
    },
    Limit {
        id: "memory-limit",
        controller: "memory",
        read: memory_limit,
        meaning: "not the same memory: page cache and large buffers are cut off earlier",
        setting: "memory",
    },
    Limit {
        id: "pids-limit",
        controller: "pids",
        read: pids_limit,
        meaning: "not the same number of processes and threads: work that starts many fails earlier",
        setting: "pids",
    },
];

/// Neither number nor file: the value of a cgroup without a limit.
const NO_LIMIT: &str = "none";

/// The quota in CPUs. Without a quota `cpu.max` begins with `max`, `cfs_quota_us` is −1, and the root cgroup of v2
/// has no file.
fn cpu_quota(facts: &Facts) -> Option<String> {
    let (quota, period) = match facts.get(fact::CGROUP_CPU_MAX) {
        Some(both) => both.split_once(' ').unwrap_or((both, "100000")),
        None => match facts.get(fact::CGROUP_CFS_QUOTA) {
            Some(quota) => (quota.as_str(), facts.get(fact::CGROUP_CFS_PERIOD)?.as_str()),
            None => return Some(NO_LIMIT.to_owned()),
        },
    };
    if quota == "max" || quota.starts_with('-') {
        return Some(NO_LIMIT.to_owned());
    }
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| format!("{:.2} processors", quota / period))
}

/// Bytes. Without a limit v2 reports `max` and v1 a number near 2⁶³.
fn memory_limit(facts: &Facts) -> Option<String> {
    let names = [fact::CGROUP_MEMORY_MAX, fact::CGROUP_MEMORY_LIMIT];
    let text = names.iter().find_map(|name| facts.get(*name));
    let bytes = match text.map(String::as_str) {
        None | Some("max") => None,
        Some(text) => Some(text.parse::<u64>().ok()?),
    };
    let limit = bytes.filter(|bytes| *bytes < 1 << 62);
    Some(limit.map_or(NO_LIMIT.to_owned(), |bytes| format!("{bytes} bytes")))
}

/// Processes and threads.
fn pids_limit(facts: &Facts) -> Option<String> {
    match facts.get(fact::CGROUP_PIDS_MAX).map(String::as_str) {
        None | Some("max") => Some(NO_LIMIT.to_owned()),
        Some(count) => Some(format!("{} processes", count.parse::<u64>().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::*;

    /// Facts that have a separate comparison.
    const BY_THEMSELVES: &[&str] = &tare_model::rows! {
        fact::AGENT_SHA256, fact::KERNEL_RELEASE, fact::KERNEL_BOOT_ID, fact::MOUNT_FSTYPE,
        fact::CGROUP_CPU_MAX, fact::CGROUP_CFS_QUOTA, fact::CGROUP_CFS_PERIOD, fact::CGROUP_MEMORY_MAX,
        fact::CGROUP_MEMORY_LIMIT, fact::CGROUP_PIDS_MAX, fact::TOOL_PATH, fact::TOOL_SHA256,
        fact::TOOL_VERSION, fact::TOOL_INTERPRETER, fact::TOOL_INTERPRETER_SHA256,
    };

    #[test]
    fn compared_facts_match_the_fact_table() {
        let compared: Vec<&str> = COMPARED
            .iter()
            .flat_map(|what| what.names.iter().copied())
            .collect();
        for row in fact::FACTS {
            let is_compared = compared.contains(&row.name) || BY_THEMSELVES.contains(&row.name);
            let is_to_be = matches!(row.used, Use::Given | Use::Is);
            assert_eq!(is_compared, is_to_be, "{}", row.name);
        }
        for what in COMPARED {
            let mut uses = what.names.iter().map(|name| fact::row(name).unwrap().used);
            let first = uses.next().unwrap();
            assert!(uses.all(|other| other == first), "{}", what.id);
        }
    }

    #[test]
    fn cgroup_v1_and_v2_limits_have_the_same_text() {
        let quota = |pairs: &[(&str, &str)]| cpu_quota(&facts(pairs));
        let none = Some(NO_LIMIT.to_owned());
        let half = Some("0.50 processors".to_owned());
        assert_eq!(quota(&[("cgroup.cpu.max", "max 100000")]), none);
        assert_eq!(quota(&[("cgroup.cpu.max", "50000 100000")]), half);
        let v1 = |quota| {
            [
                ("cgroup.cpu.cfs_quota_us", quota),
                ("cgroup.cpu.cfs_period_us", "100000"),
            ]
        };
        assert_eq!(quota(&v1("-1")), none);
        assert_eq!(quota(&v1("50000")), half);
        assert_eq!(quota(&[]), none);
        assert_eq!(quota(&[("cgroup.cpu.max", "many few")]), None);
        let memory = |pairs: &[(&str, &str)]| memory_limit(&facts(pairs));
        assert_eq!(
            memory(&[("cgroup.memory.limit_in_bytes", "9223372036854771712")]),
            none
        );
        assert_eq!(memory(&[("cgroup.memory.max", "max")]), none);
        assert_eq!(
            memory(&[("cgroup.memory.max", "1024")]),
            Some("1024 bytes".to_owned())
        );
    }
}
