//! Reads and checks the settings of `container`.
//!
//! Every mechanism has its own switch. Unset ones follow from the others: without the mount namespace there is no
//! overlay, without the network namespace no veth pair. Contradictions are errors.

use crate::env::prelude::*;

use tare_model::launch::{
    DOCKER_CAPABILITIES, DockerRelease, LaunchSpec, Limits, Mounts, Namespaces, Network, Rootfs,
    Seccomp, Stdio, UserNamespace,
};

use super::bridge::Bridge;
use crate::env::common::{
    BINDS, CAPS, CPUS, CPUSET, GROUP_AND_NAMES, MASKED_PATHS, MEMORY, NETWORK_AND_NAMESPACES,
    NO_NEW_PRIVILEGES, PIDS, PRIVATE_PATHS, SECCOMP,
};
use crate::env::grammar::{is_safe_path, plain_capability};
use crate::env::reader::Reader;
use crate::env::setting::{Between, Form, settings, word_for, words};
use crate::env::user_container;

const ROOTS: [(&str, Rootfs); 2] = [("overlay", Rootfs::Overlay), ("host", Rootfs::Host)];
const NETWORKS: [(&str, Network); 3] = [
    ("veth", Network::Veth),
    ("none", Network::None),
    ("host", Network::Host),
];
const STREAMS: [(&str, Stdio); 2] = [("inherit", Stdio::Inherit), ("relay", Stdio::Relay)];
const FILTERS: [(&str, Seccomp); 2] = [
    ("default", Seccomp::DockerDefault),
    ("unconfined", Seccomp::Off),
];
const NEEDS_MOUNT: (&str, &str) = (
    "`SELF` needs the mount namespace",
    "add `mount` to the namespaces, or leave this setting out",
);
const VARIABLES: [(&str, bool); 2] = [("clean", true), ("inherit", false)];

settings! {
    pub(super) SETTINGS;

    NAMESPACES("namespaces",
        List(Form::new("\"all\", \"none\", or a list of user, mount, pid, uts, ipc, net, cgroup", |_| false)
            .or(&["all", "none", "user", "mount", "pid", "uts", "ipc", "net", "cgroup"]), Between::Commas),
        "all, with a user namespace only if Tare is not root", "the namespaces to make");
    ROOT("rootfs", Text(Form::words(&words(&ROOTS))), "`overlay` with the mount namespace",
        "an overlay over the host's own files, or the host's files themselves");
    MOUNTS("mounts", Flag, "`true` with the mount namespace", "a new /proc, a read-only /sys and a small /dev");
    MASKED_PATHS;
    DOCKER("docker", Text(Form::words(&words(&DockerRelease::ALL))),
        "that of the engine on this machine, and the newest where there is none",
        "the release of Docker whose filter and masked paths are taken");
    PRIVATE_PATHS;
    DEVICE_RULES("device_rules", Flag, "`true` with cgroups", "only the devices that engines allow can be opened");
    CAPS;
    SECCOMP;
    SPEC_ALLOW("seccomp_spec_allow", Flag, "`false`",
        "loads the filter without the speculation mitigations that kernels before 5.16 tie to it");
    SSBD("ssbd", Flag, "`false`",
        "forbids everything inside to let loads pass stores (SSBD), as kernels before 5.16 do with every filter; not every processor offers it");
    NO_NEW_PRIVILEGES;
    CGROUP("cgroup", Flag, "`true`", "membership in cgroups of its own");
    CPUS;
    CPUSET;
    MEMORY;
    PIDS;
    NETWORK("network", Text(Form::words(&words(&NETWORKS))), "`veth` with the net namespace",
        "a pair of devices to the host, loopback only, or the host's own stack");
    BRIDGE("bridge", Text(Form::new("a bridge's device and address, such as `br-1a2b 192.0.2.1/24`", |text| Bridge::parse(text).is_some())),
        "none", "the bridge that the veth pair is a port of, with no other address of Tare's on it, as `tare why` sets it");
    VARIABLE("environment", Text(Form::words(&words(&VARIABLES))), "`clean` with the mount namespace",
        "PATH, HOME and HOSTNAME as an engine gives them, or the environment variables of Tare");
    STDIO("stdio", Text(Form::words(&words(&STREAMS))), "`inherit`",
        "the agent's pipes as they are, or copied by the launcher, as an engine's shim does");
    BINDS;
    LIKE(user_container::LIKE, Text(Form::new("the file in which `tare why` keeps where an image's files lie", is_safe_path)), "the host's files",
        "the files below the overlay: those of an image, as `tare why` compares with them");
}

