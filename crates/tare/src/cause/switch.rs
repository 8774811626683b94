//! Counterfactuals in the words of the drivers: which setting of which driver takes a mechanism away.
//!
//! One place for it, because the drivers call the same thing by different names, and because a test holds every
//! name against the drivers' own lists. What it cannot see: whether an engine grants what is asked for.

use std::collections::BTreeMap;

use tare_model::{Params, Value};

use super::look::Place;
use super::{Case, Counterfactual};

/// These settings changed, if the arm's driver knows the mechanism; else why not.
fn settings(case: &Case<'_>, by_driver: &[(&str, &str, &str)], what: &str) -> Counterfactual {
    let found = by_driver
        .iter()
        .find(|(driver, ..)| *driver == case.arm.driver);
    match found {
        Some((_, name, value)) if case.setting(name).as_deref() == Some(value) => {
            Counterfactual::NotHere(format!("`{name} = \"{value}\"` is set already"))
        }
        Some((_, name, value)) => Counterfactual::Settings(one(name, *value)),
        None => Counterfactual::NotHere(format!(
            "the driver `{}` has no setting for {what}",
            case.arm.driver
        )),
    }
}

fn one(name: &str, value: impl Into<Value>) -> Params {
    Params::new().with(name, value)
}

/// Without the filter on system calls: a measurement, never advice.
pub fn without_seccomp(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "seccomp", "unconfined"),
            ("podman", "seccomp", "unconfined"),
            ("container", "seccomp", "off"),
            ("oci", "seccomp", "off"),
        ],
        "the filter on system calls",
    )
}

/// On the host's own network stack.
pub fn host_network(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "network", "host"),
            ("podman", "network", "host"),
            ("container", "network", "host"),
            ("oci", "network", "host"),
        ],
        "the network",
    )
}

/// Through the bridge, not through a published port.
pub fn bridge_network(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "network", "bridge"),
            ("podman", "network", "bridge"),
        ],
        "published ports",
    )
}

/// With the files on a volume instead of the writable layer or a folder of the host.
pub fn volume(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "storage", "volume"),
            ("podman", "storage", "volume"),
            ("container", "rootfs", "host"),
        ],
        "where files lie",
    )
}

/// With the files in memory.
pub fn tmpfs(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "storage", "tmpfs"),
            ("podman", "storage", "tmpfs"),
        ],
        "where files lie",
    )
}

/// On a folder of the host.
pub fn bind(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "storage", "bind"),
            ("podman", "storage", "bind"),
            ("container", "rootfs", "host"),
        ],
        "where files lie",
    )
}

/// With the baseline's own folder shown at the path of a place, so that one file system lies under both sides.
pub fn same_folder(case: &Case<'_>, place: &Place<'_>) -> Counterfactual {
    let Some(path) = place.path else {
        return bind(case);
    };
    if !case.is_driver(&["docker", "podman", "container"]) || case.same_kernel() != Some(true) {
        return not_here("only where both sides run on one kernel can one folder be shown to both");
    }
    // The whole mount is replaced; what lies on the environment's own root is only replaced at the path.
    let point = place.part_here(case, "point").filter(|point| *point != "/");
    let at = point.unwrap_or(path);
    let list = |name: &str| -> Vec<Value> {
        match case.arm.settings.value(name) {
            Some(Value::List(values)) => values.clone(),
            Some(value) => value
                .to_string()
                .split(',')
                .map(|it| it.trim().into())
                .collect(),
            None => Vec::new(),
        }
    };
    let mut binds = list("binds");
    binds.retain(|bind| bind.to_string().split(':').nth(1) != Some(at));
    binds.push(Value::Text(format!("{at}:{at}")));
    let mut changes = one("binds", Value::List(binds));
    let mut in_memory = list("tmpfs");
    if in_memory.iter().any(|folder| folder.to_string() == at) {
        in_memory.retain(|folder| folder.to_string() != at);
        let left = if in_memory.is_empty() {
            Value::from("")
        } else {
            Value::List(in_memory)
        };
        changes = changes.with("tmpfs", left);
    }
    Counterfactual::Settings(changes)
}

