//! What the built-in container is to be made of, and what came of it: shared by the host's driver and the
//! agent's launcher.
//!
//! Every mechanism has a switch of its own, because the cost of an environment is explained by switching
//! its mechanisms off one at a time. A mechanism that was asked for and cannot be had is either refused or
//! listed under [`LaunchReport::missing`]; it is never left out silently.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::id::RunId;

/// The status with which the launcher exits when the container was not started.
pub const REFUSED_STATUS: i32 = 125;

/// How the path of a folder begins in which an agent lies in somebody else's container: the run's name and the arm's
/// follow.
pub const GUEST_FOLDER: &str = "/tare-inside-";

/// Added to a process's number, that of a user that no other program has: above the ranges that distributions give
/// to users and containers.
pub const OWN_USERS: u32 = 0x7100_0000;

/// The environment variable that labels every process of a run.
pub const RUN_VARIABLE: &str = "TARE_RUN";

/// What to build and what to run in it.
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and they are set in every combination"
)]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchSpec {
    /// The run: label of all that is created.
    pub run: RunId,
    /// Names this instance within the run; cgroups are called `tare-<run>-<name>`.
    pub name: String,
    /// The program and its arguments. The first element `agent` stands for the agent's own file, wherever it
    /// lies inside.
    pub argv: Vec<String>,
    /// The agent's file on the host.
    pub agent: String,
    /// The process that starts the launcher, with whose end the container ends. Where another process is the
    /// launcher's parent, nothing is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// A folder on a disk that exists and is this instance's own: holds upper, work and mount point.
    pub scratch: String,
    /// Where the report is written, by renaming, each time it changes.
    pub report: String,
    /// The namespaces to enter.
    pub namespaces: Namespaces,
    /// The root file system.
    pub rootfs: Rootfs,
    /// The folders of the layers that the overlay lies over, the uppermost first, where that is another root than the
    /// host's; they are only read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lower: Vec<String>,
    /// File systems mounted anew.
    pub mounts: Mounts,
    /// Hides and write-protects the paths of /proc and /sys that Docker hides and protects.
    pub masked_paths: bool,
    /// Whose filter and masked paths they are.
    #[serde(default)]
    pub docker: DockerRelease,
    /// Files and folders of the host that are covered inside, with all that lies in them; those that the host
    /// does not have are passed over. Needs the mount namespace.
    #[serde(default)]
    pub hidden: Vec<String>,
    /// Allows the inside only the devices that engines allow: by the control group's list, or by a program on
    /// it under version 2. Where neither can be had, `CAP_MKNOD` is not kept.
    #[serde(default)]
    pub device_rules: bool,
    /// The capabilities to keep, by name; `None` keeps what the launcher has.
    pub capabilities: Option<Vec<String>>,
    /// Sets no_new_privs.
    pub no_new_privs: bool,
    /// The system-call filter.
    pub seccomp: Seccomp,
    /// Loads the filter with `SECCOMP_FILTER_FLAG_SPEC_ALLOW`: before Linux 5.16 a filter without it also
    /// switched speculative store bypass off.
    pub seccomp_spec_allow: bool,
    /// Forbids everything inside to let loads pass older stores (SSBD, prctl(2) `PR_SET_SPECULATION_CTRL`), as
    /// kernels before Linux 5.16 do with every filter.
    #[serde(default)]
    pub ssbd: bool,
    /// Makes the instance a member of cgroups of its own.
    pub cgroup: bool,
    /// Limits; each needs `cgroup`.
    pub limits: Limits,
    /// The network.
    pub network: Network,
    /// The bridge that a veth pair is a port of; without one the pair's outer end has an address of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bridge: Option<BridgePort>,
    /// The host name inside; needs the uts namespace.
    pub hostname: String,
    /// The working directory inside, created if it is missing.
    pub workdir: String,
    /// How the standard streams reach the inside.
    pub stdio: Stdio,
    /// Folders and files of the host that are shown inside; needs the mount namespace.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Drops the environment variables of the launcher but its search path, as an engine does, and sets
    /// HOSTNAME and HOME.
    #[serde(default)]
    pub clean_environment: bool,
    /// The network that it shares with the other instances of its arm, beside its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siblings: Option<SiblingLink>,
    /// A folder of the host's that is bound into the inside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<SharedFolder>,
}

impl LaunchSpec {
    /// An instance with everything of its own and nothing taken away. Its report lies in its scratch folder.
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

/// The place of an instance on the network of its siblings: a port of the hub's bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiblingLink {
    /// The process whose network namespace holds the bridge.
    pub hub: u32,
    /// The instance's number among its siblings, from 1.
    pub number: u32,
    /// The instance's address.
    pub address: Ipv4Addr,
    /// Length of the network's prefix, bits.
    pub prefix_bits: u8,
}

/// A place on a bridge of the host's, with IPv4 alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BridgePort {
    /// The bridge's device.
    pub device: String,
    /// The bridge's own address and the one inside.
    pub addresses: PairAddresses,
}

/// A folder that the inside shares with the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedFolder {
    /// On the host.
    pub source: String,
    /// Inside; made if it is missing.
    pub target: String,
}

/// A folder or file of the host's, shown inside with what is mounted below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bind {
    /// On the host, absolute.
    pub source: String,
    /// Inside, absolute; made if it is not there.
    pub target: String,
    /// Whether it may not be written to.
    pub read_only: bool,
}

/// When to enter a user namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UserNamespace {
    /// Never.
    No,
    /// Always; root maps every id to itself, others map their own id to 0.
    Yes,
    /// Only if the launcher is not root and could do nothing without.
    IfNeeded,
}