/// The settings in the launcher's terms.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    /// The launcher's specification, as far as it is the same for every instance; the names of an instance, and what
    /// depends on this machine, are filled in at its start.
    pub(super) launch: LaunchSpec,
    /// The Docker release to imitate; `None` until it is known whether there is an engine here. Without one, the
    /// newest.
    pub(super) docker: Option<DockerRelease>,
    pub(super) private_paths: bool,
    /// Whether the network was requested explicitly, so that a fallback is not acceptable.
    pub(super) is_network_asked: bool,
    /// The bridge that the veth pair is attached to, if any.
    pub(super) bridge: Option<Bridge>,
    /// The file with the paths of another root's layers, if any.
    pub(super) like: Option<String>,
}

fn namespaces(read: &Reader<'_>) -> Namespaces {
    let listed = read.list(&NAMESPACES);
    let is_all = !read.is_given(&NAMESPACES) || listed == ["all"];
    let has = |name: &str| is_all || listed.iter().any(|word| word == name);
    Namespaces {
        user: match has("user") {
            _ if is_all => UserNamespace::IfNeeded,
            true => UserNamespace::Yes,
            false => UserNamespace::No,
        },
        mount: has("mount"),
        pid: has("pid"),
        uts: has("uts"),
        ipc: has("ipc"),
        net: has("net"),
        cgroup: has("cgroup"),
    }
}

/// The capabilities to keep, with the `CAP_` prefix; `None` for all.
pub(crate) fn capabilities(read: &Reader<'_>) -> Option<Vec<String>> {
    let words: Vec<&str> = read.list(&CAPS).iter().map(String::as_str).collect();
    match words[..] {
        ["default"] => Some(DOCKER_CAPABILITIES.map(str::to_owned).to_vec()),
        [] if !read.is_given(&CAPS) => Some(DOCKER_CAPABILITIES.map(str::to_owned).to_vec()),
        ["all"] => None,
        ["none"] => Some(Vec::new()),
        _ => {
            let named = |word: &&str| format!("CAP_{}", plain_capability(word));
            Some(words.iter().map(named).collect())
        }
    }
}

pub(crate) fn limits(read: &Reader<'_>) -> Limits {
    Limits {
        cpus: read.number(&CPUS),
        cpuset: read.cpuset(),
        memory_bytes: read.size(&MEMORY),
        pids: read.whole(&PIDS),
    }
}

