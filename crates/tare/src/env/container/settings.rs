//! The settings of `container`, read and checked: what each switch means and what it becomes.
//!
//! Every mechanism has a switch of its own. What is not said follows from what is: without the mount namespace
//! there is no overlay, without the network namespace no veth pair. What is said and contradicts is refused.

use tare_model::fact;
use tare_model::launch::{
    Bind, DOCKER_CAPABILITIES, DockerRelease, Limits, Mounts, Namespaces, Network, Rootfs, Seccomp,
    Stdio, UserNamespace, capability_number,
};
use tare_model::{Facts, Params, Value};

use crate::env::grammar::{self, parse_bind, parse_size};
use crate::env::value::{choice, shown, switch, words, wrong};
use crate::env::{SettingSpec, SettingsError};

/// Processor time.
pub(in crate::env) const CPUS: SettingSpec = SettingSpec {
    name: "cpus",
    doc: "processor time as a number of processors, for example 0.5; becomes a quota per 100 ms",
};
/// Processors.
pub(in crate::env) const CPUSET: SettingSpec = SettingSpec {
    name: "cpuset",
    doc: "processors that may be used, for example \"0-1,3\"",
};
/// Memory.
pub(in crate::env) const MEMORY: SettingSpec = SettingSpec {
    name: "memory",
    doc: "memory limit in bytes, or with k, m or g (powers of 1024), for example \"512m\"",
};
/// Processes and threads.
pub(in crate::env) const PIDS: SettingSpec = SettingSpec {
    name: "pids",
    doc: "the most processes and threads",
};

/// What the driver takes.
pub(super) static SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "namespaces",
        doc: "\"all\" (default: all, with a user namespace only if Tare is not root), \"none\", or a list of \
              user, mount, pid, uts, ipc, net, cgroup",
    },
    SettingSpec {
        name: "rootfs",
        doc: "\"overlay\" (default): an overlay over the host's own files; \"host\": the host's files themselves",
    },
    SettingSpec {
        name: "mounts",
        doc: "true (default): a new /proc, a read-only /sys and a small /dev; needs the mount namespace",
    },
    SettingSpec {
        name: "masked_paths",
        doc: "true (default): hides and write-protects the paths of /proc and /sys that Docker does",
    },
    SettingSpec {
        name: "docker",
        doc: "the release of Docker whose filter and masked paths are taken: \"20.10\", \"28\" or \"29\"; by default \
              that of the engine on this machine, and the newest where there is none",
    },
    SettingSpec {
        name: "private_paths",
        doc: "true (default with the mount namespace): covers homes, keys, password files, engines' sockets and \
              Tare's own files; `binds` shows what is needed of them",
    },
    SettingSpec {
        name: "device_rules",
        doc: "true (default with cgroups): only the devices that engines allow can be opened",
    },
    SettingSpec {
        name: "caps",
        doc: "\"default\": Docker's 14; \"all\": nothing is dropped; \"none\"; or a list such as \
              [\"NET_RAW\", \"SYS_ADMIN\"]",
    },
    SettingSpec {
        name: "seccomp",
        doc: "\"default\": Docker's list; \"off\": no filter",
    },
    SettingSpec {
        name: "seccomp_spec_allow",
        doc: "true: load the filter without the speculation mitigations that kernels before 5.16 tie to it; \
              default false",
    },
    SettingSpec {
        name: "ssbd",
        doc: "true: forbid everything inside to let loads pass stores (SSBD), as kernels before 5.16 do with every \
              filter; default false; not every processor offers it",
    },
    SettingSpec {
        name: "no_new_privs",
        doc: "true: set no_new_privs; default false",
    },
    SettingSpec {
        name: "cgroup",
        doc: "true (default): membership in cgroups of its own",
    },
    CPUS,
    CPUSET,
    MEMORY,
    PIDS,
    SettingSpec {
        name: "network",
        doc: "\"veth\" (default): a pair of devices to the host; \"none\": loopback only; \"host\": the host's \
              own stack",
    },
    SettingSpec {
        name: "environment",
        doc: "\"clean\" (default with the mount namespace): PATH, HOME and HOSTNAME, as an engine gives; \
              \"inherit\": the environment variables of Tare",
    },
    SettingSpec {
        name: "stdio",
        doc: "\"inherit\" (default): the agent's pipes as they are; \"relay\": copied by the launcher, as an \
              engine's shim does",
    },
    SettingSpec {
        name: "binds",
        doc: "folders and files of the host to show inside, a list such as [\"/srv/data:/data:ro\"]; needs the \
              mount namespace",
    },
];

