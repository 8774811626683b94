//! The runtime specification (`config.json`): Tare's own, or somebody's with Tare's changes.
//!
//! Own small types for the part that is used, and everything else carried along unread: a specification of
//! Docker's or the user's must come out with every field that it came in with, also those that only its own
//! runtime knows. (The crate `oci-spec` knows all fields of one version, drops others, and brings 37 crates.)
//! Whatever the specification says, the container gets namespaces of its own for mounts and processes, a cgroup
//! of its own and no hooks: without the first two a runtime reaches the host's mounts and processes.
//! Source: opencontainers/runtime-spec 1.0.2 (config.md, config-linux.md); the own one repeats what Docker
//! 20.10 writes (moby `oci/defaults.go`).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tare_model::launch::{Bind, DOCKER_CAPABILITIES, DockerRelease, Network, READ_ONLY_PATHS};

use super::seccomp;
use super::settings::{Capabilities as Wanted, OPTIONAL_NAMESPACES, Settings};
use crate::env::EnvError;

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

/// A specification as it will be used, with what the reader should know of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Built {
    /// The specification.
    pub(super) spec: Spec,
    /// Its network as it now is.
    pub(super) network: Network,
    /// What was changed in a specification that is not Tare's own, or could not be had.
    pub(super) remarks: Vec<(&'static str, String)>,
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

/// The capabilities that can be given: nobody gives what he does not have.
fn give(
    wanted: Wanted,
    available: &[String],
    remarks: &mut Vec<(&'static str, String)>,
) -> Result<Vec<String>, EnvError> {
    let (names, is_listed) = match wanted {
        Wanted::All => return Ok(available.to_vec()),
        Wanted::Group(names) => (names, false),
        Wanted::Listed(names) => (names, true),
    };
    let (given, lacking): (Vec<String>, Vec<String>) =
        names.into_iter().partition(|name| available.contains(name));
    if lacking.is_empty() {
        return Ok(given);
    }
    let lacking = lacking.join(", ");
    if is_listed {
        return Err(EnvError::Denied {
            what: format!("Tare itself does not have {lacking}, so it cannot give it"),
            fix: Some("start Tare with that capability, or leave it out of `caps`".into()),
        });
    }
    remarks.push((
        "caps",
        format!("not given, as Tare does not have it: {lacking}"),
    ));
    Ok(given)
}

fn set_limits(spec: &mut Spec, settings: &Settings) {
    let limits = &settings.limits;
    let resources = &mut spec.linux.resources;
    if let Some(cpus) = limits.cpus {
        let quota = (cpus * PERIOD_US as f64).round() as u64;
        resources.cpu.insert("quota".into(), json!(quota));
        resources.cpu.insert("period".into(), json!(PERIOD_US));
    }
    if let Some(cpuset) = &limits.cpuset {
        resources.cpu.insert("cpus".into(), json!(cpuset));
    }
    if let Some(bytes) = limits.memory_bytes {
        resources.memory.insert("limit".into(), json!(bytes));
    }
    if let Some(pids) = limits.pids {
        resources.pids.insert("limit".into(), json!(pids));
    }
}

/// Takes out of a foreign specification what would reach beyond the container or into the engine that made it.
fn isolate(spec: &mut Spec, remarks: &mut Vec<(&'static str, String)>) {
    if spec.hooks.take().is_some() {
        remarks.push((
            "hooks",
            "dropped: they belong to the engine that wrote them".into(),
        ));
    }
    for kind in ["mount", "pid", "network"] {
        let joined = spec
            .linux
            .namespaces
            .iter()
            .find(|one| one.kind == kind)
            .and_then(|one| one.path.clone());
        if let Some(path) = joined {
            spec.set_namespace(kind, Some(Namespace::new(kind)));
            remarks.push((kind, format!("a new namespace instead of that of `{path}`")));
        }
    }
    spec.process.terminal = false;
    spec.process.rest.remove("consoleSize");
    spec.process.cwd = "/".into();
}

/// Applies the settings to Tare's own specification, or to `base`.
pub(super) fn build(
    base: Option<&Spec>,
    settings: &Settings,
    place: &Place<'_>,
) -> Result<Built, EnvError> {
    let mut remarks = Vec::new();
    let mut spec = if let Some(base) = base {
        let mut spec = base.clone();
        isolate(&mut spec, &mut remarks);
        spec
    } else {
        Spec::own()
    };
    let is_own = base.is_none();

    if let Some(wanted) = &settings.namespaces {
        for kind in OPTIONAL_NAMESPACES {
            let namespace = wanted.contains(&kind).then(|| Namespace::new(kind));
            spec.set_namespace(kind, namespace);
        }
    }
    for kind in ["mount", "pid"] {
        if !spec.linux.namespaces.iter().any(|one| one.kind == kind) {
            spec.set_namespace(kind, Some(Namespace::new(kind)));
            if !is_own {
                remarks.push((kind, "a new namespace instead of the host's".into()));
            }
        }
    }
    match settings.network {
        None => {}
        Some(Network::Host) => spec.set_namespace("network", None),
        Some(Network::None | Network::Veth) => {
            let mut namespace = Namespace::new("network");
            namespace.path.clone_from(&place.netns);
            spec.set_namespace("network", Some(namespace));
        }
    }
    if !spec.has_namespace("uts") {
        // Setting it would set the host's, and runtimes refuse that.
        spec.hostname = None;
    }
    for name in spec.drop_sysctls_of_the_host() {
        remarks.push((
            "sysctl",
            format!("without `{name}`, which would be set for the host"),
        ));
    }

    let wanted = settings
        .capabilities
        .clone()
        .or_else(|| is_own.then(|| Wanted::Group(DOCKER_CAPABILITIES.map(str::to_owned).to_vec())));
    if let Some(wanted) = wanted {
        spec.set_capabilities(give(wanted, place.available, &mut remarks)?);
    }
    if settings.has_seccomp == Some(true) || (settings.has_seccomp.is_none() && is_own) {
        let filter = seccomp::docker_default(place.release, &spec.capabilities(), place.kernel);
        spec.linux.seccomp =
            Some(serde_json::to_value(filter).expect("plain data with text keys becomes JSON"));
    } else if settings.has_seccomp == Some(false) {
        spec.linux.seccomp = None;
    }
    if let Some(no_new_privs) = settings.no_new_privs {
        spec.process.no_new_privileges = no_new_privs;
    }
    let masked = settings.masked_paths.or(is_own.then_some(true));
    if let Some(is_masked) = masked {
        let of = |paths: &[&str]| {
            let masked = paths.iter().filter(|_| is_masked);
            masked.map(ToString::to_string).collect()
        };
        let hidden: Vec<&str> = place.release.masked_paths().collect();
        spec.linux.masked_paths = of(&hidden);
        spec.linux.readonly_paths = of(&READ_ONLY_PATHS);
    }
    set_limits(&mut spec, settings);

    spec.root.path.clone_from(&place.root);
    let covers = place.hidden.iter().map(cover);
    spec.mounts
        .splice(0..0, covers.chain(place.shown.iter().map(show)));
    if spec.root.readonly {
        spec.mounts
            .push(mount(WORKDIR, "bind", &place.files, &["rbind", "rw"]));
        remarks.push((
            "workdir",
            "a folder of the host, as the root is read-only".into(),
        ));
    }
    spec.process.args = std::iter::once(AGENT)
        .chain(place.arguments.iter().copied())
        .map(str::to_owned)
        .collect();
    spec.process
        .env
        .retain(|variable| !variable.starts_with("TARE_RUN="));
    spec.process.env.push(format!("TARE_RUN={}", place.run));
    spec.linux.cgroups_path = Some(format!("/{}", place.id));
    let network = settings.network.unwrap_or_else(|| spec.network());
    Ok(Built {
        spec,
        network,
        remarks,
    })
}

#[cfg(test)]
mod tests;
