//! Were the arms given the same? Facts of each arm beside the baseline's.
//!
//! Two kinds of fact. What an arm is *given* (processors, memory, clock, the agent's bytes) must be equal,
//! or the ratio is that of the gifts: a difference is `fail`. What an arm *is* (seccomp filter, mitigations
//! of its processes, file system under its work) is what a study compares: a difference is `differs`, and
//! says where to look for a cause. Facts are compared as text, exactly as found.
//! What it cannot see: what neither side could read; that is `n.a.`, never `pass`.

use tare_model::Facts;
use tare_model::dossier::CheckItem;

use super::input::{ArmData, RunHead};

/// Equal.
pub(crate) const PASS: &str = "pass";
/// Not equal, and it should be.
pub(crate) const FAIL: &str = "fail";
/// Not equal, and that is part of what is compared.
pub(crate) const DIFFERS: &str = "differs";
/// Not known on at least one side.
pub(crate) const NOT_KNOWN: &str = "n.a.";

/// What is compared.
struct Compared {
    id: &'static str,
    /// Facts under one of these names; a name that ends in `*` stands for all that begin so.
    names: &'static [&'static str],
    /// Result of a difference.
    result: &'static str,
    /// What a difference means.
    meaning: &'static str,
    /// Settings of the arm that ask for a difference.
    settings: &'static [&'static str],
}

const COMPARED: &[Compared] = &[
    Compared {
        id: "cpus",
        names: &["cpu.affinity"],
        result: FAIL,
        meaning: "not the same processors: work in several threads is not comparable",
        settings: &["cpuset", "cpus"],
    },
    Compared {
        id: "clocksource",
        names: &["clocksource.current"],
        result: FAIL,
        meaning: "not the same clock: reading it costs differently, and its steps differ",
        settings: &[],
    },
    Compared {
        id: "huge-pages",
        names: &["thp.enabled", "status.THP_enabled"],
        result: FAIL,
        meaning: "not the same use of huge pages: first touch and translation cost differently",
        settings: &[],
    },
    Compared {
        id: "mitigations",
        names: &["mitigation.*"],
        result: DIFFERS,
        meaning: "not the same mitigations: kernel entries cost differently",
        settings: &[],
    },
    Compared {
        id: "store-bypass",
        names: &["status.Speculation_Store_Bypass"],
        result: DIFFERS,
        meaning: "loads may not pass stores on one side: interpreters are slower there",
        settings: &[],
    },
    Compared {
        id: "indirect-branch",
        names: &["status.SpeculationIndirectBranch"],
        result: DIFFERS,
        meaning: "indirect branches are predicted differently",
        settings: &[],
    },
    Compared {
        id: "seccomp",
        names: &["status.Seccomp", "status.Seccomp_filters"],
        result: DIFFERS,
        meaning: "system calls pass a filter on one side",
        settings: &[],
    },
];

const KERNEL: &[&str] = &["kernel.release"];

/// A number that the kernel makes at each boot, the same in every container on it.
const BOOT: &[&str] = &["kernel.boot_id"];

/// Limits of control groups, made comparable between v1 and v2.
struct Limit {
    id: &'static str,
    /// What cannot be read as a whole where this is unreadable.
    controller: &'static str,
    read: fn(&Facts) -> Option<String>,
    meaning: &'static str,
    setting: &'static str,
}

const LIMITS: &[Limit] = &[
    Limit {
        id: "cpu-quota",
        controller: "unreadable.cgroup.cpu",
        read: cpu_quota,
        meaning: "not the same share of the processors: long work is stopped at the limit",
        setting: "cpus",
    },
    Limit {
        id: "memory-limit",
        controller: "unreadable.cgroup.memory",
        read: memory_limit,
        meaning: "not the same memory: page cache and large buffers are cut off earlier",
        setting: "memory",
    },
];

/// Neither number nor file: what a group without a limit has.
const NO_LIMIT: &str = "none";

