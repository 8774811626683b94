//! The runtime specification (`config.json`): Tare's own, or somebody's with Tare's changes.
//!
//! Own small types for the part that is used, and everything else carried along unread: a specification of
//! Docker's or the user's must come out with every field that it came in with, also those that only its own
//! runtime knows. (The crate `oci-spec` knows all fields of one version, drops others, and brings 37 crates.)
//! Whatever the specification says, the container gets namespaces of its own for mounts and processes, a cgroup
//! of its own and no hooks: without the first two a runtime reaches the host's mounts and processes.
//! Source: opencontainers/runtime-spec 1.0.2 (config.md, config-linux.md); the own one repeats what Docker
//! 20.10 writes (moby `oci/defaults.go`).

use crate::env::prelude::*;

use tare_model::launch::{DockerRelease, Network};

use super::settings::OPTIONAL_NAMESPACES;

mod build;

pub(super) use build::build;

/// Fields that are carried along.
type Rest = Map<String, Value>;

/// The agent's file inside.
pub(super) const AGENT: &str = "/tare-agent";

/// Where probes put their files inside.
pub(super) const WORKDIR: &str = "/tare-work";

/// The period of a processor quota, microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// A specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spec {
    oci_version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hostname: Option<String>,
    process: Process,
    root: Root,
    #[serde(default)]
    pub(super) mounts: Vec<Mount>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hooks: Option<Value>,
    linux: Linux,
    #[serde(flatten)]
    rest: Rest,
}

/// The program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Process {
    #[serde(default)]
    terminal: bool,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: Vec<String>,
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    capabilities: Option<Capabilities>,
    #[serde(default)]
    no_new_privileges: bool,
    #[serde(flatten)]
    rest: Rest,
}

/// The program's sets of capabilities.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Capabilities {
    #[serde(default)]
    bounding: Vec<String>,
    #[serde(default)]
    effective: Vec<String>,
    #[serde(default)]
    permitted: Vec<String>,
    #[serde(flatten)]
    rest: Rest,
}

/// The root file system.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Root {
    path: String,
    #[serde(default)]
    readonly: bool,
}

/// A mount.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Mount {
    destination: String,
    #[serde(default)]
    pub(super) source: String,
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    kind: String,
    #[serde(default)]
    options: Vec<String>,
    #[serde(flatten)]
    rest: Rest,
}

/// What only Linux has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Linux {
    #[serde(default)]
    namespaces: Vec<Namespace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cgroups_path: Option<String>,
    #[serde(default)]
    resources: Resources,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seccomp: Option<Value>,
    #[serde(default)]
    masked_paths: Vec<String>,
    #[serde(default)]
    readonly_paths: Vec<String>,
    #[serde(flatten)]
    rest: Rest,
}

/// A namespace: a new one, or that of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Namespace {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
}

impl Namespace {
    fn new(kind: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            path: None,
        }
    }
}

/// Limits, each group with what is not read here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Resources {
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    cpu: Rest,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    memory: Rest,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pids: Rest,
    #[serde(flatten)]
    rest: Rest,
}

/// What the specification is made for.
#[derive(Debug)]
pub(super) struct Place<'a> {
    /// Names container and cgroup.
    pub(super) id: &'a str,
    /// The run: the label of the process inside.
    pub(super) run: &'a str,
    /// The root file system's folder.
    pub(super) root: String,
    /// A folder that becomes the working directory where the root is read-only.
    pub(super) files: String,
    /// A prepared network namespace.
    pub(super) netns: Option<String>,
    /// The agent's arguments.
    pub(super) arguments: &'a [&'a str],
    /// The capabilities that Tare itself has.
    pub(super) available: &'a [String],
    /// The kernel's release.
    pub(super) kernel: &'a str,
    /// What of the host's files is covered, with whether it is a folder.
    pub(super) hidden: &'a [(String, bool)],
    /// What of them is shown, also within what is covered.
    pub(super) shown: &'a [Bind],
    /// Whose filter and masked paths are Docker's.
    pub(super) release: DockerRelease,
}

/// What was done that was not asked for, a word and a sentence each.
type Remarks = Vec<(&'static str, String)>;

/// A specification as it will be used, with what the reader should know of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Built {
    /// The specification.
    pub(super) spec: Spec,
    /// Its network as it now is.
    pub(super) network: Network,
    /// What was changed in a specification that is not Tare's own, or could not be had.
    pub(super) remarks: Remarks,
}

fn mount(destination: &str, kind: &str, source: &str, options: &[&str]) -> Mount {
    Mount {
        destination: destination.into(),
        source: source.into(),
        kind: kind.into(),
        options: options.iter().map(ToString::to_string).collect(),
        rest: Rest::new(),
    }
}

/// Covers a folder with an empty one, another file with one that holds nothing. A mask of the specification
/// would be laid last, over what is shown.
fn cover((path, is_folder): &(String, bool)) -> Mount {
    if *is_folder {
        let options = ["nosuid", "nodev", "noexec", "mode=755", "size=1m"];
        mount(path, "tmpfs", "tmpfs", &options)
    } else {
        mount(path, "bind", "/dev/null", &["bind"])
    }
}

