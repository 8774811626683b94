//! Checks whether the arms had the same resources: compares each arm's facts with the baseline's.
//!
//! Two kinds of fact. What an arm is *given* (CPUs, memory, clock, the agent's bytes, the tools) must be equal, or
//! the ratio measures that difference: it is `fail`. What an arm *is* (seccomp filter, mitigations of its processes,
//! file system under its work) is what a study compares: a difference is `differs`, and a hint at a cause. Facts are
//! compared as text, exactly as found.
//! A run compares before its first trial and reports the result; the dossier holds the same comparison of the stored
//! facts.
//! Limits: facts that neither side could read are `n.a.`, never `pass`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use tare_model::dossier::CheckItem;
use tare_model::fact;
use tare_model::{CheckResult, Facts, Params};

use tare_model::unit::bytes;

mod compared;
mod tools;

use compared::{COMPARED, Compared, LIMITS, Limit};
pub use tools::{Mismatch, fix, mismatches, missing};

/// The facts and settings of one arm.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// Its name.
    pub id: &'a str,
    /// Its settings as given by the user.
    pub settings: &'a Params,
    /// Facts found about it.
    pub facts: &'a Facts,
    /// Hash of the agent in it.
    pub agent_sha256: Option<&'a str>,
}

/// One thing that was compared between an arm and the baseline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    arm: String,
    what: String,
    /// Whether both are equal.
    pub result: CheckResult,
    /// A sentence that names both arms; the value if both are equal.
    detail: String,
    /// The baseline's value, the arm's value and the meaning, if the two differ.
    difference: Option<[String; 3]>,
}

impl Finding {
    fn new(arm: Side<'_>, what: &str, result: CheckResult, detail: String) -> Self {
        Self {
            arm: arm.id.to_owned(),
            what: what.to_owned(),
            result,
            detail,
            difference: None,
        }
    }

    fn with_difference(self, there: &str, here: &str, meaning: &str) -> Self {
        Self {
            difference: Some([there.to_owned(), here.to_owned(), meaning.to_owned()]),
            ..self
        }
    }

    /// Converts it to the dossier's form.
    pub fn into_item(self) -> CheckItem {
        CheckItem {
            id: format!("{}.{}", self.arm, self.what),
            result: self.result,
            detail: self.detail,
        }
    }
}

/// Compares one arm with the baseline. `programs` are the tools that the study's workloads run.
pub fn compared(base: Side<'_>, arm: Side<'_>, programs: &[String]) -> Vec<Finding> {
    let mut findings = vec![agent(base, arm)];
    findings.extend(machine(base, arm));
    findings.push(kernel(base, arm));
    findings.extend(LIMITS.iter().map(|what| what.compare(base, arm)));
    findings.extend(COMPARED.iter().map(|what| what.compare(base, arm)));
    findings.push(workdir(base, arm));
    findings.extend(tools::findings(base, arm, programs));
    findings
}

/// Checks whether these programs are the same bytes in an arm as in the baseline, in the dossier's form.
pub fn same_programs(base: Side<'_>, arm: Side<'_>, programs: &[String]) -> Vec<CheckItem> {
    let findings = tools::findings(base, arm, programs).into_iter();
    findings.map(Finding::into_item).collect()
}

/// Returns the differences among the findings of all arms, one line each, unwanted ones first. Arms that differ from
/// the baseline in the same way share a line; without differences there is none.
pub fn lines(baseline: &str, findings: &[Finding]) -> Vec<String> {
    let mut lines = Vec::new();
    for (result, word) in [
        (CheckResult::Fail, "not equal"),
        (CheckResult::Differs, "differs"),
    ] {
        let mut arms_by_difference: BTreeMap<(usize, &[String; 3]), Vec<String>> = BTreeMap::new();
        let mut order: Vec<&str> = Vec::new();
        for finding in findings.iter().filter(|finding| finding.result == result) {
            let Some(difference) = &finding.difference else {
                continue;
            };
            let place = order.iter().position(|what| *what == finding.what);
            let place = place.unwrap_or_else(|| {
                order.push(&finding.what);
                order.len() - 1
            });
            let arms = arms_by_difference.entry((place, difference));
            arms.or_default().push(format!("`{}`", finding.arm));
        }
        for ((place, [there, here, meaning]), arms) in arms_by_difference {
            lines.push(format!(
                "{word}: {} is {} in {} and {} in `{baseline}`: {meaning}",
                order[place],
                quoted(here),
                arms.join(", "),
                quoted(there),
            ));
        }
    }
    lines
}