/// With this runtime.
pub fn runtime(case: &Case<'_>, name: &str) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "runtime", name),
            ("podman", "runtime", name),
            ("oci", "runtime", name),
        ],
        "the runtime",
    )
}

/// Nothing kept of what is written to standard output.
pub fn no_log(case: &Case<'_>) -> Counterfactual {
    settings(
        case,
        &[
            ("docker", "log_driver", "none"),
            ("podman", "log_driver", "none"),
            ("container", "stdio", "inherit"),
        ],
        "standard output",
    )
}

/// With a switch of docker and podman set to `value`, or another setting of theirs.
pub fn engine(case: &Case<'_>, name: &str, value: impl Into<Value>) -> Counterfactual {
    if case.is_driver(&["docker", "podman"]) {
        Counterfactual::Settings(one(name, value))
    } else {
        Counterfactual::NotHere(format!(
            "the driver `{}` has no setting `{name}`",
            case.arm.driver
        ))
    }
}

/// A setting of the virtual machine changed.
pub fn machine(case: &Case<'_>, name: &str, value: &str) -> Counterfactual {
    settings(case, &[("vm", name, value)], "virtual hardware")
}

/// Without a setting of the arm's own.
pub fn without(case: &Case<'_>, name: &str) -> Counterfactual {
    if case.arm.settings.value(name).is_some() {
        Counterfactual::Settings(one(name, ""))
    } else {
        Counterfactual::NotHere(format!(
            "no setting `{name}` of this arm asks for it: it comes from elsewhere"
        ))
    }
}

/// The quota replaced by as many processors of its own.
pub fn cpuset_for_quota(case: &Case<'_>, cpus: f64) -> Counterfactual {
    if case.arm.settings.value("cpus").is_none() {
        return without(case, "cpus");
    }
    let last = (cpus.ceil() as usize).max(1) - 1;
    let set = if last == 0 {
        "0".to_owned()
    } else {
        format!("0-{last}")
    };
    Counterfactual::Settings(Params::new().with("cpus", "").with("cpuset", set))
}

/// With these variables in the environment.
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
    use super::super::composed::Composed;
    use super::*;
    use crate::env;

    #[test]
    fn every_setting_that_a_counterfactual_names_is_one_that_the_driver_takes() {
        let all: [fn(&Case<'_>) -> Counterfactual; 12] = [
            without_seccomp,
            host_network,
            bridge_network,
            volume,
            tmpfs,
            bind,
            no_log,
            |case| runtime(case, "crun"),
            |case| engine(case, "init", true),
            |case| engine(case, "shm", "1g"),
            |case| machine(case, "nic", "virtio"),
            |case| cpuset_for_quota(case, 1.5),
        ];
        let mut settled = 0;
        for driver in env::DRIVERS {
            let composed = Composed::of(driver.id()).setting("cpus", 0.5);
            for counterfactual in all {
                let Counterfactual::Settings(params) = counterfactual(&composed.case()) else {
                    continue;
                };
                for name in params.0.keys() {
                    let known = driver.settings().iter().any(|spec| spec.name == name);
                    // Only some drivers have a quota; the setting of the others is refused before a run.
                    let has_quota = driver.settings().iter().any(|spec| spec.name == "cpuset");
                    assert!(known || !has_quota, "`{}` takes no `{name}`", driver.id());
                    settled += 1;
                }
            }
        }
        assert!(settled > 20, "{settled}");
    }

    #[test]
    fn what_is_off_already_cannot_be_switched_off() {
        let composed = Composed::of("docker").setting("network", "host");
        assert!(matches!(
            host_network(&composed.case()),
            Counterfactual::NotHere(_)
        ));
        assert!(matches!(
            without(&composed.case(), "memory"),
            Counterfactual::NotHere(_)
        ));
        assert!(matches!(
            without_seccomp(&Composed::of("ssh").case()),
            Counterfactual::NotHere(_)
        ));
    }
}
