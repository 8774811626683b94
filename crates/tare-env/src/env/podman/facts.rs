//! Converts podman's information on itself, its images and its containers to facts of an arm.
//!
//! Only answers of `podman info` and `podman inspect`; foreign text is escaped, and what a version does not report is
//! omitted.
//! Limits: the configuration files behind the answers are not read.

use crate::env::prelude::*;

use super::caller::Caller;
use crate::cx::Finished;

/// What `podman info` says about how to use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Engine {
    pub(super) architecture: String,
    pub(super) is_rootless: bool,
    /// Whether its containers run on another machine, such as `podman machine`.
    pub(super) is_remote: bool,
    /// 1 or 2.
    pub(super) cgroup_version: u8,
    /// The controllers with which this user may set limits.
    pub(super) controllers: Vec<String>,
    /// Whether the default runtime refuses this machine's hybrid cgroups, as far as it was tried.
    pub(super) is_hybrid: bool,
    pub(super) facts: Facts,
}

fn text_at(json: &Value, pointer: &str) -> Option<String> {
    let text = match json.pointer(pointer)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Array(items) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map_or_else(|| item.to_string(), str::to_owned)
            })
            .collect::<Vec<_>>()
            .join(" "),
        _ => return None,
    };
    let first_line = text.lines().next().unwrap_or_default();
    let text = printable(first_line);
    (!text.is_empty()).then_some(text)
}

fn put(facts: &mut Facts, json: &Value, names: &[(&str, &str)]) {
    for (name, pointer) in names {
        if let Some(text) = text_at(json, pointer) {
            facts.insert((*name).to_owned(), text);
        }
    }
}

/// A run, and the owner and OCI runtime of its podman.
type Key = (String, Option<String>, Option<String>);

/// What each run knows about podman. It takes more than a second to describe itself, because it looks up the package
/// of each of its programs.
static KNOWN: Mutex<BTreeMap<Key, Engine>> = Mutex::new(BTreeMap::new());

fn key(caller: Caller<'_>) -> Key {
    let access = caller.access;
    (
        caller.cx.run.to_string(),
        access.user(),
        access.runtime.clone(),
    )
}

/// Queries podman about itself, once in a run.
pub(super) fn info(caller: Caller<'_>) -> Result<Engine> {
    let key = key(caller);
    if let Some(engine) = locked(&KNOWN).get(&key) {
        return Ok(engine.clone());
    }
    let arguments = ["info", "--format=json"];
    let answer = caller.ask("describe itself", &arguments)?;
    let engine = of_engine(&answer);
    locked(&KNOWN).insert(key, engine.clone());
    Ok(engine)
}

impl Engine {
    /// Uses another OCI runtime, which is asked for its own version: podman would take a second again.
    pub(super) fn take_runtime(&mut self, caller: Caller<'_>, name: &str) {
        let version = fact::name_for(fact::ENGINE_PART_VERSION, "runtime");
        self.facts.insert(fact::ENGINE_RUNTIME.into(), name.into());
        self.facts.remove(&version);
        let command = caller.access.command(name, vec!["--version".into()], &[]);
        let finished = caller.cx.exec.run(&command, &[], CONTROL_LIMIT).ok();
        if let Some(finished) = finished.filter(Finished::succeeded) {
            let text = Value::String(finished.stdout_text().into_owned());
            put(&mut self.facts, &text, &[(&version, "")]);
        }
    }
}

/// Notes that the default runtime refuses the hybrid cgroups of this machine.
pub(super) fn note_hybrid(caller: Caller<'_>) {
    if let Some(engine) = locked(&KNOWN).get_mut(&key(caller)) {
        engine.is_hybrid = true;
    }
}