/// Processors that the quota amounts to. Without a quota `cpu.max` begins with `max`, `cfs_quota_us` is −1,
/// and the root group of v2 has no file.
fn cpu_quota(facts: &Facts) -> Option<String> {
    let (quota, period) = match facts.get("cgroup.cpu.max") {
        Some(both) => both.split_once(' ').unwrap_or((both, "100000")),
        None => match facts.get("cgroup.cpu.cfs_quota_us") {
            Some(quota) => (
                quota.as_str(),
                facts.get("cgroup.cpu.cfs_period_us")?.as_str(),
            ),
            None => return Some(NO_LIMIT.to_owned()),
        },
    };
    if quota == "max" || quota.starts_with('-') {
        return Some(NO_LIMIT.to_owned());
    }
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| format!("{:.2} processors", quota / period))
}

/// Bytes. Without a limit v2 says `max` and v1 a number near 2⁶³.
fn memory_limit(facts: &Facts) -> Option<String> {
    let names = ["cgroup.memory.max", "cgroup.memory.limit_in_bytes"];
    let Some(text) = names.iter().find_map(|name| facts.get(*name)) else {
        return Some(NO_LIMIT.to_owned());
    };
    if text == "max" {
        return Some(NO_LIMIT.to_owned());
    }
    let bytes: u64 = text.parse().ok()?;
    Some(if bytes >= 1 << 62 {
        NO_LIMIT.to_owned()
    } else {
        format!("{bytes} bytes")
    })
}

impl Limit {
    fn of(&self, base: &ArmData, arm: &ArmData) -> CheckItem {
        let known = |side: &ArmData| {
            let looked = side.facts.contains_key("cgroup.layout");
            let readable = !side.facts.contains_key(self.controller);
            (looked && readable)
                .then(|| (self.read)(&side.facts))
                .flatten()
        };
        let (result, detail) = match (known(base), known(arm)) {
            (Some(there), Some(here)) if there == here => (PASS, here),
            (Some(there), Some(here)) => {
                let detail = told_apart(base, &there, arm, &here, self.meaning);
                match arm.spec.settings.value(self.setting) {
                    Some(_) => (
                        DIFFERS,
                        format!("{detail} (asked for by `{}`)", self.setting),
                    ),
                    None => (FAIL, detail),
                }
            }
            _ => (NOT_KNOWN, unread(base, arm, &[])),
        };
        item(arm, self.id, result, detail)
    }
}

fn told_apart(base: &ArmData, there: &str, arm: &ArmData, here: &str, meaning: &str) -> String {
    format!(
        "`{there}` in `{}`, `{here}` in `{}`: {meaning}",
        base.spec.id, arm.spec.id
    )
}

/// The file systems under the paths that were asked about: those of the probes' files.
fn workdir(base: &ArmData, arm: &ArmData) -> CheckItem {
    let kinds = |side: &ArmData| {
        let mounts = side.facts.iter();
        let mut kinds: Vec<&str> = mounts
            .filter(|(name, _)| name.starts_with("mount.") && name.ends_with(".fstype"))
            .map(|(_, kind)| kind.as_str())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    };
    let (result, detail) = match (kinds(base), kinds(arm)) {
        (Some(there), Some(here)) if there == here => (PASS, here),
        (Some(there), Some(here)) => (
            DIFFERS,
            told_apart(
                base,
                &there,
                arm,
                &here,
                "files are worked on in another file system",
            ),
        ),
        _ => (NOT_KNOWN, unread(base, arm, &[])),
    };
    item(arm, "workdir", result, detail)
}

/// Compares every available arm with the baseline.
pub(crate) fn compared(head: &RunHead) -> Vec<CheckItem> {
    let Some(base) = head
        .arms
        .iter()
        .find(|arm| arm.spec.id == head.study.baseline && arm.available)
    else {
        return Vec::new();
    };
    let others = head
        .arms
        .iter()
        .filter(|arm| arm.available && arm.spec.id != base.spec.id);
    let mut items = Vec::new();
    for arm in others {
        items.push(agent(base, arm));
        items.extend(machine(base, arm));
        items.push(kernel(base, arm));
        items.extend(LIMITS.iter().map(|what| what.of(base, arm)));
        items.extend(COMPARED.iter().map(|what| what.of(base, arm)));
        items.push(workdir(base, arm));
    }
    items
}

/// The number of processors that are online, if the facts tell.
pub(crate) fn online_cpus(facts: &Facts) -> Option<f64> {
    facts
        .get("cpu.count")?
        .parse()
        .ok()
        .filter(|count: &f64| *count > 0.0)
}