/// Rejects contradictory settings.
fn check(
    read: &Reader<'_>,
    namespaces: &Namespaces,
    network: Option<Network>,
    limits: &Limits,
) -> Result<(), SettingsError> {
    let has_groups = read.flag(&CGROUP).unwrap_or(true);
    let over = read.word(&ROOT, &ROOTS) == Some(Rootfs::Overlay);
    let is_hosts = read.word(&ROOT, &ROOTS) == Some(Rootfs::Host);
    let has_other = read.is_given(&LIKE);
    let is_bound = !read.list(&BINDS).is_empty();
    let alone = "cgroup = true, or leave this setting out";
    let limitless = "cgroup = true, or no cpus, cpuset, memory and pids";
    let without = |asked: bool| asked && !namespaces.mount;
    let is_other = |network| namespaces.net == (network == Network::Host);
    let groups = ["default", "all", "none"];
    read.consistent(&[
        (
            read.is_mixed(&NAMESPACES, &groups),
            NAMESPACES,
            GROUP_AND_NAMES,
        ),
        (read.is_mixed(&CAPS, &groups), CAPS, GROUP_AND_NAMES),
        (without(over), ROOT, NEEDS_MOUNT),
        (without(read.is_on(&MOUNTS)), MOUNTS, NEEDS_MOUNT),
        (
            without(read.is_on(&MASKED_PATHS)),
            MASKED_PATHS,
            NEEDS_MOUNT,
        ),
        (
            without(read.is_on(&PRIVATE_PATHS)),
            PRIVATE_PATHS,
            NEEDS_MOUNT,
        ),
        (without(is_bound), BINDS, NEEDS_MOUNT),
        (
            has_other && (!namespaces.mount || is_hosts || read.is_on(&PRIVATE_PATHS)),
            LIKE,
            (
                "`like` puts another root in place of the host's, which has none of its private paths",
                "remove `rootfs` and `private_paths`, and keep the mount namespace",
            ),
        ),
        (
            network.is_some_and(is_other),
            NETWORK,
            NETWORK_AND_NAMESPACES,
        ),
        (
            read.is_given(&BRIDGE) && (network.is_some_and(|it| it != Network::Veth) || !namespaces.net),
            BRIDGE,
            ("`bridge` is a place for a veth pair", "network = \"veth\", or remove `bridge`"),
        ),
        (
            !has_groups && !limits.is_empty(),
            CGROUP,
            ("the limits need cgroups of their own", limitless),
        ),
        (
            !has_groups && read.is_on(&DEVICE_RULES),
            DEVICE_RULES,
            ("device rules need cgroups of their own", alone),
        ),
    ])
}