/// One switch a namespace.
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
    /// The host's own.
    Host,
    /// An overlay whose lower layer is the host's root file system. Other file systems that the host has
    /// mounted below `/` are not visible in it.
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
    /// A /dev on tmpfs with few devices, pts, shm of 64 MiB and mqueue.
    pub dev: bool,
}

impl Mounts {
    /// All of them, or none.
    pub const fn all_or_none(has: bool) -> Self {
        Self {
            proc: has,
            sys: has,
            dev: has,
        }
    }
}

/// The system-call filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Seccomp {
    /// None.
    Off,
    /// Docker's default list.
    DockerDefault,
}

/// The release of Docker Engine whose defaults are repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DockerRelease {
    /// 20.10.23 and .24: allows io_uring and every family of sockets.
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
    /// All, with their names.
    pub const ALL: [(&str, Self); 3] = [("20.10", Self::V20), ("28", Self::V28), ("29", Self::V29)];

    /// Its name.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, release)| *release == self);
        known.map_or("", |(name, _)| name)
    }

    /// The one that stands for an engine of this version: the first that is not older. What is between two is held
    /// to the stricter.
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

    /// The paths that it hides.
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
    /// The host's own stack.
    Host,
    /// A stack with a loopback device only.
    None,
    /// A stack with a veth pair to the host.
    Veth,
}

/// How the standard streams reach the inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stdio {
    /// The launcher's own streams, handed on.
    Inherit,
    /// Pipes of which the launcher copies every byte, as an engine's shim does.
    Relay,
}

/// What allows and forbids devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceRules {
    /// The list of a control group of version 1.
    List,
    /// A program on the control group, as version 2 has it.
    Program,
}

/// Limits of the instance's cgroups; `None` is no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Processor time per wall time, in processors; becomes a quota per 100 ms.
    pub cpus: Option<f64>,
    /// Processors that may be used, in the kernel's list form, for example `0-1,3`.
    pub cpuset: Option<String>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Number of processes and threads.
    pub pids: Option<u64>,
}

impl Limits {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// How far a launch got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LaunchState {
    /// Being made; cgroups and links listed so far exist.
    Starting,
    /// The program inside has been executed.
    Running,
    /// It was not started; see `error`.
    Refused,
    /// It ended, and what was made for it is removed.
    Ended,
}

/// Something that was asked for and could not be had, but without which the rest is still of use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// What; [`VETH`](Self::VETH) and [`SIBLINGS`](Self::SIBLINGS) are looked for by the host side.
    pub what: String,
    /// Why.
    pub why: String,
}

impl Missing {
    /// The pair of devices between host and container.
    pub const VETH: &'static str = "veth pair";
    /// The bridge on which the instances of an arm meet.
    pub const SIBLINGS: &'static str = "network of the arm's instances";
}

/// Why a launch was refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{step}: {problem}")]
pub struct LaunchError {
    /// The step that failed, for example `mount the overlay`.
    pub step: String,
    /// What the system said, or what is wrong with the specification.
    pub problem: String,
    /// The system's error number.
    pub errno: Option<i32>,
    /// What would help.
    pub hint: Option<String>,
}

/// The two addresses of a veth pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairAddresses {
    /// Of the host's end.
    pub host: Ipv4Addr,
    /// Of the end inside.
    pub arm: Ipv4Addr,
    /// Length of the prefix that both share, bits.
    pub prefix_bits: u8,
}

/// What is known of a loaded filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeccompReport {
    /// Its length in BPF instructions.
    pub instructions: usize,
    /// Names of the list that have no number on this architecture and were skipped.
    pub skipped: Vec<String>,
}

/// What came of a [`LaunchSpec`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchReport {
    /// How far it got.
    pub state: LaunchState,
    /// Why it was refused.
    pub error: Option<LaunchError>,
    /// What could not be had.
    pub missing: Vec<Missing>,
    /// Process id of the launcher.
    pub launcher: u32,
    /// Process id of the program inside, as the host sees it.
    pub init: Option<u32>,
    /// The agent's file as seen inside.
    pub agent: String,
    /// Whether a user namespace was entered.
    pub has_user_namespace: bool,
    /// `v1`, `v2` or `hybrid`, or nothing where there are no cgroups.
    pub cgroup_version: Option<String>,
    /// The cgroup folders that were made.
    pub cgroups: Vec<String>,
    /// The network devices that were made on the host.
    pub links: Vec<String>,
    /// The addresses of the veth pair.
    pub addresses: Option<PairAddresses>,
    /// The filter.
    pub seccomp: Option<SeccompReport>,
    /// What keeps the inside from devices, if rules do.
    #[serde(default)]
    pub device_rules: Option<DeviceRules>,
    /// How the program ended: its status, or 128 plus the signal's number.
    pub exit: Option<i32>,
}

/// Docker's default capabilities, as in moby's `oci/caps/defaults.go` of the 20.10 branch: mask a80425fb.
pub const DOCKER_CAPABILITIES: [&str; 14] = crate::rows! {
    "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID",
    "CAP_SETUID", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL",
    "CAP_AUDIT_WRITE",
};

/// What every release of Docker hides inside (`MaskedPaths` in moby's `oci/defaults.go`).
const MASKED_PATHS: [&str; 10] = crate::rows! {
    "/proc/asound", "/proc/acpi", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
    "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
};

/// What Docker write-protects inside (`ReadonlyPaths` there).
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

/// The number of the capability of this name.
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
    fn the_default_capabilities_are_the_mask_that_docker_shows() {
        let mask = DOCKER_CAPABILITIES.iter().fold(0u64, |mask, name| {
            mask | 1 << capability_number(name).unwrap()
        });
        assert_eq!(mask, 0xa804_25fb);
    }

    #[test]
    fn an_engine_between_two_lists_is_held_to_the_stricter() {
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
