//! The settings of `oci`, read and checked: which runtime, and what is changed in its specification.
//!
//! What is not said stays as the specification has it: Tare's own, which is what Docker uses by default, or the
//! user's. So `spec = "docker:NAME"` with one setting more is what that container would be without one mechanism.

use std::path::PathBuf;

use tare_model::fact;
use tare_model::launch::{Bind, Limits, Network};
use tare_model::{Facts, Params, Value};

use crate::env::container::settings::{CPUS, CPUSET, MEMORY, PIDS, binds, capabilities, limits};
use crate::env::value::{choice, shown, switch, words, wrong};
use crate::env::{SettingSpec, SettingsError};

/// What the driver takes.
pub(super) static SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "runtime",
        doc: "runc (default), crun, youki, runsc, kata-runtime, another name on PATH, or a path",
    },
    SettingSpec {
        name: "runtime_args",
        doc: "arguments of the runtime that stand before its command: a list, or a text that is split at spaces, \
              for example \"--network=none --ignore-cgroups\"",
    },
    SettingSpec {
        name: "spec",
        doc: "\"docker:CONTAINER\": the specification that Docker used for a running container (its name or id); \
              or the PATH of a config.json; root, program, cgroup and namespaces of mounts and processes become \
              Tare's, hooks are dropped; default: Tare's own, which is like Docker's",
    },
    SettingSpec {
        name: "rootfs",
        doc: "\"minimal\" (default, unless a workload runs programs): a folder with nothing but the agent; \"overlay-host\": an overlay over the \
              host's own files",
    },
    SettingSpec {
        name: "namespaces",
        doc: "\"all\" (default) or a list of uts, ipc, net, cgroup; namespaces of mounts and processes are always \
              there, because a runtime without them reaches the host",
    },
    SettingSpec {
        name: "caps",
        doc: "\"default\": Docker's 14; \"all\": all that Tare itself has; \"none\"; or a list such as \
              [\"NET_RAW\", \"SYS_ADMIN\"]",
    },
    SettingSpec {
        name: "seccomp",
        doc: "\"default\": Docker's list; \"off\": no filter",
    },
    SettingSpec {
        name: "no_new_privs",
        doc: "true: set no_new_privs; default false, as with Docker",
    },
    SettingSpec {
        name: "masked_paths",
        doc: "true (default): hides and write-protects the paths of /proc and /sys that Docker does",
    },
    SettingSpec {
        name: "private_paths",
        doc: "true (default): covers homes, keys, password files, engines' sockets and Tare's own files where the root \
              is an overlay over the host's; the folders of the search path among them are shown read-only",
    },
    SettingSpec {
        name: "binds",
        doc: "folders and files of the host to show inside: a list such as [\"/srv/data:/data:ro\"], or one text, with \
              commas between them",
    },
    CPUS,
    CPUSET,
    MEMORY,
    PIDS,
    SettingSpec {
        name: "network",
        doc: "\"none\" (default): what the runtime makes itself, loopback only; \"veth\": a pair of devices to the \
              host, prepared by Tare; \"host\": the host's own stack (runsc then also needs \
              runtime_args = \"--network=host\")",
    },
];

/// The root file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rootfs {
    /// A folder with the agent.
    Minimal,
    /// An overlay over the host's root file system.
    OverlayHost,
}

/// The capabilities to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Capabilities {
    /// All that Tare itself has.
    All,
    /// Those of a group, as far as Tare has them.
    Group(Vec<String>),
    /// These, named one by one: doing without one is not acceptable.
    Listed(Vec<String>),
}

/// Where the specification comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    /// Tare's own.
    Own,
    /// A file of the user's.
    File(PathBuf),
    /// What Docker used for a running container.
    Docker(String),
}

/// A namespace that may be left out, by its name in the specification.
pub(super) const OPTIONAL_NAMESPACES: [&str; 4] = ["uts", "ipc", "network", "cgroup"];