/// The longest value in a line, in characters.
const VALUE_LIMIT: usize = 60;

/// A value in backticks, shortened if it is too long for a line.
fn quoted(value: &str) -> String {
    if value.chars().count() <= VALUE_LIMIT {
        return format!("`{value}`");
    }
    let beginning: String = value.chars().take(VALUE_LIMIT).collect();
    format!("`{beginning}…`")
}

impl Limit {
    fn compare(&self, base: Side<'_>, arm: Side<'_>) -> Finding {
        let known = |side: Side<'_>| {
            let looked = side.facts.contains_key(fact::CGROUP_LAYOUT);
            let readable = !side
                .facts
                .contains_key(&fact::name_for(fact::UNREADABLE_CGROUP, self.controller));
            (looked && readable)
                .then(|| (self.read)(side.facts))
                .flatten()
        };
        let wording = Wording {
            what: self.id,
            result: CheckResult::Fail,
            meaning: self.meaning,
            settings: &[self.setting],
        };
        compare_where_known(base, arm, known, &[], &wording)
    }
}

/// How a difference is reported.
struct Wording<'a> {
    what: &'a str,
    /// The result if no setting of the arm requests the difference.
    result: CheckResult,
    meaning: &'a str,
    settings: &'a [&'a str],
}

/// The same for what `known` reads on both sides; if it reads nothing, these `names` explain why.
fn compare_where_known(
    base: Side<'_>,
    arm: Side<'_>,
    known: impl Fn(Side<'_>) -> Option<String>,
    names: &[&str],
    wording: &Wording<'_>,
) -> Finding {
    let (Some(there), Some(here)) = (known(base), known(arm)) else {
        let why = unread(base, arm, names);
        return Finding::new(arm, wording.what, CheckResult::NotKnown, why);
    };
    compare(base, &there, arm, &here, wording)
}

fn compare(
    base: Side<'_>,
    there: &str,
    arm: Side<'_>,
    here: &str,
    wording: &Wording<'_>,
) -> Finding {
    if there == here {
        return Finding::new(arm, wording.what, CheckResult::Pass, here.to_owned());
    }
    let read = [there, here].map(|value| readable(wording.what, value));
    // If the readable forms are equal, the raw values are shown.
    let (there, here) = if read[0] == read[1] {
        (there, here)
    } else {
        (&*read[0], &*read[1])
    };
    let mut settings = wording.settings.iter();
    let (result, meaning) = match settings.find(|name| arm.settings.value(name).is_some()) {
        Some(name) => (
            CheckResult::Differs,
            format!("{} (asked for by `{name}`)", wording.meaning),
        ),
        None => (wording.result, wording.meaning.to_owned()),
    };
    let detail = format!(
        "`{there}` in `{}`, `{here}` in `{}`: {meaning}",
        base.id, arm.id
    );
    Finding::new(arm, wording.what, result, detail).with_difference(there, here, &meaning)
}

/// Formats a value that is written for programs.
fn readable<'a>(what: &str, value: &'a str) -> Cow<'a, str> {
    let filters = |state: &str, count: &str| match (state, count) {
        ("0", _) => Some("off".to_owned()),
        ("1", _) => Some("strict".to_owned()),
        ("2", "1") => Some("1 filter".to_owned()),
        ("2", count) => Some(format!("{count} filters")),
        _ => None,
    };
    let written = match what {
        "memory" | "shared-memory" => value.parse().ok().map(bytes),
        "seccomp" => value
            .split_once("; ")
            .and_then(|(state, count)| filters(state, count)),
        _ => None,
    };
    written.map_or(Cow::Borrowed(value), Cow::Owned)
}

