//! Specification and report of the built-in container, shared by the host's driver and the agent's launcher.
//!
//! Every mechanism has its own switch, because an environment's overhead is explained by switching its mechanisms off
//! one at a time. A requested mechanism that is unavailable is either refused or listed in [`LaunchReport::missing`];
//! it is never dropped silently.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::id::RunId;

/// Exit status of the launcher if the container was not started.
pub const REFUSED_STATUS: i32 = 125;

/// Prefix of the folder that holds an agent in a user's container; the names of run and arm follow.
pub const GUEST_FOLDER: &str = "/tare-inside-";

/// Added to a process id, gives a user id that no other program has: above the ranges that distributions give to
/// users and containers.
pub const OWN_USERS: u32 = 0x7100_0000;

/// The environment variable that labels every process of a run.
pub const RUN_VARIABLE: &str = "TARE_RUN";

/// The container to build and the program to run in it.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they are set in every combination"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchSpec {
    /// The run; labels everything that is created.
    pub run: RunId,
    /// Name of this instance within the run; cgroups are called `tare-<run>-<name>`.
    pub name: String,
    /// The program and its arguments. The first element `agent` stands for the agent's file, wherever it is inside.
    pub argv: Vec<String>,
    /// The agent's file on the host.
    pub agent: String,
    /// The process that starts the launcher; the container ends when it ends. If the launcher's parent is another
    /// process, nothing is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// An existing folder on a disk, used by this instance alone: holds upper, work and mount point.
    pub scratch: String,
    /// Path of the report, which is replaced by renaming each time it changes.
    pub report: String,
    /// The namespaces to enter.
    pub namespaces: Namespaces,
    /// The root file system.
    pub rootfs: Rootfs,
    /// Folders of the layers below the overlay, the uppermost first, if the root is not the host's; they are only
    /// read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// File systems to mount anew.
    pub mounts: Mounts,
    /// Whether to mask and write-protect the paths of /proc and /sys that Docker masks and protects.
    pub masked_paths: bool,
    /// The Docker release whose filter and masked paths are used.
    #[serde(default)]
    pub docker: DockerRelease,
    /// Host files and folders to cover inside, with everything in them; those missing on the host are skipped. Needs
    /// the mount namespace.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Whether to allow only the devices that engines allow: by the cgroup's device list, or under version 2 by a
    /// program on the cgroup. If neither is possible, `CAP_MKNOD` is not kept.
    #[serde(default)]
    pub device_rules: bool,
    /// The capabilities to keep, by name; `None` keeps what the launcher has.
    pub capabilities: Option<Vec<String>>,
    /// Whether to set no_new_privs.
    pub no_new_privs: bool,
    /// The seccomp filter.
    pub seccomp: Seccomp,
    /// Whether to load the filter with `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: before Linux 5.16 a filter without it also
    /// disabled speculative store bypass.
    pub seccomp_spec_allow: bool,
    /// Whether to disable speculative store bypass inside (SSBD, prctl(2) `PR_SET_SPECULATION_CTRL`), as kernels
    /// before Linux 5.16 do with every filter.
    #[serde(default)]
    pub ssbd: bool,
    /// Whether to put the instance into new cgroups.
    pub cgroup: bool,
    /// Limits; each needs `cgroup`.
    pub limits: Limits,
    /// The network.
    pub network: Network,
    /// The bridge that a veth pair is a port of; without one, the pair's outer end has its own address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgePort>,
    /// The host name inside; needs the uts namespace.
    pub hostname: String,
    /// The working directory inside, created if it is missing.
    pub workdir: String,
    /// How stdin, stdout and stderr are connected.
    pub stdio: Stdio,
    /// Host folders and files to bind-mount; needs the mount namespace.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Whether to drop the launcher's environment variables except its search path, as an engine does, and set
    /// HOSTNAME and HOME.
    #[serde(default)]
    pub clean_environment: bool,
    /// The network that it shares with the other instances of its arm, in addition to its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub siblings: Option<SiblingLink>,
    /// A host folder to share with the inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedFolder>,
}