/// The settings; `None` leaves the specification as it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) runtime: String,
    pub(super) runtime_args: Vec<String>,
    pub(super) source: Source,
    pub(super) rootfs: Rootfs,
    /// Names in the specification, without those that are always there.
    pub(super) namespaces: Option<Vec<&'static str>>,
    pub(super) capabilities: Option<Capabilities>,
    pub(super) has_seccomp: Option<bool>,
    pub(super) no_new_privs: Option<bool>,
    pub(super) masked_paths: Option<bool>,
    pub(super) private_paths: bool,
    pub(super) binds: Vec<Bind>,
    pub(super) limits: Limits,
    pub(super) network: Option<Network>,
}

/// A text that can be handed to a program.
fn argument(name: &str, text: String) -> Result<String, SettingsError> {
    if text.contains('\0') {
        return Err(wrong(
            name,
            format!("`{}` holds a NUL byte", text.escape_debug()),
            "no program can be given one",
        ));
    }
    Ok(text)
}

fn runtime(settings: &Params) -> Result<String, SettingsError> {
    const NAME: &str = "runtime";
    match settings.value(NAME) {
        None => Ok("runc".to_owned()),
        Some(Value::Text(text)) if !text.trim().is_empty() => argument(NAME, text.clone()),
        Some(value) => Err(wrong(
            NAME,
            format!("`{}` is no program", shown(value)),
            "a name such as \"crun\", or a path",
        )),
    }
}

fn runtime_args(settings: &Params) -> Result<Vec<String>, SettingsError> {
    const NAME: &str = "runtime_args";
    let texts = match settings.value(NAME) {
        None => Vec::new(),
        Some(Value::List(values)) => values.iter().map(ToString::to_string).collect(),
        Some(Value::Text(text)) => text.split_whitespace().map(str::to_owned).collect(),
        Some(value) => {
            return Err(wrong(
                NAME,
                format!("`{}` is no list of arguments", shown(value)),
                "a list such as [\"--network=none\"]",
            ));
        }
    };
    texts.into_iter().map(|text| argument(NAME, text)).collect()
}

fn source(settings: &Params) -> Result<Source, SettingsError> {
    const NAME: &str = "spec";
    let text = match settings.value(NAME) {
        None => return Ok(Source::Own),
        Some(Value::Text(text)) if !text.is_empty() => argument(NAME, text.clone())?,
        Some(value) => {
            return Err(wrong(
                NAME,
                format!("`{}` is no specification", shown(value)),
                "the path of a config.json, or \"docker:CONTAINER\"",
            ));
        }
    };
    let Some(container) = text.strip_prefix("docker:") else {
        return Ok(Source::File(PathBuf::from(text)));
    };
    // What Docker itself allows in names and ids.
    let is_name = !container.is_empty()
        && container
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !is_name {
        return Err(wrong(
            NAME,
            format!("`{}` is no container's name", container.escape_debug()),
            "the name or id that `docker ps` prints",
        ));
    }
    Ok(Source::Docker(container.to_owned()))
}

fn namespaces(settings: &Params) -> Result<Option<Vec<&'static str>>, SettingsError> {
    const NAME: &str = "namespaces";
    let Some(value) = settings.value(NAME) else {
        return Ok(None);
    };
    let words = words(value);
    if words == ["all"] {
        return Ok(Some(OPTIONAL_NAMESPACES.to_vec()));
    }
    let mut chosen = Vec::new();
    for word in &words {
        let name = match word.as_str() {
            // Always there.
            "mount" | "pid" => continue,
            "net" | "network" => "network",
            "uts" => "uts",
            "ipc" => "ipc",
            "cgroup" => "cgroup",
            other => {
                return Err(wrong(
                    NAME,
                    format!("`{}` is no namespace", other.escape_debug()),
                    "\"all\", or a list of uts, ipc, net, cgroup (mount and pid are always there)",
                ));
            }
        };
        if !chosen.contains(&name) {
            chosen.push(name);
        }
    }
    if words.is_empty() {
        return Err(wrong(
            NAME,
            "no namespace is named".into(),
            "\"all\", or a list; \"mount,pid\" is the least",
        ));
    }
    Ok(Some(chosen))
}