/// The settings as the launcher needs them.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they are set in every combination"
)]
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) namespaces: Namespaces,
    pub(super) rootfs: Rootfs,
    pub(super) mounts: Mounts,
    pub(super) masked_paths: bool,
    /// `None` until it is known whether there is an engine here, and where there is none: the newest.
    pub(super) docker: Option<DockerRelease>,
    pub(super) private_paths: bool,
    pub(super) device_rules: bool,
    pub(super) capabilities: Option<Vec<String>>,
    pub(super) seccomp: Seccomp,
    pub(super) seccomp_spec_allow: bool,
    pub(super) ssbd: bool,
    pub(super) no_new_privs: bool,
    pub(super) cgroup: bool,
    pub(super) limits: Limits,
    pub(super) network: Network,
    /// Whether the network was asked for by name, so that doing without is not acceptable.
    pub(super) is_network_asked: bool,
    pub(super) clean_environment: bool,
    pub(super) stdio: Stdio,
    pub(super) binds: Vec<Bind>,
}

fn namespaces(settings: &Params) -> Result<Namespaces, SettingsError> {
    const NAME: &str = "namespaces";
    let with = |all: bool| Namespaces {
        user: if all {
            UserNamespace::IfNeeded
        } else {
            UserNamespace::No
        },
        mount: all,
        pid: all,
        uts: all,
        ipc: all,
        net: all,
        cgroup: all,
    };
    let Some(value) = settings.value(NAME) else {
        return Ok(with(true));
    };
    let words = words(value);
    match words.as_slice() {
        [only] if only == "all" => return Ok(with(true)),
        [only] if only == "none" => return Ok(with(false)),
        _ => {}
    }
    let mut chosen = with(false);
    for word in &words {
        let place = match word.as_str() {
            "user" => {
                chosen.user = UserNamespace::Yes;
                continue;
            }
            "mount" => &mut chosen.mount,
            "pid" => &mut chosen.pid,
            "uts" => &mut chosen.uts,
            "ipc" => &mut chosen.ipc,
            "net" => &mut chosen.net,
            "cgroup" => &mut chosen.cgroup,
            other => {
                return Err(wrong(
                    NAME,
                    format!("`{}` is no namespace", other.escape_debug()),
                    "\"all\", \"none\", or a list of user, mount, pid, uts, ipc, net, cgroup",
                ));
            }
        };
        *place = true;
    }
    Ok(chosen)
}

pub(in crate::env) fn capabilities(
    settings: &Params,
) -> Result<Option<Vec<String>>, SettingsError> {
    const NAME: &str = "caps";
    let docker = || DOCKER_CAPABILITIES.map(str::to_owned).to_vec();
    let Some(value) = settings.value(NAME) else {
        return Ok(Some(docker()));
    };
    let words = words(value);
    match words.as_slice() {
        [only] if only == "default" => return Ok(Some(docker())),
        [only] if only == "all" => return Ok(None),
        [only] if only == "none" => return Ok(Some(Vec::new())),
        _ => {}
    }
    let mut names = Vec::new();
    for word in words {
        let upper = word.to_ascii_uppercase();
        let name = if upper.starts_with("CAP_") {
            upper
        } else {
            format!("CAP_{upper}")
        };
        if capability_number(&name).is_none() {
            return Err(wrong(
                NAME,
                format!("`{}` is no capability", word.escape_debug()),
                "\"default\", \"all\", \"none\", or names such as NET_RAW or CAP_SYS_ADMIN",
            ));
        }
        names.push(name);
    }
    Ok(Some(names))
}

/// A number of processors.
fn cpus(value: &Value) -> Result<f64, SettingsError> {
    grammar::cpus(value).ok_or_else(|| {
        wrong(
            "cpus",
            format!("`{}` is no number of processors", shown(value)),
            "a number from 0.01 up, for example 0.5",
        )
    })
}

/// A list of processors in the kernel's form.
fn cpuset(value: &Value) -> Result<String, SettingsError> {
    let text: String = value.to_string().split_whitespace().collect();
    let is_range = |part: &str| {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        match (low.parse::<u32>(), high.parse::<u32>()) {
            (Ok(low), Ok(high)) => low <= high,
            _ => false,
        }
    };
    if text.split(',').all(is_range) {
        Ok(text)
    } else {
        Err(wrong(
            "cpuset",
            format!("`{}` is no list of processors", shown(value)),
            "numbers and ranges, for example \"0-1,3\"",
        ))
    }
}