impl LaunchSpec {
    /// Creates an instance with all namespaces, but no limits, seccomp filter or dropped capabilities. Its report is
    /// in its scratch folder.
    pub fn apart(run: RunId, name: &str, argv: Vec<String>, agent: &str, scratch: &str) -> Self {
        Self {
            run,
            name: name.to_owned(),
            argv,
            agent: agent.to_owned(),
            parent: None,
            scratch: scratch.to_owned(),
            report: format!("{scratch}/report.json"),
            namespaces: Namespaces {
                user: UserNamespace::IfNeeded,
                mount: true,
                pid: true,
                uts: true,
                ipc: true,
                net: true,
                cgroup: true,
            },
            rootfs: Rootfs::Overlay,
            lower: Vec::new(),
            mounts: Mounts::all_or_none(true),
            masked_paths: true,
            docker: DockerRelease::default(),
            hidden: Vec::new(),
            device_rules: true,
            capabilities: None,
            no_new_privs: false,
            seccomp: Seccomp::Off,
            seccomp_spec_allow: false,
            ssbd: false,
            cgroup: true,
            limits: Limits::default(),
            network: Network::Veth,
            bridge: None,
            hostname: "tare".to_owned(),
            workdir: "/tare-work".to_owned(),
            stdio: Stdio::Inherit,
            binds: Vec::new(),
            clean_environment: false,
            siblings: None,
            shared: None,
        }
    }
}

/// An instance's port on its siblings' network, a bridge of the hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiblingLink {
    /// The process whose network namespace has the bridge.
    pub hub: u32,
    /// The instance's number among its siblings, from 1.
    pub number: u32,
    /// The instance's address.
    pub address: Ipv4Addr,
    /// Length of the network's prefix, bits.
    pub prefix_bits: u8,
}

/// A port on a host bridge, IPv4 only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BridgePort {
    /// The bridge's device.
    pub device: String,
    /// The bridge's address and the one inside.
    pub addresses: PairAddresses,
}

/// A folder that the inside shares with the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedFolder {
    /// Path on the host.
    pub source: String,
    /// Path inside; created if missing.
    pub target: String,
}

/// A host folder or file bind-mounted inside, with everything mounted below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// Absolute path on the host.
    pub source: String,
    /// Absolute path inside; created if missing.
    pub target: String,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// When to enter a user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserNamespace {
    /// Never.
    No,
    /// Always; root maps every id to itself, other users map their id to 0.
    Yes,
    /// Only if the launcher is not root and could do nothing without it.
    IfNeeded,
}

/// One switch per namespace.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they are set in every combination"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Namespaces {
    /// User and group ids, capabilities.
    pub user: UserNamespace,
    /// Mounts.
    pub mount: bool,
    /// Process ids.
    pub pid: bool,
    /// Host name.
    pub uts: bool,
    /// System V IPC and POSIX message queues.
    pub ipc: bool,
    /// Network stack; must be set unless [`LaunchSpec::network`] is `host`.
    pub net: bool,
    /// The view of the cgroup tree.
    pub cgroup: bool,
}

/// The root file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rootfs {
    /// The host's.
    Host,
    /// An overlay on the host's root file system. Other file systems that the host has mounted below `/` are not
    /// visible in it.
    Overlay,
}

/// File systems mounted anew inside; each needs the mount namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mounts {
    /// A new /proc.
    pub proc: bool,
    /// A new /sys, read-only, with the instance's cgroups.
    pub sys: bool,
    /// A tmpfs /dev with few devices, pts, shm of 64 MiB and mqueue.
    pub dev: bool,
}

impl Mounts {
    /// Returns all of them, or none.
    pub const fn all_or_none(has: bool) -> Self {
        Self {
            proc: has,
            sys: has,
            dev: has,
        }
    }
}

/// The seccomp filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// None.
    Off,
    /// Docker's default list.
    DockerDefault,
}