impl Settings {
    /// Reads and checks the settings, without side effects.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("container", SETTINGS, settings)?;
        let mut namespaces = namespaces(&read);
        let limits = limits(&read);
        let asked = read.word(&NETWORK, &NETWORKS);
        let is_listed = read.is_given(&NAMESPACES) && read.list(&NAMESPACES) != ["all"];
        if asked == Some(Network::Host) && !is_listed {
            // All namespaces except the one that was set to the host's.
            namespaces.net = false;
        }
        check(&read, &namespaces, asked, &limits)?;
        let (network, root) = (
            if namespaces.net {
                Network::Veth
            } else {
                Network::Host
            },
            if namespaces.mount {
                Rootfs::Overlay
            } else {
                Rootfs::Host
            },
        );
        let has_mounts = read.flag(&MOUNTS).unwrap_or(namespaces.mount);
        let unnamed = RunId::new("unnamed").expect("the constant is a name");
        let launch = LaunchSpec {
            rootfs: read.word(&ROOT, &ROOTS).unwrap_or(root),
            mounts: Mounts::all_or_none(has_mounts),
            masked_paths: read.flag(&MASKED_PATHS).unwrap_or(namespaces.mount),
            device_rules: read.flag(&DEVICE_RULES).unwrap_or(true),
            capabilities: capabilities(&read),
            seccomp: read
                .word(&SECCOMP, &FILTERS)
                .unwrap_or(Seccomp::DockerDefault),
            seccomp_spec_allow: read.is_on(&SPEC_ALLOW),
            ssbd: read.is_on(&SSBD),
            no_new_privs: read.is_on(&NO_NEW_PRIVILEGES),
            cgroup: read.flag(&CGROUP).unwrap_or(true),
            limits,
            network: asked.unwrap_or(network),
            clean_environment: read.word(&VARIABLE, &VARIABLES).unwrap_or(namespaces.mount),
            stdio: read.word(&STDIO, &STREAMS).unwrap_or(Stdio::Inherit),
            binds: read.binds(),
            namespaces,
            ..LaunchSpec::apart(unnamed, "", Vec::new(), "", "")
        };
        Ok(Self {
            docker: read.word(&DOCKER, &DockerRelease::ALL),
            private_paths: read
                .flag(&PRIVATE_PATHS)
                .unwrap_or(launch.namespaces.mount && !read.is_given(&LIKE)),
            is_network_asked: asked.is_some(),
            bridge: read.text(&BRIDGE).and_then(Bridge::parse),
            like: read.owned(&LIKE),
            launch,
        })
    }

    /// The switches as facts.
    pub(super) fn facts(&self) -> Facts {
        let launch = &self.launch;
        let names = &launch.namespaces;
        let user = match names.user {
            UserNamespace::Yes => "user",
            UserNamespace::No => "",
            UserNamespace::IfNeeded => "user if needed",
        };
        let namespaces = [
            (!user.is_empty(), user),
            (names.mount, "mount"),
            (names.pid, "pid"),
            (names.uts, "uts"),
            (names.ipc, "ipc"),
            (names.net, "net"),
            (names.cgroup, "cgroup"),
        ];
        let namespaces: Vec<&str> = namespaces
            .iter()
            .filter(|(is_on, _)| *is_on)
            .map(|(_, name)| *name)
            .collect();
        let rootfs = match launch.rootfs {
            Rootfs::Overlay => {
                "overlay over the host's root file system; other file systems of the host are not visible"
            }
            Rootfs::Host => "the host's",
        };
        let rootfs = match &self.like {
            Some(_) => "overlay over the files of an image",
            None => rootfs,
        };
        let capabilities = match &launch.capabilities {
            None => "all".to_owned(),
            Some(names) if names.is_empty() => "none".to_owned(),
            Some(names) => names.join(","),
        };
        let release = self.docker.unwrap_or_default().name();
        let seccomp = match launch.seccomp {
            Seccomp::Off => "off".to_owned(),
            Seccomp::DockerDefault => format!("the default list of Docker {release}"),
        };
        let network = match launch.network {
            Network::Veth if self.bridge.is_some() => "veth, a port of a bridge",
            Network::Veth => "veth, point to point, no bridge and no address translation",
            Network::None => "none",
            Network::Host => "host",
        };
        let mut facts = Facts::from(
            [
                ("namespaces", namespaces.join(",")),
                ("rootfs", rootfs.to_owned()),
                ("mounts", launch.mounts.proc.to_string()),
                ("masked_paths", launch.masked_paths.to_string()),
                ("private_paths", self.private_paths.to_string()),
                ("caps", capabilities),
                ("seccomp", seccomp),
                ("seccomp_spec_allow", launch.seccomp_spec_allow.to_string()),
                ("ssbd", launch.ssbd.to_string()),
                ("no_new_privs", launch.no_new_privs.to_string()),
                ("cgroup", launch.cgroup.to_string()),
                ("network", network.to_owned()),
                (
                    "environment",
                    word_for(&VARIABLES, launch.clean_environment).to_owned(),
                ),
                ("stdio", word_for(&STREAMS, launch.stdio).to_owned()),
            ]
            .map(|(name, value)| (fact::name_for(fact::CONTAINER, name), value)),
        );
        facts.extend(limit_facts(fact::CONTAINER, &launch.limits));
        facts
    }
}

/// The limits that were requested, as facts of a family.
pub(crate) fn limit_facts(family: &str, limits: &Limits) -> Facts {
    let limits = [
        ("cpus", limits.cpus.map(|cpus| cpus.to_string())),
        ("cpuset", limits.cpuset.clone()),
        ("memory", limits.memory_bytes.map(|bytes| bytes.to_string())),
        ("pids", limits.pids.map(|pids| pids.to_string())),
    ];
    let asked = limits.into_iter();
    asked
        .filter_map(|(name, value)| Some((fact::name_for(family, name), value?)))
        .collect()
}

#[cfg(test)]
mod tests;