/// An amount of memory in bytes.
fn memory(value: &Value) -> Result<u64, SettingsError> {
    let bytes = match value {
        Value::Int(bytes) => u64::try_from(*bytes).ok(),
        Value::Text(text) => parse_size(text),
        _ => None,
    };
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| {
        wrong(
            "memory",
            format!("`{}` is no amount of memory", shown(value)),
            "bytes, or a number with k, m or g (powers of 1024), for example \"512m\"",
        )
    })
}

pub(in crate::env) fn limits(settings: &Params) -> Result<Limits, SettingsError> {
    let pids = match settings.value("pids") {
        None => None,
        Some(Value::Int(number)) if *number > 0 => Some(*number as u64),
        Some(value) => {
            return Err(wrong(
                "pids",
                format!("`{}` is no number of processes", shown(value)),
                "a whole number above 0, for example 100",
            ));
        }
    };
    Ok(Limits {
        cpus: settings.value("cpus").map(cpus).transpose()?,
        cpuset: settings.value("cpuset").map(cpuset).transpose()?,
        memory_bytes: settings.value("memory").map(memory).transpose()?,
        pids,
    })
}

/// The folders and files to show inside.
pub(in crate::env) fn binds(
    settings: &Params,
    has_mounts: bool,
) -> Result<Vec<Bind>, SettingsError> {
    const NAME: &str = "binds";
    let texts: Vec<String> = match settings.value(NAME) {
        None => return Ok(Vec::new()),
        Some(Value::List(values)) => values.iter().map(Value::to_string).collect(),
        Some(value) => words(value),
    };
    if !texts.is_empty() && !has_mounts {
        return Err(wrong(
            NAME,
            format!("`{NAME}` needs the mount namespace"),
            "add `mount` to the namespaces, or leave this setting out",
        ));
    }
    let parsed = texts.iter().map(|text| {
        parse_bind(text).ok_or_else(|| {
            wrong(
                NAME,
                format!("`{}` is no bind", text.escape_debug()),
                "absolute paths such as \"/srv/data:/data\" or \"/srv/data:/data:ro\"",
            )
        })
    });
    parsed.collect()
}

