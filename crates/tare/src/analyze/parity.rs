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
        names: &["cpu.affinity", "cpu.allowed", "status.Cpus_allowed_list"],
        result: FAIL,
        meaning: "not the same processors: work in several threads is not comparable",
        settings: &["cpuset", "cpus"],
    },
    Compared {
        id: "cpu-quota",
        names: &["cgroup.cpu.max", "cgroup.cpu.quota", "cpu.quota"],
        result: FAIL,
        meaning: "not the same share of a processor: long work is throttled",
        settings: &["cpus"],
    },
    Compared {
        id: "memory-limit",
        names: &["cgroup.memory.max", "cgroup.memory.limit", "memory.limit"],
        result: FAIL,
        meaning: "not the same memory: page cache and large buffers are cut off earlier",
        settings: &["memory"],
    },
    Compared {
        id: "clocksource",
        names: &["clock.source", "clocksource", "clock.clocksource"],
        result: FAIL,
        meaning: "not the same clock: reading it costs differently, and its steps differ",
        settings: &[],
    },
    Compared {
        id: "huge-pages",
        names: &["memory.thp", "thp.enabled", "thp"],
        result: FAIL,
        meaning: "not the same use of huge pages: first touch and translation cost differently",
        settings: &[],
    },
    Compared {
        id: "mitigations",
        names: &["mitigation.*", "vulnerability.*", "cpu.vulnerability.*"],
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
    Compared {
        id: "workdir",
        names: &["workdir.fstype", "mount.workdir.fstype"],
        result: DIFFERS,
        meaning: "files are worked on in another file system",
        settings: &[],
    },
];

const KERNEL: &[&str] = &["kernel.release", "kernel.version", "os.kernel"];

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
        items.push(kernel(base, arm));
        items.extend(COMPARED.iter().map(|what| what.of(base, arm)));
    }
    items
}

/// The number of processors that are online, if the facts tell.
pub(crate) fn online_cpus(facts: &Facts) -> Option<f64> {
    ["cpu.online", "cpus.online", "cpu.count"]
        .iter()
        .filter_map(|name| facts.get(*name))
        .find_map(|text| counted_in(text))
        .filter(|count| *count > 0)
        .map(f64::from)
}

/// `2` or `0-3,8` as a number of processors. A list always holds a `-` or a `,`, or is the lone processor 0.
fn counted_in(text: &str) -> Option<u32> {
    if !text.contains(['-', ',']) {
        return text.trim().parse().ok().map(|count: u32| count.max(1));
    }
    let mut count = 0;
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        count += high.checked_sub(low)? + 1;
    }
    Some(count)
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
                let detail = format!(
                    "`{there}` in `{}`, `{here}` in `{}`: {}",
                    base.spec.id, arm.spec.id, self.meaning
                );
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
    why.unwrap_or_else(|| {
        let missing = if picked(&base.facts, names).is_none() {
            base
        } else {
            arm
        };
        format!("`{}` does not tell", missing.spec.id)
    })
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

    #[test]
    fn processors_are_counted_in_lists_and_in_numbers() {
        for (text, count) in [
            ("0-1", Some(2)),
            ("0-3,8", Some(5)),
            ("2", Some(2)),
            ("0", Some(1)),
            ("3-1", None),
            ("many", None),
        ] {
            assert_eq!(counted_in(text), count, "{text}");
        }
    }
}
