//! The runtime specification (`config.json`): Tare's, or another one with Tare's changes.
//!
//! Small types for the part that is used; everything else is passed through unread: a specification from Docker or
//! the user must keep every field, including those that only its own runtime knows. (The crate `oci-spec` knows all
//! fields of one version, drops others, and brings 37 crates.)
//! Whatever the specification says, the container gets its own mount and PID namespaces, its own cgroup and no hooks:
//! without the namespaces a runtime reaches the host's mounts and processes.
//! Source: opencontainers/runtime-spec 1.0.2 (config.md, config-linux.md); Tare's specification repeats what Docker
//! 20.10 writes (moby `oci/defaults.go`).

use crate::env::prelude::*;

use tare_model::launch::{DockerRelease, Network};

use super::settings::OPTIONAL_NAMESPACES;

mod build;

pub(super) use build::build;

/// Fields that are passed through.
type OtherFields = Map<String, Value>;

/// The agent's path inside.
pub(super) const AGENT: &str = "/tare-agent";

/// The probes' working directory inside.
pub(super) const WORKDIR: &str = "/tare-work";

/// The period of a CPU quota, microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

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
    rest: OtherFields,
}

/// The container's process.
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
    rest: OtherFields,
}

/// The process's capability sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Capabilities {
    #[serde(default)]
    bounding: Vec<String>,
    #[serde(default)]
    effective: Vec<String>,
    #[serde(default)]
    permitted: Vec<String>,
    #[serde(flatten)]
    rest: OtherFields,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Root {
    path: String,
    #[serde(default)]
    readonly: bool,
}

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
    rest: OtherFields,
}

/// The Linux-specific part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    rest: OtherFields,
}

/// A namespace: a new one, or the existing one at a path.
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

/// Limits, each group with the fields that are passed through.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Resources {
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    cpu: OtherFields,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    memory: OtherFields,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pids: OtherFields,
    #[serde(flatten)]
    rest: OtherFields,
}

/// The container for which the specification is built.
#[derive(Debug)]
pub(super) struct SpecTarget<'a> {
    /// Name of the container and its cgroup.
    pub(super) id: &'a str,
    /// The run, which is the label of the process inside.
    pub(super) run: &'a str,
    /// Path of the root file system.
    pub(super) root: String,
    /// A folder that becomes the working directory if the root is read-only.
    pub(super) files: String,
    /// A prepared network namespace, if any.
    pub(super) netns: Option<String>,
    /// The agent's arguments.
    pub(super) arguments: &'a [&'a str],
    /// The capabilities that Tare has.
    pub(super) available: &'a [String],
    /// The kernel's release.
    pub(super) kernel: &'a str,
    /// Host paths to cover, each with whether it is a folder.
    pub(super) hidden: &'a [(String, bool)],
    /// Bind mounts, also within covered paths.
    pub(super) shown: &'a [Bind],
    /// The Docker release whose seccomp filter and masked paths are used.
    pub(super) release: DockerRelease,
}

/// Changes that were not requested, each with a keyword and a sentence.
type Remarks = Vec<(&'static str, String)>;

/// The specification to use, with remarks for the reader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Built {
    pub(super) spec: Spec,
    /// The resulting network.
    pub(super) network: Network,
    /// Changes to a user's or Docker's specification, and what could not be granted.
    pub(super) remarks: Remarks,
}

fn mount(destination: &str, kind: &str, source: &str, options: &[&str]) -> Mount {
    Mount {
        destination: destination.into(),
        source: source.into(),
        kind: kind.into(),
        options: options.iter().map(ToString::to_string).collect(),
        rest: OtherFields::new(),
    }
}

/// Covers a folder with an empty tmpfs, a file with `/dev/null`. A masked path of the specification would be mounted
/// last, over the bind mounts.
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

impl Spec {
    pub(super) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Returns Tare's specification: like Docker's, before settings are applied.
    pub(super) fn own() -> Self {
        let mut own: Self = serde_json::from_value(json!({
            "ociVersion": "1.0.2",
            "hostname": "tare",
            "process": {
                "user": {"uid": 0, "gid": 0},
                "env": [
                    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                    "LC_ALL=C",
                ],
                "cwd": "/",
            },
            "root": {"path": ""},
            "linux": {"resources": {"devices": [{"allow": false, "access": "rwm"}]}},
        }))
        .expect("it has every required field");
        own.linux.namespaces = OPTIONAL_NAMESPACES.map(Namespace::new).to_vec();
        own.mounts = vec![
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
        ];
        own
    }

    /// Returns the capabilities in effect.
    fn capabilities(&self) -> Vec<String> {
        let own = self.process.capabilities.as_ref();
        own.map(|sets| sets.bounding.clone()).unwrap_or_default()
    }

    fn set_capabilities(&mut self, names: Vec<String>) {
        self.process.capabilities = Some(Capabilities {
            bounding: names.clone(),
            effective: names.clone(),
            permitted: names,
            rest: OtherFields::new(),
        });
    }

    fn set_namespace(&mut self, kind: &str, wanted: Option<Namespace>) {
        self.linux.namespaces.retain(|one| one.kind != kind);
        self.linux.namespaces.extend(wanted);
    }

    fn has_namespace(&self, kind: &str) -> bool {
        self.linux.namespaces.iter().any(|one| one.kind == kind)
    }

    /// Removes the sysctls of a namespace that this specification shares with the host, because runtimes refuse to
    /// set them there. Returns their names.
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

    /// Returns the network that the namespaces imply.
    fn network(&self) -> Network {
        if self.has_namespace("network") {
            Network::None
        } else {
            Network::Host
        }
    }

    /// Serializes it for the runtime.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).expect("plain data with text keys becomes JSON")
    }
}

#[cfg(test)]
mod tests;