/// The Docker Engine release whose defaults are reproduced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DockerRelease {
    /// 20.10.23 and .24: allows io_uring and all socket families.
    #[serde(rename = "20.10")]
    V20,
    /// 25 to 28: no io_uring, no `AF_VSOCK`.
    #[serde(rename = "28")]
    V28,
    /// The newest known: no `AF_ALG` either.
    #[default]
    #[serde(rename = "29")]
    V29,
}

impl DockerRelease {
    /// All releases, with their names.
    pub const ALL: [(&str, Self); 3] = [("20.10", Self::V20), ("28", Self::V28), ("29", Self::V29)];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, release)| *release == self);
        known.map_or("", |(name, _)| name)
    }

    /// Returns the release that represents an engine of this version: the first that is not older, so that a version
    /// between two gets the stricter one.
    pub fn of_engine(version: &str) -> Self {
        let major = version
            .split('.')
            .next()
            .and_then(|text| text.parse::<u32>().ok());
        match major {
            Some(0..=22) => Self::V20,
            Some(23..=28) => Self::V28,
            Some(29..) | None => Self::V29,
        }
    }

    /// Returns the paths that it masks.
    pub fn masked_paths(self) -> impl Iterator<Item = &'static str> {
        let newer: &[&str] = match self {
            Self::V20 => &[],
            Self::V28 | Self::V29 => &["/proc/interrupts", "/sys/devices/virtual/powercap"],
        };
        MASKED_PATHS.iter().chain(newer).copied()
    }
}

/// The network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// The host's network stack.
    Host,
    /// A stack with a loopback device only.
    None,
    /// A stack with a veth pair to the host.
    Veth,
}

/// How stdin, stdout and stderr are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdio {
    /// The launcher's streams, passed on.
    Inherit,
    /// Pipes; the launcher copies every byte, as an engine's shim does.
    Relay,
}

/// The mechanism that restricts devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRules {
    /// The device list of a version 1 cgroup.
    List,
    /// A program on the cgroup, as version 2 has it.
    Program,
}

/// Limits of the instance's cgroups; `None` means no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// CPU time per wall time, in processors; becomes a quota per 100 ms.
    pub cpus: Option<f64>,
    /// Allowed processors, in the kernel's list form, for example `0-1,3`.
    pub cpuset: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
}

impl Limits {
    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Progress of a launch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchState {
    /// Being created; the cgroups and links listed so far exist.
    #[default]
    Starting,
    /// The program inside has been executed.
    Running,
    /// It was not started; see `error`.
    Refused,
    /// It ended, and everything created for it is removed.
    Ended,
}

/// A requested feature that is unavailable, but without which the rest is still useful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The feature; the host side looks for [`VETH`](Self::VETH) and [`SIBLINGS`](Self::SIBLINGS).
    pub what: String,
    /// The reason.
    pub why: String,
}

impl Missing {
    /// The veth pair between host and container.
    pub const VETH: &'static str = "veth pair";
    /// The bridge that connects the instances of an arm.
    pub const SIBLINGS: &'static str = "network of the arm's instances";
}

/// Why a launch was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {problem}")]
pub struct LaunchError {
    /// The failed step, for example `mount the overlay`.
    pub step: String,
    /// The system's error message, or what is wrong with the specification.
    pub problem: String,
    /// The system's error number.
    pub errno: Option<i32>,
    /// Suggested remedy, if any.
    pub hint: Option<String>,
}

impl LaunchError {
    /// Returns an error that comes from no system call.
    pub fn new(step: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            step: step.into(),
            problem: problem.into(),
            errno: None,
            hint: None,
        }
    }

    /// Adds a remedy.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        self.hinted(|_| Some(hint.into()))
    }

    /// Adds the remedy for its error number, if there is one.
    #[must_use]
    pub fn hinted(mut self, hint: impl FnOnce(Option<i32>) -> Option<String>) -> Self {
        self.hint = hint(self.errno);
        self
    }
}