impl Compared {
    fn of(&self, base: &ArmData, arm: &ArmData) -> CheckItem {
        let (there, here) = (
            picked(&base.facts, self.names),
            picked(&arm.facts, self.names),
        );
        let asked = self
            .settings
            .iter()
            .find(|name| arm.spec.settings.value(name).is_some());
        let (result, detail) = match (&there, &here) {
            (None, _) | (_, None) => (NOT_KNOWN, unread(base, arm, self.names)),
            (Some(there), Some(here)) if there == here => (PASS, there.clone()),
            (Some(there), Some(here)) => {
                let detail = told_apart(base, there, arm, here, self.meaning);
                match asked {
                    Some(name) => (DIFFERS, format!("{detail} (asked for by `{name}`)")),
                    None => (self.result, detail),
                }
            }
        };
        item(arm, self.id, result, detail)
    }
}

/// The facts under `names`, as one text; `None` if there is none of them.
fn picked(facts: &Facts, names: &[&str]) -> Option<String> {
    let mut found = Vec::new();
    for name in names {
        if let Some(prefix) = name.strip_suffix('*') {
            let range = facts.range(prefix.to_owned()..);
            let range = range.take_while(|(name, _)| name.starts_with(prefix));
            found.extend(range.map(|(name, value)| format!("{}={value}", &name[prefix.len()..])));
        } else if let Some(value) = facts.get(*name) {
            found.push(value.clone());
        }
    }
    (!found.is_empty()).then(|| found.join("; "))
}

/// Why a fact is not known, in the words of whoever could not read it.
fn unread(base: &ArmData, arm: &ArmData, names: &[&str]) -> String {
    let why = [base, arm].iter().find_map(|side| {
        let reason = names
            .iter()
            .find_map(|name| side.facts.get(&format!("unreadable.{name}")))?;
        Some(format!("not read in `{}`: {reason}", side.spec.id))
    });
    why.unwrap_or_else(|| format!("`{}` or `{}` does not tell", base.spec.id, arm.spec.id))
}

fn agent(base: &ArmData, arm: &ArmData) -> CheckItem {
    let (result, detail) = match (&base.agent_sha256, &arm.agent_sha256) {
        (Some(there), Some(here)) if there == here => (PASS, here.clone()),
        (Some(there), Some(here)) => (
            FAIL,
            format!(
                "`{there}` and `{here}`: not the same bytes, so that nothing is attributable to the environment"
            ),
        ),
        _ => (NOT_KNOWN, "the hash of an agent is not recorded".to_owned()),
    };
    item(arm, "agent", result, detail)
}

/// Whether both run on one boot of one kernel. Nothing where one side cannot tell: then the kernel's release
/// is all that there is to go by, and it says so.
fn machine(base: &ArmData, arm: &ArmData) -> Option<CheckItem> {
    let (there, here) = (picked(&base.facts, BOOT)?, picked(&arm.facts, BOOT)?);
    let (result, detail) = if there == here {
        (PASS, format!("one machine: `{here}`"))
    } else {
        (
            DIFFERS,
            format!(
                "`{}` runs on another machine than `{}` (virtual or real; boot `{here}`, not `{there}`): what is compared are machines, not only environments",
                arm.spec.id, base.spec.id
            ),
        )
    };
    Some(item(arm, "machine", result, detail))
}

fn kernel(base: &ArmData, arm: &ArmData) -> CheckItem {
    let (result, detail) = match (picked(&base.facts, KERNEL), picked(&arm.facts, KERNEL)) {
        (Some(there), Some(here)) if there == here => (PASS, here),
        (Some(there), Some(here)) => (
            DIFFERS,
            format!(
                "`{there}` in `{}`, `{here}` in `{}`: what is compared are platforms, not the container",
                base.spec.id, arm.spec.id
            ),
        ),
        _ => (NOT_KNOWN, unread(base, arm, KERNEL)),
    };
    item(arm, "kernel", result, detail)
}

fn item(arm: &ArmData, id: &str, result: &str, detail: String) -> CheckItem {
    CheckItem {
        id: format!("{}.{id}", arm.spec.id),
        result: result.to_owned(),
        detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(pairs: &[(&str, &str)]) -> Facts {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn limits_are_the_same_text_in_both_versions_of_control_groups() {
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
