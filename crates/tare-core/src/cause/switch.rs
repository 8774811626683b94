//! Builds counterfactuals: which setting of which driver removes a mechanism.
//!
//! In one place, because the drivers have different names for the same thing, and because a test checks every name
//! against the drivers' lists. Limits: does not know whether an engine grants the setting.

use std::collections::BTreeMap;

use tare_model::fact;
use tare_model::{Params, Value, whole_part};

use tare_model::facts::cpu_list;

use super::queries::FileLocation;
use super::{Case, Counterfactual};
use crate::driver::mechanism::Kind;
use crate::driver::{self, user_container};

/// Changes this setting, if there is one.
fn set_to(case: &Case<'_>, found: Option<(&str, impl Into<Value>)>, what: &str) -> Counterfactual {
    match found.map(|(name, value)| (name, value.into())) {
        Some((name, value)) if case.is_set(name, &value.to_string()) => {
            not_here(format!("`{name} = \"{value}\"` is set already"))
        }
        Some((name, value)) => Counterfactual::Settings(one(name, value)),
        None => not_here(format!(
            "the driver `{}` has no setting for {what}",
            case.arm.driver
        )),
    }
}

/// `name` set to `value`, where the arm's driver takes it; `what` says what it is otherwise lacking.
fn if_taken(case: &Case<'_>, name: &str, value: &str, what: &str) -> Counterfactual {
    set_to(case, case.takes(name).then_some((name, value)), what)
}

fn one(name: &str, value: impl Into<Value>) -> Params {
    Params::new().with(name, value)
}

/// Removes a mechanism of the arm's driver: a measurement, never advice.
fn off(case: &Case<'_>, kind: Kind) -> Counterfactual {
    let mechanism = driver::mechanisms(&case.arm.driver).find(kind);
    let set = mechanism.and_then(|mechanism| mechanism.off.first());
    set_to(case, set.copied(), kind.what())
}

/// Removes the seccomp filter: a measurement, never advice.
pub fn without_seccomp(case: &Case<'_>) -> Counterfactual {
    off(case, Kind::SystemCallFilter)
}

/// Keeps the seccomp filter, with speculation as without it; `None` if the driver has no such setting, or its value
/// is already in force.
pub fn with_sparing_filter(case: &Case<'_>) -> Option<Counterfactual> {
    let (name, set) = driver::mechanisms(&case.arm.driver).sparing_filter?;
    let value = Value::from(set);
    let in_force = case
        .setting(name)
        .or_else(|| case.fact(fact::ENGINE_RUNTIME).map(str::to_owned));
    (in_force != Some(value.to_string())).then(|| Counterfactual::Settings(one(name, value)))
}

/// Uses the host's network stack.
pub fn host_network(case: &Case<'_>) -> Counterfactual {
    off(case, Kind::Network)
}

/// Uses the containers' default network if the arm has another one; else the host's.
pub fn default_network(case: &Case<'_>) -> Counterfactual {
    if case.is_joined() && case.is_of_engine() {
        bridge_network(case)
    } else {
        host_network(case)
    }
}

/// Uses the bridge instead of a published port.
pub fn bridge_network(case: &Case<'_>) -> Counterfactual {
    let set = case.is_of_engine().then_some(("network", "bridge"));
    set_to(case, set, "published ports")
}

/// Puts the files on a volume instead of the writable layer or a host directory.
pub fn volume(case: &Case<'_>) -> Counterfactual {
    storage(case, "volume")
}

/// Puts the files elsewhere: where an engine allows it, or on the host's root.
fn storage(case: &Case<'_>, place: &str) -> Counterfactual {
    if case.takes("storage") {
        return set_to(case, Some(("storage", place)), FILES);
    }
    off(case, Kind::Root)
}

/// The subject of the message if files cannot be moved.
const FILES: &str = "where files lie";

/// Puts the files in memory.
pub fn tmpfs(case: &Case<'_>) -> Counterfactual {
    if_taken(case, "storage", "tmpfs", FILES)
}

/// Puts the files in a host directory.
pub fn bind(case: &Case<'_>) -> Counterfactual {
    storage(case, "bind")
}