/// The two addresses of a veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairAddresses {
    /// Address of the host's end.
    pub host: Ipv4Addr,
    /// Address of the end inside.
    pub arm: Ipv4Addr,
    /// Length of the common prefix, bits.
    pub prefix_bits: u8,
}

/// Properties of a loaded filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeccompReport {
    /// Its length in BPF instructions.
    pub instructions: usize,
    /// Names in the list that have no number on this architecture and were skipped.
    pub skipped: Vec<String>,
}

/// The result of a [`LaunchSpec`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchReport {
    /// How far the launch got.
    pub state: LaunchState,
    /// Why it was refused.
    pub error: Option<LaunchError>,
    /// Requested features that are unavailable.
    pub missing: Vec<Missing>,
    /// Process id of the launcher.
    pub launcher: u32,
    /// Process id of the program inside, as the host sees it.
    pub init: Option<u32>,
    /// Path of the agent inside.
    pub agent: String,
    /// Whether a user namespace was entered.
    pub has_user_namespace: bool,
    /// `v1`, `v2` or `hybrid`; `None` without cgroups.
    pub cgroup_version: Option<String>,
    /// Cgroup folders that were created.
    pub cgroups: Vec<String>,
    /// Network devices that were created on the host.
    pub links: Vec<String>,
    /// The addresses of the veth pair.
    pub addresses: Option<PairAddresses>,
    /// The loaded seccomp filter, if any.
    pub seccomp: Option<SeccompReport>,
    /// The mechanism that restricts devices, if any.
    pub device_rules: Option<DeviceRules>,
    /// Exit status of the program, or 128 plus the signal's number.
    pub exit: Option<i32>,
}

/// Docker's default capabilities, as in moby's `oci/caps/defaults.go` of the 20.10 branch: mask a80425fb.
pub const DOCKER_CAPABILITIES: [&str; 14] = crate::rows! {
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
    "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
    "CAP_AUDIT_WRITE",
};

/// Paths that every Docker release masks (`MaskedPaths` in moby's `oci/defaults.go`).
const MASKED_PATHS: [&str; 10] = crate::rows! {
    "/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
};

/// Paths that Docker write-protects (`ReadonlyPaths` there).
pub const READ_ONLY_PATHS: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Every capability by its number, as in `include/uapi/linux/capability.h`.
pub const CAPABILITIES: [&str; 41] = crate::rows! {
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL",
    "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE",
    "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK", "CAP_IPC_OWNER", "CAP_SYS_MODULE",
    "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN", "CAP_SYS_BOOT",
    "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE",
    "CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG",
    "CAP_WAKE_ALARM", "CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF",
    "CAP_CHECKPOINT_RESTORE",
};

/// Returns the number of the capability with this name.
pub fn capability_number(name: &str) -> Option<u32> {
    (0..)
        .zip(&CAPABILITIES)
        .find(|(_, known)| **known == name)
        .map(|(number, _)| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_capabilities_match_docker_mask() {
        let mask = DOCKER_CAPABILITIES.iter().fold(0u64, |mask, name| {
            mask | 1 << capability_number(name).unwrap()
        });
        assert_eq!(mask, 0xa804_25fb);
    }

    #[test]
    fn engine_between_two_lists_uses_the_stricter() {
        let of = DockerRelease::of_engine;
        assert_eq!(of("20.10.24+dfsg1"), DockerRelease::V20);
        assert_eq!(of("24.0.7"), DockerRelease::V28);
        assert_eq!(
            (of("29.1.0"), of("dev")),
            (DockerRelease::V29, DockerRelease::V29)
        );
        assert_eq!(
            DockerRelease::V20.masked_paths().count() + 2,
            of("28").masked_paths().count()
        );
    }

    #[test]
    fn a_switch_that_does_not_exist_is_refused() {
        let text = r#"{"cpus":1.0,"cpuset":null,"memory_bytes":null,"pids":null,"memroy":1}"#;
        assert!(serde_json::from_str::<Limits>(text).is_err());
    }
}