/// Compares the file systems under the requested paths: those of the probes' files.
fn workdir(base: Side<'_>, arm: Side<'_>) -> Finding {
    let kinds = |side: Side<'_>| {
        let mounts = side.facts.iter();
        let mut kinds: Vec<&str> = mounts
            .filter(|(name, _)| fact::what(fact::MOUNT_FSTYPE, name).is_some())
            .map(|(_, kind)| kind.as_str())
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        (!kinds.is_empty()).then(|| kinds.join(", "))
    };
    let wording = Wording {
        what: "workdir",
        result: CheckResult::Differs,
        meaning: "files are worked on in another file system",
        settings: &[],
    };
    compare_where_known(base, arm, kinds, &[], &wording)
}

/// The number of online CPUs, if the facts contain it.
pub fn online_cpus(facts: &Facts) -> Option<f64> {
    facts
        .get(fact::CPU_COUNT)?
        .parse()
        .ok()
        .filter(|count: &f64| *count > 0.0)
}

impl Compared {
    fn compare(&self, base: Side<'_>, arm: Side<'_>) -> Finding {
        let (there, here) = (
            picked(base.facts, self.names),
            picked(arm.facts, self.names),
        );
        let (Some(mut there), Some(mut here)) = (there, here) else {
            return Finding::new(
                arm,
                self.id,
                CheckResult::NotKnown,
                unread(base, arm, self.names),
            );
        };
        if there != here && self.names.iter().any(|name| name.ends_with('*')) {
            // Of a long list only the differing entries are worth reading.
            let equal: Vec<String> = there
                .iter()
                .filter(|one| here.contains(one))
                .cloned()
                .collect();
            there.retain(|one| !equal.contains(one));
            here.retain(|one| !equal.contains(one));
        }
        let text = |values: Vec<String>| {
            if values.is_empty() {
                "nothing more".to_owned()
            } else {
                values.join("; ")
            }
        };
        let wording = Wording {
            what: self.id,
            result: self.result(),
            meaning: self.meaning,
            settings: self.settings,
        };
        compare(base, &text(there), arm, &text(here), &wording)
    }
}

/// The facts under `names`; `None` if there are none.
fn picked(facts: &Facts, names: &[&str]) -> Option<Vec<String>> {
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
    (!found.is_empty()).then_some(found)
}

/// Why a fact is not known, as reported by the reader.
fn unread(base: Side<'_>, arm: Side<'_>, names: &[&str]) -> String {
    let why = [base, arm].iter().find_map(|side| {
        let reason = names
            .iter()
            .find_map(|name| side.facts.get(&fact::name_for(fact::UNREADABLE, name)))?;
        Some(format!("not read in `{}`: {reason}", side.id))
    });
    why.unwrap_or_else(|| format!("`{}` or `{}` does not tell", base.id, arm.id))
}

fn agent(base: Side<'_>, arm: Side<'_>) -> Finding {
    const MEANING: &str = "not the same bytes, so that nothing is attributable to the environment";
    let (Some(there), Some(here)) = (base.agent_sha256, arm.agent_sha256) else {
        let why = "the hash of an agent is not recorded".to_owned();
        return Finding::new(arm, "agent", CheckResult::NotKnown, why);
    };
    if there == here {
        return Finding::new(arm, "agent", CheckResult::Pass, here.to_owned());
    }
    let detail = format!("`{there}` and `{here}`: {MEANING}");
    Finding::new(arm, "agent", CheckResult::Fail, detail).with_difference(there, here, MEANING)
}