/// Mounts the baseline's directory at a path, so that both sides use one file system.
pub fn same_folder(case: &Case<'_>, place: &FileLocation<'_>) -> Counterfactual {
    let Some(path) = place.path else {
        return bind(case);
    };
    if !case.takes("binds") || case.same_kernel() != Some(true) {
        return not_here("only where both sides run on one kernel can one folder be shown to both");
    }
    // Replaces the whole mount; on the environment's root only the path.
    let point = place
        .part_here(case, fact::MOUNT_POINT)
        .filter(|point| *point != "/");
    let at = point.unwrap_or(path);
    let list = |words: Vec<String>| Value::List(words.into_iter().map(Value::Text).collect());
    let mut binds = case.arm.settings.words("binds");
    binds.retain(|bind| target(bind) != Some(at));
    binds.push(format!("{at}:{at}"));
    let mut changes = one("binds", list(binds));
    let mut in_memory = case.arm.settings.words("tmpfs");
    if in_memory.iter().any(|folder| folder == at) {
        in_memory.retain(|folder| folder != at);
        let left = if in_memory.is_empty() {
            Value::from("")
        } else {
            list(in_memory)
        };
        changes = changes.with("tmpfs", left);
    }
    Counterfactual::Settings(changes)
}

/// Uses this runtime.
pub fn runtime(case: &Case<'_>, name: &str) -> Counterfactual {
    if_taken(case, "runtime", name, "the runtime")
}

/// Discards the log of standard output.
pub fn no_log(case: &Case<'_>) -> Counterfactual {
    if case.takes("stdio") {
        return set_to(case, Some(("stdio", "inherit")), Kind::Output.what());
    }
    off(case, Kind::Output)
}

/// Sets a switch of docker and podman, or another of their settings, to `value`.
pub fn engine(case: &Case<'_>, name: &str, value: impl Into<Value>) -> Counterfactual {
    if case.is_of_engine() {
        Counterfactual::Settings(one(name, value))
    } else {
        not_here(format!(
            "the driver `{}` has no setting `{name}`",
            case.arm.driver
        ))
    }
}

/// Changes a setting of the virtual machine.
pub fn machine(case: &Case<'_>, name: &str, value: &str) -> Counterfactual {
    if_taken(case, name, value, "virtual hardware")
}

/// Uses a small init as process 1. Docker mounts its own at `/sbin/docker-init`, which a bind mount at `/sbin` would
/// hide.
pub fn init(case: &Case<'_>) -> Counterfactual {
    let counterfactual = engine(case, "init", true);
    match (counterfactual, case.arm.settings.value("binds")) {
        (Counterfactual::Settings(params), Some(Value::List(binds))) => {
            let hides = |bind: &Value| target(&bind.to_string()) == Some("/sbin");
            let left: Vec<Value> = binds.iter().filter(|bind| !hides(bind)).cloned().collect();
            Counterfactual::Settings(if left.len() < binds.len() {
                params.with("binds", Value::List(left))
            } else {
                params
            })
        }
        (other, _) => other,
    }
}

/// Removes a setting of the arm.
pub fn without(case: &Case<'_>, name: &str) -> Counterfactual {
    if case.arm.settings.value(name).is_some() {
        Counterfactual::Settings(one(name, ""))
    } else if user_container::is_own(&case.arm.settings) {
        not_here("the options of your container are removed one by one instead")
    } else {
        not_here(format!(
            "no setting `{name}` of this arm asks for it: it comes from elsewhere"
        ))
    }
}

/// Returns the target of a bind mount (`source:target[:ro]`).
pub fn target(bind: &str) -> Option<&str> {
    bind.split(':').nth(1)
}

/// Whether a bind mount (`source:target[:ro]`) replaces `path` with something else.
pub fn is_over(bind: &str, path: &str) -> bool {
    let mut parts = bind.split(':');
    match (parts.next(), parts.next()) {
        (Some(source), Some(target)) => {
            source != target && std::path::Path::new(path).starts_with(target)
        }
        _ => false,
    }
}

/// Replaces the quota with as many dedicated CPUs.
pub fn cpuset_for_quota(case: &Case<'_>, cpus: f64) -> Counterfactual {
    if case.arm.settings.value("cpus").is_none() || !case.takes("cpuset") {
        return without(case, "cpus");
    }
    let last = whole_part(cpus.ceil()).saturating_sub(1);
    let set = if last == 0 {
        "0".to_owned()
    } else {
        format!("0-{last}")
    };
    Counterfactual::Settings(Params::new().with("cpus", "").with("cpuset", set))
}