/// Parses `podman info --format json`.
fn of_engine(info: &Value) -> Engine {
    let mut facts = Facts::new();
    let [conmon, runtime] =
        ["conmon", "runtime"].map(|of| fact::name_for(fact::ENGINE_PART_VERSION, of));
    put(
        &mut facts,
        info,
        &[
            (fact::ENGINE_VERSION, "/version/Version"),
            (fact::ENGINE_ARCHITECTURE, "/host/arch"),
            (fact::ENGINE_CGROUP_DRIVER, "/host/cgroupManager"),
            (fact::ENGINE_CGROUP_VERSION, "/host/cgroupVersion"),
            (fact::ENGINE_CGROUP_CONTROLLERS, "/host/cgroupControllers"),
            (&conmon, "/host/conmon/version"),
            (fact::ENGINE_KERNEL, "/host/kernel"),
            (fact::ENGINE_LOG_DRIVER, "/host/logDriver"),
            (fact::ENGINE_NETWORKS, "/host/networkBackend"),
            (fact::ENGINE_REMOTE, "/host/serviceIsRemote"),
            (fact::ENGINE_ROOTLESS, "/host/security/rootless"),
            (fact::ENGINE_ROOTLESS_NETWORK, "/host/rootlessNetworkCmd"),
            (fact::ENGINE_RUNTIME, "/host/ociRuntime/name"),
            (&runtime, "/host/ociRuntime/version"),
            (fact::ENGINE_SECCOMP, "/host/security/seccompEnabled"),
            (
                fact::ENGINE_SECCOMP_PROFILE,
                "/host/security/seccompProfilePath",
            ),
            (fact::ENGINE_STORAGE_DRIVER, "/store/graphDriverName"),
            (
                fact::ENGINE_STORAGE_FILESYSTEM,
                "/store/graphStatus/Backing Filesystem",
            ),
            (fact::ENGINE_STORAGE_FOLDER, "/store/graphRoot"),
            (
                fact::ENGINE_STORAGE_PROGRAM,
                "/store/graphOptions/overlay.mount_program/Executable",
            ),
        ],
    );
    let is_true = |pointer: &str| info.pointer(pointer) == Some(&Value::Bool(true));
    let is_rootless = is_true("/host/security/rootless");
    if is_rootless {
        let maps = info.pointer("/host/idMappings/uidmap");
        let sizes = maps.and_then(Value::as_array).map(|maps| {
            let sizes = maps.iter().filter_map(|map| map.get("size")?.as_u64());
            sizes.sum::<u64>()
        });
        if let Some(ids) = sizes {
            facts.insert(fact::ENGINE_USER_IDS.into(), ids.to_string());
        }
    }
    let fact = |name: &str| facts.get(name).cloned().unwrap_or_default();
    Engine {
        is_hybrid: false,
        architecture: fact(fact::ENGINE_ARCHITECTURE),
        is_rootless,
        is_remote: is_true("/host/serviceIsRemote"),
        cgroup_version: if fact(fact::ENGINE_CGROUP_VERSION) == "v1" {
            1
        } else {
            2
        },
        controllers: fact(fact::ENGINE_CGROUP_CONTROLLERS)
            .split(' ')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        facts,
    }
}

/// Parses the first object of `podman image inspect`.
pub(super) fn of_image(facts: &mut Facts, name: &str, image: &Value) {
    facts.insert(fact::IMAGE_NAME.into(), printable(name));
    put(
        facts,
        image,
        &[
            (fact::IMAGE_ID, "/Id"),
            (fact::IMAGE_DIGESTS, "/RepoDigests"),
            (fact::IMAGE_SIZE, "/Size"),
            (fact::IMAGE_ARCHITECTURE, "/Architecture"),
        ],
    );
}

/// Parses the first object of `podman container inspect`: the settings in effect.
pub(super) fn of_container(facts: &mut Facts, container: &Value) {
    put(
        facts,
        container,
        &[
            (fact::ENGINE_RUNTIME, "/OCIRuntime"),
            (fact::ENGINE_NETWORK_MODE, "/HostConfig/NetworkMode"),
            (fact::ENGINE_LOG_DRIVER, "/HostConfig/LogConfig/Type"),
        ],
    );
}

/// Adds the requested options, under podman's names.
pub(super) fn of_options(facts: &mut Facts, options: &[String]) {
    for option in options {
        let Some((name, value)) = option.trim_start_matches('-').split_once('=') else {
            continue;
        };
        let asked: &mut String = facts.entry(fact::name_for(fact::ASKED, name)).or_default();
        if !asked.is_empty() {
            asked.push(' ');
        }
        asked.push_str(&printable(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn podman_facts_omit_missing_and_escape_values() {
        let info = json!({
            "host": {
                "arch": "amd64", "cgroupVersion": "v1", "cgroupControllers": [],
                "security": {"rootless": true},
                "idMappings": {"uidmap": [{"size": 1}, {"size": 65536}]},
                "ociRuntime": {"name": "crun", "version": "crun version 1.8.1\ncommit: f8a"}
            },
            "version": {"Version": "4.3.1\u{1b}[2J"}
        });
        let engine = of_engine(&info);
        assert!(engine.is_rootless && !engine.is_remote);
        assert_eq!(engine.cgroup_version, 1);
        assert!(engine.controllers.is_empty());
        let fact = |name: &str| engine.facts.get(name).map(String::as_str);
        assert_eq!(fact("engine.runtime.version"), Some("crun version 1.8.1"));
        assert_eq!(fact("engine.version"), Some("4.3.1\\u{1b}[2J"));
        assert_eq!(fact("engine.user_ids"), Some("65537"));
        assert_eq!(fact("engine.storage_driver"), None);
        assert_eq!(of_engine(&Value::Null).facts, Facts::new());
    }

    #[test]
    fn options_given_twice_are_one_fact() {
        let mut facts = Facts::new();
        let options = [
            "--cap-add=A",
            "--cap-add=B",
            "--security-opt=seccomp=unconfined",
        ];
        of_options(&mut facts, &options.map(str::to_owned));
        assert_eq!(facts["asked.cap-add"], "A B");
        assert_eq!(facts["asked.security-opt"], "seccomp=unconfined");
    }
}