fn show(bind: &Bind) -> Mount {
    let access = if bind.read_only { "ro" } else { "rw" };
    mount(
        &bind.target,
        "bind",
        &bind.source,
        &["rbind", "rprivate", access],
    )
}

fn object(value: Value) -> Rest {
    match value {
        Value::Object(map) => map,
        _ => Rest::new(),
    }
}

impl Spec {
    /// Reads a specification.
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Tare's own: as Docker's, but for the settings that say otherwise.
    pub(super) fn own() -> Self {
        let devices = json!([{"allow": false, "access": "rwm"}]);
        Self {
            oci_version: "1.0.2".into(),
            hostname: Some("tare".into()),
            process: Process {
                terminal: false,
                args: Vec::new(),
                env: vec![
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into(),
                    "LC_ALL=C".into(),
                ],
                cwd: "/".into(),
                capabilities: None,
                no_new_privileges: false,
                rest: object(json!({"user": {"uid": 0, "gid": 0}})),
            },
            root: Root {
                path: String::new(),
                readonly: false,
            },
            mounts: vec![
                mount("/proc", "proc", "proc", &["nosuid", "noexec", "nodev"]),
                mount(
                    "/dev",
                    "tmpfs",
                    "tmpfs",
                    &["nosuid", "strictatime", "mode=755", "size=65536k"],
                ),
                mount(
                    "/dev/pts",
                    "devpts",
                    "devpts",
                    &[
                        "nosuid",
                        "noexec",
                        "newinstance",
                        "ptmxmode=0666",
                        "mode=0620",
                        "gid=5",
                    ],
                ),
                mount(
                    "/sys",
                    "sysfs",
                    "sysfs",
                    &["nosuid", "noexec", "nodev", "ro"],
                ),
                mount(
                    "/sys/fs/cgroup",
                    "cgroup",
                    "cgroup",
                    &["ro", "nosuid", "noexec", "nodev"],
                ),
                mount(
                    "/dev/mqueue",
                    "mqueue",
                    "mqueue",
                    &["nosuid", "noexec", "nodev"],
                ),
                mount(
                    "/dev/shm",
                    "tmpfs",
                    "shm",
                    &["nosuid", "noexec", "nodev", "mode=1777", "size=65536k"],
                ),
            ],
            hooks: None,
            linux: Linux {
                namespaces: OPTIONAL_NAMESPACES.map(Namespace::new).to_vec(),
                resources: Resources {
                    rest: object(json!({"devices": devices})),
                    ..Resources::default()
                },
                ..Linux::default()
            },
            rest: Rest::new(),
        }
    }

    /// The capabilities in effect.
    fn capabilities(&self) -> Vec<String> {
        let own = self.process.capabilities.as_ref();
        own.map(|sets| sets.bounding.clone()).unwrap_or_default()
    }

    fn set_capabilities(&mut self, names: Vec<String>) {
        self.process.capabilities = Some(Capabilities {
            bounding: names.clone(),
            effective: names.clone(),
            permitted: names,
            rest: Rest::new(),
        });
    }

    fn set_namespace(&mut self, kind: &str, wanted: Option<Namespace>) {
        self.linux.namespaces.retain(|one| one.kind != kind);
        self.linux.namespaces.extend(wanted);
    }

    fn has_namespace(&self, kind: &str) -> bool {
        self.linux.namespaces.iter().any(|one| one.kind == kind)
    }

    /// Leaves out what of the kernel's settings belongs to a namespace that this specification shares with the
    /// host: runtimes refuse to set it there. Their names.
    fn drop_sysctls_of_the_host(&mut self) -> Vec<String> {
        let kind_of = |name: &str| match name {
            "kernel.domainname" => Some("uts"),
            "kernel.sem" => Some("ipc"),
            _ if name.starts_with("net.") => Some("network"),
            _ if ["kernel.msg", "kernel.shm", "fs.mqueue."]
                .iter()
                .any(|prefix| name.starts_with(prefix)) =>
            {
                Some("ipc")
            }
            _ => None,
        };
        let is_hosts =
            |spec: &Self, name: &str| kind_of(name).is_some_and(|kind| !spec.has_namespace(kind));
        let Some(Value::Object(all)) = self.linux.rest.get("sysctl").cloned() else {
            return Vec::new();
        };
        let (dropped, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, _)| is_hosts(self, name));
        if !dropped.is_empty() {
            let kept = Value::Object(kept.into_iter().collect());
            self.linux.rest.insert("sysctl".into(), kept);
        }
        dropped.into_iter().map(|(name, _)| name).collect()
    }

    /// The network as the namespaces say it.
    fn network(&self) -> Network {
        if self.has_namespace("network") {
            Network::None
        } else {
            Network::Host
        }
    }

    /// The text for the runtime.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain data with text keys becomes JSON")
    }
}

#[cfg(test)]
mod tests;