fn read_capabilities(settings: &Params) -> Result<Option<Capabilities>, SettingsError> {
    let Some(value) = settings.value("caps") else {
        return Ok(None);
    };
    let is_group = words(value) == ["default"] || words(value) == ["none"];
    Ok(Some(match capabilities(settings)? {
        None => Capabilities::All,
        Some(names) if is_group => Capabilities::Group(names),
        Some(names) => Capabilities::Listed(names),
    }))
}

impl Settings {
    /// Reads and checks; touches nothing outside.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        for name in settings.0.keys() {
            if !SETTINGS.iter().any(|known| known.name == name) {
                let names: Vec<&str> = SETTINGS.iter().map(|known| known.name).collect();
                return Err(wrong(
                    name,
                    format!("`oci` has no setting `{}`", name.escape_debug()),
                    format!("it has {}", names.join(", ")),
                ));
            }
        }
        let source = source(settings)?;
        let mut namespaces = namespaces(settings)?;
        let is_all = settings
            .value("namespaces")
            .is_none_or(|value| words(value) == ["all"]);
        let networks = [
            ("none", Network::None),
            ("veth", Network::Veth),
            ("host", Network::Host),
        ];
        let mut network = choice(settings, "network", &networks)?;
        if let Some(listed) = namespaces.as_mut() {
            let has_own = listed.contains(&"network");
            match network {
                Some(Network::Host) if is_all => listed.retain(|name| *name != "network"),
                Some(asked) if has_own == (asked == Network::Host) => {
                    return Err(wrong(
                        "network",
                        "the network is the host's exactly if there is no `net` namespace".into(),
                        "change `network` or the list of `namespaces`",
                    ));
                }
                Some(_) => {}
                None if has_own => network = Some(Network::None),
                None => network = Some(Network::Host),
            }
        }
        let roots = [
            ("minimal", Rootfs::Minimal),
            ("overlay-host", Rootfs::OverlayHost),
        ];
        let filters = [("default", true), ("off", false)];
        Ok(Self {
            runtime: runtime(settings)?,
            runtime_args: runtime_args(settings)?,
            source,
            rootfs: choice(settings, "rootfs", &roots)?.unwrap_or(Rootfs::Minimal),
            namespaces,
            capabilities: read_capabilities(settings)?,
            has_seccomp: choice(settings, "seccomp", &filters)?,
            no_new_privs: switch(settings, "no_new_privs")?,
            masked_paths: switch(settings, "masked_paths")?,
            private_paths: switch(settings, "private_paths")?.unwrap_or(true),
            binds: binds(settings, true)?,
            limits: limits(settings)?,
            network,
        })
    }

    /// What was asked for, as facts; what was not said is not among them.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        let mut fact = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                facts.insert(fact::of(fact::OCI, name), value.escape_debug().to_string());
            }
        };
        fact("runtime", Some(self.runtime.clone()));
        if !self.runtime_args.is_empty() {
            fact("runtime_args", Some(self.runtime_args.join(" ")));
        }
        let source = match &self.source {
            Source::Own => "Tare's own, like Docker's".to_owned(),
            Source::File(path) => path.display().to_string(),
            Source::Docker(container) => format!("Docker's for the container {container}"),
        };
        fact("spec", Some(source));
        let rootfs = match self.rootfs {
            Rootfs::Minimal => "a folder with the agent only",
            Rootfs::OverlayHost => "overlay over the host's root file system",
        };
        fact("rootfs", Some(rootfs.to_owned()));
        if self.rootfs == Rootfs::OverlayHost {
            fact("private_paths", Some(self.private_paths.to_string()));
        }
        fact("cpus", self.limits.cpus.map(|cpus| cpus.to_string()));
        fact("cpuset", self.limits.cpuset.clone());
        let memory = self.limits.memory_bytes.map(|bytes| bytes.to_string());
        fact("memory", memory);
        fact("pids", self.limits.pids.map(|pids| pids.to_string()));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: impl Into<Value>) -> Result<Settings, SettingsError> {
        Settings::read(&Params::new().with(name, value))
    }

    #[test]
    fn nothing_said_is_runc_with_an_untouched_specification() {
        let settings = Settings::read(&Params::new()).unwrap();
        assert_eq!(settings.runtime, "runc");
        assert_eq!(settings.source, Source::Own);
        assert_eq!((settings.namespaces, settings.network), (None, None));
        assert!(settings.capabilities.is_none() && settings.has_seccomp.is_none());
    }

    #[test]
    fn nonsense_is_refused_under_its_own_name_with_a_hint() {
        let cases: Vec<(&str, Value)> = vec![
            ("runtime", "".into()),
            ("runtime", "a\0b".into()),
            ("runtime", 3i64.into()),
            ("runtime_args", true.into()),
            ("runtime_args", Value::List(vec!["a\0".into()])),
            ("spec", "".into()),
            ("spec", "docker:".into()),
            ("spec", "docker:a b".into()),
            ("spec", "docker:../../etc".into()),
            ("spec", "docker:a\u{1b}[31m".into()),
            ("rootfs", "overlay".into()),
            ("namespaces", "user".into()),
            ("namespaces", "".into()),
            ("caps", "NET_ROW".into()),
            ("seccomp", "strict".into()),
            ("no_new_privs", "yes".into()),
            ("masked_paths", 1i64.into()),
            ("cpus", "many".into()),
            ("cpuset", "3-1".into()),
            ("memory", "12 apples".into()),
            ("pids", 0i64.into()),
            ("network", "bridge".into()),
            ("colour", "red".into()),
        ];
        for (name, value) in cases {
            let error = read(name, value.clone()).unwrap_err();
            assert_eq!(error.setting, name, "{value:?}");
            assert!(error.hint.is_some(), "{value:?}");
            assert!(!error.problem.contains('\u{1b}'), "{value:?}");
        }
    }

    #[test]
    fn the_network_and_the_namespaces_must_agree() {
        let both = |namespaces: &str, network: &str| {
            Settings::read(
                &Params::new()
                    .with("namespaces", namespaces)
                    .with("network", network),
            )
        };
        assert!(both("uts,net", "host").is_err());
        assert!(both("uts", "veth").is_err());
        let host = both("all", "host").unwrap();
        assert_eq!(host.namespaces.unwrap(), ["uts", "ipc", "cgroup"]);
        assert_eq!(
            read("namespaces", "mount,pid").unwrap().network,
            Some(Network::Host)
        );
        assert_eq!(
            read("namespaces", "net").unwrap().network,
            Some(Network::None)
        );
    }

    #[test]
    fn arguments_come_from_a_list_as_they_are_and_from_a_text_split_at_spaces() {
        let list = Value::List(vec!["--a b".into(), "--c".into()]);
        assert_eq!(
            read("runtime_args", list).unwrap().runtime_args,
            ["--a b", "--c"]
        );
        let text = read("runtime_args", " --a  --b=1 ").unwrap();
        assert_eq!(text.runtime_args, ["--a", "--b=1"]);
    }

    #[test]
    fn only_capabilities_named_one_by_one_are_a_list() {
        let of = |text: &str| read("caps", text).unwrap().capabilities.unwrap();
        assert_eq!(
            of("NET_RAW"),
            Capabilities::Listed(vec!["CAP_NET_RAW".into()])
        );
        assert_eq!(of("all"), Capabilities::All);
        assert_eq!(of("none"), Capabilities::Group(Vec::new()));
        assert!(matches!(of("default"), Capabilities::Group(names) if names.len() == 14));
    }
}