impl Settings {
    /// Reads and checks; touches nothing outside.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        for name in settings.0.keys() {
            if !SETTINGS.iter().any(|known| known.name == name) {
                let names: Vec<&str> = SETTINGS.iter().map(|known| known.name).collect();
                return Err(wrong(
                    name,
                    format!("`container` has no setting `{}`", name.escape_debug()),
                    format!("it has {}", names.join(", ")),
                ));
            }
        }
        let mut namespaces = namespaces(settings)?;
        let is_listed = settings
            .value("namespaces")
            .is_some_and(|value| words(value) != ["all"]);

        let roots = [("overlay", Rootfs::Overlay), ("host", Rootfs::Host)];
        let rootfs = choice(settings, "rootfs", &roots)?;
        let mounts = switch(settings, "mounts")?;
        let masked_paths = switch(settings, "masked_paths")?;
        let private_paths = switch(settings, "private_paths")?;
        if !namespaces.mount {
            let asked = [
                (rootfs == Some(Rootfs::Overlay), "rootfs"),
                (mounts == Some(true), "mounts"),
                (masked_paths == Some(true), "masked_paths"),
                (private_paths == Some(true), "private_paths"),
            ];
            if let Some((_, name)) = asked.iter().find(|(is_asked, _)| *is_asked) {
                return Err(wrong(
                    name,
                    format!("`{name}` needs the mount namespace"),
                    "add `mount` to the namespaces, or leave this setting out",
                ));
            }
        }

        let networks = [
            ("veth", Network::Veth),
            ("none", Network::None),
            ("host", Network::Host),
        ];
        let asked = choice(settings, "network", &networks)?;
        let network = match asked {
            // All namespaces but the one that was said to be the host's.
            Some(Network::Host) if !is_listed => {
                namespaces.net = false;
                Network::Host
            }
            Some(network) if namespaces.net == (network == Network::Host) => {
                return Err(wrong(
                    "network",
                    "the network is the host's exactly if there is no `net` namespace".into(),
                    "change `network` or the list of `namespaces`",
                ));
            }
            Some(network) => network,
            None if namespaces.net => Network::Veth,
            None => Network::Host,
        };

        let limits = limits(settings)?;
        let cgroup = switch(settings, "cgroup")?.unwrap_or(true);
        if !cgroup && !limits.is_empty() {
            return Err(wrong(
                "cgroup",
                "the limits need cgroups of their own".into(),
                "cgroup = true, or no cpus, cpuset, memory and pids",
            ));
        }
        let device_rules = switch(settings, "device_rules")?;
        if !cgroup && device_rules == Some(true) {
            return Err(wrong(
                "device_rules",
                "device rules need cgroups of their own".into(),
                "cgroup = true, or leave this setting out",
            ));
        }
        let filters = [("default", Seccomp::DockerDefault), ("off", Seccomp::Off)];
        let streams = [("inherit", Stdio::Inherit), ("relay", Stdio::Relay)];
        let environments = [("clean", true), ("inherit", false)];
        let has_mounts = mounts.unwrap_or(namespaces.mount);
        Ok(Self {
            rootfs: rootfs.unwrap_or(if namespaces.mount {
                Rootfs::Overlay
            } else {
                Rootfs::Host
            }),
            mounts: Mounts {
                proc: has_mounts,
                sys: has_mounts,
                dev: has_mounts,
            },
            masked_paths: masked_paths.unwrap_or(namespaces.mount),
            docker: choice(settings, "docker", &DockerRelease::ALL)?,
            private_paths: private_paths.unwrap_or(namespaces.mount),
            device_rules: device_rules.unwrap_or(true),
            capabilities: capabilities(settings)?,
            seccomp: choice(settings, "seccomp", &filters)?.unwrap_or(Seccomp::DockerDefault),
            seccomp_spec_allow: switch(settings, "seccomp_spec_allow")?.unwrap_or(false),
            ssbd: switch(settings, "ssbd")?.unwrap_or(false),
            no_new_privs: switch(settings, "no_new_privs")?.unwrap_or(false),
            cgroup,
            limits,
            network,
            is_network_asked: asked.is_some(),
            clean_environment: choice(settings, "environment", &environments)?
                .unwrap_or(namespaces.mount),
            stdio: choice(settings, "stdio", &streams)?.unwrap_or(Stdio::Inherit),
            binds: binds(settings, namespaces.mount)?,
            namespaces,
        })
    }

    /// The switches as facts.
    pub(super) fn facts(&self) -> Facts {
        let names = &self.namespaces;
        let user = match names.user {
            UserNamespace::Yes => "user,",
            UserNamespace::No => "",
            UserNamespace::IfNeeded => "user if needed,",
        };
        let others = [
            (names.mount, "mount"),
            (names.pid, "pid"),
            (names.uts, "uts"),
            (names.ipc, "ipc"),
            (names.net, "net"),
            (names.cgroup, "cgroup"),
        ];
        let others: Vec<&str> = others
            .iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, name)| *name)
            .collect();
        let namespaces = format!("{user}{}", others.join(","));
        let text = |text: &str| text.to_owned();
        let limits = [
            ("cpus", self.limits.cpus.map(|cpus| cpus.to_string())),
            ("cpuset", self.limits.cpuset.clone()),
            (
                "memory",
                self.limits.memory_bytes.map(|bytes| bytes.to_string()),
            ),
            ("pids", self.limits.pids.map(|pids| pids.to_string())),
        ];
        let switches = [
            ("namespaces", namespaces.trim_end_matches(',').to_owned()),
            (
                "rootfs",
                text(match self.rootfs {
                    Rootfs::Overlay => {
                        "overlay over the host's root file system; other file systems \
                                        of the host are not visible"
                    }
                    Rootfs::Host => "the host's",
                }),
            ),
            ("mounts", self.mounts.proc.to_string()),
            ("masked_paths", self.masked_paths.to_string()),
            ("private_paths", self.private_paths.to_string()),
            (
                "caps",
                match &self.capabilities {
                    None => text("all"),
                    Some(names) if names.is_empty() => text("none"),
                    Some(names) => names.join(","),
                },
            ),
            (
                "seccomp",
                match self.seccomp {
                    Seccomp::Off => text("off"),
                    Seccomp::DockerDefault => {
                        format!(
                            "the default list of Docker {}",
                            self.docker.unwrap_or_default().name()
                        )
                    }
                },
            ),
            ("seccomp_spec_allow", self.seccomp_spec_allow.to_string()),
            ("ssbd", self.ssbd.to_string()),
            ("no_new_privs", self.no_new_privs.to_string()),
            ("cgroup", self.cgroup.to_string()),
            (
                "network",
                text(match self.network {
                    Network::Veth => "veth, point to point, no bridge and no address translation",
                    Network::None => "none",
                    Network::Host => "host",
                }),
            ),
            (
                "environment",
                text(if self.clean_environment {
                    "clean"
                } else {
                    "inherit"
                }),
            ),
            (
                "stdio",
                text(match self.stdio {
                    Stdio::Inherit => "inherit",
                    Stdio::Relay => "relay",
                }),
            ),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name, value)));
        switches
            .into_iter()
            .chain(limits)
            .map(|(name, value)| (fact::of(fact::CONTAINER, name), value))
            .collect()
    }
}

#[cfg(test)]
mod tests;