/// Moves the arm to as many other CPUs, if it has a cpuset and the baseline has enough others: escapes the neighbours
/// and changes nothing else.
pub fn other_cpus(case: &Case<'_>) -> Counterfactual {
    let list = |facts: &tare_model::Facts| {
        facts
            .get(fact::CPU_AFFINITY)
            .and_then(|list| cpu_list(list))
    };
    let Some((all, own)) = list(&case.baseline.facts)
        .zip(list(&case.arm.facts))
        .filter(|_| case.arm.settings.value("cpuset").is_some())
    else {
        return not_here(
            "who else uses the machine is not a setting of an arm: the run has to be repeated",
        );
    };
    let others: Vec<String> = all
        .iter()
        .filter(|cpu| !own.contains(cpu))
        .take(own.len())
        .map(usize::to_string)
        .collect();
    if others.len() < own.len() {
        return not_here("there are not as many other processors to move to");
    }
    Counterfactual::Settings(one("cpuset", others.join(",")))
}

/// Sets these environment variables.
pub fn variables(pairs: &[(&str, String)]) -> Counterfactual {
    let pairs = pairs.iter();
    Counterfactual::Variables(
        pairs
            .map(|(name, value)| ((*name).to_owned(), value.clone()))
            .collect::<BTreeMap<_, _>>(),
    )
}

/// Impossible here, and why.
pub fn not_here(why: impl Into<String>) -> Counterfactual {
    Counterfactual::NotHere(why.into())
}

#[cfg(test)]
mod tests {
    use super::super::tests::composed::Composed;
    use super::*;

    #[test]
    fn pinned_arm_moves_to_other_cpus_if_enough_are_free() {
        let pinned = |all: &str, own: &str| {
            Composed::new("container")
                .setting("cpuset", own)
                .differing("cpu.affinity", all, own)
        };
        let moved = |composed: &Composed| match other_cpus(&composed.case()) {
            Counterfactual::Settings(params) => Some(params.value("cpuset").unwrap().to_string()),
            _ => None,
        };
        assert_eq!(moved(&pinned("0-1", "0")).as_deref(), Some("1"));
        assert_eq!(moved(&pinned("0-7", "2,4-5")).as_deref(), Some("0,1,3"));
        assert_eq!(moved(&pinned("0-3", "0-2")), None, "too few others");
        assert_eq!(moved(&pinned("0-1", "0-1")), None);
        let unpinned = Composed::new("container").both("cpu.affinity", "0-1");
        assert_eq!(moved(&unpinned), None);
    }

    #[test]
    fn is_over_matches_only_binds_from_another_path() {
        assert!(is_over("/new/bin:/srv/bin:ro", "/srv/bin/tool"));
        assert!(is_over("/new/tool:/srv/bin/tool", "/srv/bin/tool"));
        for bind in ["/srv/bin:/srv/bin", "/new:/srv/bi", "/srv/bin", ""] {
            assert!(!is_over(bind, "/srv/bin/tool"), "{bind}");
        }
    }

    #[test]
    fn init_counterfactual_drops_binds_hiding_the_init() {
        let with = |binds: &[&str]| {
            let binds: Vec<Value> = binds.iter().map(|bind| Value::from(*bind)).collect();
            let composed = Composed::new("docker").setting("binds", Value::List(binds));
            match init(&composed.case()) {
                Counterfactual::Settings(params) => params,
                other => panic!("{other:?}"),
            }
        };
        let changed = with(&["/usr:/usr:ro", "/sbin:/sbin:ro"]);
        assert_eq!(changed.value("init"), Some(&Value::Bool(true)));
        assert_eq!(changed.value("binds").unwrap().to_string(), "/usr:/usr:ro");
        assert!(with(&["/usr:/usr:ro"]).value("binds").is_none());
    }

    #[test]
    fn switch_already_off_has_no_counterfactual() {
        let composed = Composed::new("docker").setting("network", "host");
        assert!(matches!(
            host_network(&composed.case()),
            Counterfactual::NotHere(_)
        ));
        assert!(matches!(
            without(&composed.case(), "memory"),
            Counterfactual::NotHere(_)
        ));
        assert!(matches!(
            without_seccomp(&Composed::new("ssh").case()),
            Counterfactual::NotHere(_)
        ));
    }
}