/// Whether both run on one boot of one kernel. `None` if one side does not report it: then only the kernel's release
/// can be compared, with its own finding.
fn machine(base: Side<'_>, arm: Side<'_>) -> Option<Finding> {
    // A number that the kernel generates at each boot, the same in every container on it.
    let boot = |side: Side<'_>| side.facts.get(fact::KERNEL_BOOT_ID).cloned();
    let (there, here) = (boot(base)?, boot(arm)?);
    if there == here {
        let detail = format!("one machine: `{here}`");
        return Some(Finding::new(arm, "machine", CheckResult::Pass, detail));
    }
    let detail = format!(
        "`{}` runs on another machine than `{}` (virtual or real; boot `{here}`, not `{there}`): what is compared are machines, not only environments",
        arm.id, base.id
    );
    let meaning =
        "another machine, virtual or real: what is compared are machines, not only environments";
    let finding = Finding::new(arm, "machine", CheckResult::Differs, detail);
    Some(finding.with_difference(&there, &here, meaning))
}

fn kernel(base: Side<'_>, arm: Side<'_>) -> Finding {
    let release = |side: Side<'_>| side.facts.get(fact::KERNEL_RELEASE).cloned();
    let wording = Wording {
        what: "kernel",
        result: CheckResult::Differs,
        meaning: "what is compared are platforms, not the container",
        settings: &[],
    };
    compare_where_known(base, arm, release, &[fact::KERNEL_RELEASE], &wording)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn facts(pairs: &[(&str, &str)]) -> Facts {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn side<'a>(id: &'a str, facts: &'a Facts, settings: &'a Params) -> Side<'a> {
        Side {
            id,
            settings,
            facts,
            agent_sha256: Some("00"),
        }
    }

    #[test]
    fn sizes_and_filters_are_written_for_people() {
        for (what, value, written) in [
            ("shared-memory", "67108864", "64 MiB"),
            ("seccomp", "2; 1", "1 filter"),
            ("seccomp", "0; 0", "off"),
            ("seccomp", "2", "2"),
            ("memory", "no limit", "no limit"),
            ("cpus", "0-1", "0-1"),
        ] {
            assert_eq!(readable(what, value), written, "{what}");
        }
    }

    #[test]
    fn parity_lines_skip_equal_arms_and_merge_alike_ones() {
        let plain = Params::new();
        let base = facts(&[
            ("cpu.affinity", "0-1"),
            ("status.Seccomp", "0"),
            ("mitigation.a", "x"),
            ("mitigation.b", "y"),
        ]);
        let box_facts = facts(&[
            ("cpu.affinity", "0-1"),
            ("status.Seccomp", "2"),
            ("mitigation.a", "x"),
            ("mitigation.b", "z"),
        ]);
        let of = |arm: &str, facts: &Facts, settings: &Params| {
            compared(side("host", &base, &plain), side(arm, facts, settings), &[])
        };
        assert!(lines("host", &of("a-prime", &base, &plain)).is_empty());
        let mut both = of("one", &box_facts, &plain);
        both.extend(of("two", &box_facts, &plain));
        let shown = lines("host", &both);
        assert_eq!(shown.len(), 2, "{shown:#?}");
        assert!(shown[0].contains("`b=z` in `one`, `two` and `b=y` in `host`"));
        let mut fewer = box_facts;
        fewer.insert("cpu.affinity".into(), "0".into());
        let shown = lines("host", &of("one", &fewer, &plain));
        assert!(
            shown[0].starts_with("not equal: cpus is `0` in `one`"),
            "{shown:#?}"
        );
        let asked = Params::new().with("cpuset", "0");
        let shown = lines("host", &of("one", &fewer, &asked));
        let cpus = shown.iter().find(|line| line.contains("cpus is")).unwrap();
        assert!(cpus.starts_with("differs:") && cpus.contains("asked for by `cpuset`"));
    }
}
