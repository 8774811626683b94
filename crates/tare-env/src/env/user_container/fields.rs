//! The fields of a container's configuration that can be removed individually: their names in `docker run` and
//! compose files, dependent fields, and what is given up without them.
//!
//! A plain table. A field that is not in it is still a difference, under the engine's name.

/// One field of `HostConfig`, or next to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// The name of the difference.
    pub(crate) id: &'static str,
    /// The field that shows whether it is set.
    pub(crate) name: &'static str,
    /// Fields that are meaningless or refused without it.
    pub(crate) with: &'static [&'static str],
    /// Flag of `docker run`; empty if there is none.
    pub(crate) flag: &'static str,
    /// Key of a service in a compose file.
    pub(crate) compose: &'static str,
    /// What is given up without it.
    pub(crate) price: &'static str,
    /// Probability that it causes a slowdown.
    pub(crate) likelihood: f64,
    /// Whether the program may need it.
    pub(crate) may_be_needed: bool,
}

const fn field(
    id: &'static str,
    name: &'static str,
    flag: &'static str,
    compose: &'static str,
    price: &'static str,
    likelihood: f64,
) -> Field {
    Field {
        id,
        name,
        with: &[],
        flag,
        compose,
        price,
        likelihood,
        may_be_needed: false,
    }
}

impl Field {
    const fn with(self, with: &'static [&'static str]) -> Self {
        Self { with, ..self }
    }

    const fn needed(self) -> Self {
        Self {
            may_be_needed: true,
            ..self
        }
    }
}

const NEIGHBOURS: &str = "neighbours on the machine may get less";
const ISOLATION: &str = "more of the machine can be seen or reached from inside";
const RIGHTS: &str = "rights that it may need, or rights that it should not have";
const NAMES: &str = "names may be looked up elsewhere";

/// All known fields.
pub(crate) static FIELDS: &[Field] = &tare_model::rows! {
    field("cpus", "NanoCpus", "--cpus", "cpus", NEIGHBOURS, 0.9),
    field("cpu-quota", "CpuQuota", "--cpu-quota", "cpu_quota", NEIGHBOURS, 0.9).with(&["CpuPeriod"]),
    field("cpuset-cpus", "CpusetCpus", "--cpuset-cpus", "cpuset", NEIGHBOURS, 0.8),
    field("cpuset-mems", "CpusetMems", "--cpuset-mems", "", NEIGHBOURS, 0.5),
    field("cpu-shares", "CpuShares", "--cpu-shares", "cpu_shares", NEIGHBOURS, 0.6),
    field("cpu-rt-runtime", "CpuRealtimeRuntime", "--cpu-rt-runtime", "cpu_rt_runtime", NEIGHBOURS, 0.2).with(&["CpuRealtimePeriod"]),
    field("cgroup-parent", "CgroupParent", "--cgroup-parent", "cgroup_parent", NEIGHBOURS, 0.7),
    field("memory", "Memory", "--memory", "mem_limit", NEIGHBOURS, 0.7).with(&["MemorySwap", "MemoryReservation", "MemorySwappiness"]),
    field("memory-swap", "MemorySwap", "--memory-swap", "memswap_limit", NEIGHBOURS, 0.4),
    field("memory-reservation", "MemoryReservation", "--memory-reservation", "mem_reservation", NEIGHBOURS, 0.2),
    field("memory-swappiness", "MemorySwappiness", "--memory-swappiness", "mem_swappiness", NEIGHBOURS, 0.3),
    field("kernel-memory", "KernelMemory", "--kernel-memory", "", NEIGHBOURS, 0.3),
    field("blkio-weight", "BlkioWeight", "--blkio-weight", "blkio_config.weight", NEIGHBOURS, 0.4),
    field("blkio-weight-device", "BlkioWeightDevice", "--blkio-weight-device", "blkio_config.weight_device", NEIGHBOURS, 0.4),
    field("device-read-bps", "BlkioDeviceReadBps", "--device-read-bps", "blkio_config.device_read_bps", NEIGHBOURS, 0.6),
    field("device-write-bps", "BlkioDeviceWriteBps", "--device-write-bps", "blkio_config.device_write_bps", NEIGHBOURS, 0.6),
    field("device-read-iops", "BlkioDeviceReadIOps", "--device-read-iops", "blkio_config.device_read_iops", NEIGHBOURS, 0.6),
    field("device-write-iops", "BlkioDeviceWriteIOps", "--device-write-iops", "blkio_config.device_write_iops", NEIGHBOURS, 0.6),
    field("pids-limit", "PidsLimit", "--pids-limit", "pids_limit", "a fork bomb is no longer held", 0.3),
    field("oom-kill-disable", "OomKillDisable", "--oom-kill-disable", "oom_kill_disable", NEIGHBOURS, 0.1),
    field("oom-score-adj", "OomScoreAdj", "--oom-score-adj", "oom_score_adj", NEIGHBOURS, 0.05),
    field("shm-size", "ShmSize", "--shm-size", "shm_size", "/dev/shm may hold more of the memory", 0.4),
    field("init", "Init", "--init", "init", "orphans are reaped by the program itself, or not at all", 0.1),
    field("log", "LogConfig", "--log-driver", "logging", "output goes to the engine's usual log", 0.4),
    field("runtime", "Runtime", "--runtime", "runtime", ISOLATION, 0.6),
    field("readonly", "ReadonlyRootfs", "--read-only", "read_only", "the container's own files can be changed", 0.1),
    field("privileged", "Privileged", "--privileged", "privileged", "nothing: fewer rights are safer", 0.2).needed(),
    field("cap-add", "CapAdd", "--cap-add", "cap_add", RIGHTS, 0.1).needed(),
    field("cap-drop", "CapDrop", "--cap-drop", "cap_drop", RIGHTS, 0.1),
    field("ipc", "IpcMode", "--ipc", "ipc", ISOLATION, 0.2).needed(),
    field("pid", "PidMode", "--pid", "pid", ISOLATION, 0.2).needed(),
    field("uts", "UTSMode", "--uts", "uts", ISOLATION, 0.05),
    field("userns", "UsernsMode", "--userns", "userns_mode", ISOLATION, 0.2),
    field("cgroupns", "CgroupnsMode", "--cgroupns", "cgroup", ISOLATION, 0.1),
    field("dns", "Dns", "--dns", "dns", NAMES, 0.5).needed(),
    field("dns-option", "DnsOptions", "--dns-option", "dns_opt", NAMES, 0.5).needed(),
    field("dns-search", "DnsSearch", "--dns-search", "dns_search", NAMES, 0.5).needed(),
    field("add-host", "ExtraHosts", "--add-host", "extra_hosts", NAMES, 0.3).needed(),
    field("link", "Links", "--link", "links", NAMES, 0.1).needed(),
    field("network", "NetworkMode", "--network", "networks", "it may no longer reach the same peers", 0.4).needed(),
    field("publish", "PortBindings", "-p", "ports", "the port is not reachable from outside", 0.2).with(&["PublishAllPorts"]),
    field("publish-all", "PublishAllPorts", "-P", "ports", "the port is not reachable from outside", 0.1),
    field("group-add", "GroupAdd", "--group-add", "group_add", RIGHTS, 0.05).needed(),
    field("device", "Devices", "--device", "devices", "the device is not there", 0.1).needed(),
    field("device-cgroup-rule", "DeviceCgroupRules", "--device-cgroup-rule", "device_cgroup_rules", RIGHTS, 0.05).needed(),
    field("gpus", "DeviceRequests", "--gpus", "deploy.resources.reservations.devices", "the device is not there", 0.1).needed(),
    field("storage-opt", "StorageOpt", "--storage-opt", "storage_opt", "its layer may grow without bound", 0.2),
    field("masked-paths", "MaskedPaths", "--security-opt systempaths", "security_opt", ISOLATION, 0.05),
    field("readonly-paths", "ReadonlyPaths", "--security-opt systempaths", "security_opt", ISOLATION, 0.05),
    field("isolation", "Isolation", "--isolation", "isolation", ISOLATION, 0.2),
};

/// Fields that are no difference of their own, as they only mean something with another: name, flag, key of a service.
pub(crate) const DEPENDENT: [(&str, &str, &str); 2] = [
    ("CpuPeriod", "--cpu-period", "cpu_period"),
    ("CpuRealtimePeriod", "--cpu-rt-period", "cpu_rt_period"),
];

/// Fields that do not affect the program or that no arm keeps: names, actions at the end, and what is judged by
/// separate parts.
pub(crate) const NO_DIFFERENCE: &[&str] = &tare_model::rows! {
    "AutoRemove", "ContainerIDFile", "ConsoleSize", "RestartPolicy", "Binds", "Mounts", "VolumesFrom",
    "VolumeDriver", "SecurityOpt", "Sysctls", "Ulimits", "Tmpfs", "Annotations", "Cgroup", "CpuPeriod",
    "CpuRealtimePeriod", "CpuCount", "CpuPercent", "IOMaximumIOps", "IOMaximumBandwidth", "Capabilities",
};

/// Variables whose name shows that a library or a runtime reads them, not only the program; `*` at the end matches
/// any suffix, at the beginning any prefix.
const OF_RUNTIMES: &[&str] = &tare_model::rows! {
    "LD_*", "MALLOC_*", "GLIBC_*", "OMP_*", "OPENBLAS_*", "MKL_*", "KMP_*", "GOMP_*", "BLIS_*", "NUMEXPR_*",
    "RAYON_*", "TBB_*", "*_NUM_THREADS", "*_THREADS", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "JAVA_*",
    "_JAVA_*", "JDK_*", "JVM_*", "*_JAVA_OPTS", "CATALINA_OPTS", "PYTHON*", "NODE_OPTIONS", "UV_*", "RUBY*",
    "PERL5*", "PERL_*", "DOTNET_*", "COMPlus_*", "CORECLR_*", "TCMALLOC_*", "JEMALLOC_*", "TZ", "TZDIR",
    "LANG", "LANGUAGE", "LC_*", "LOCPATH", "RES_OPTIONS", "LOCALDOMAIN", "HOSTALIASES", "ASAN_OPTIONS",
    "*SAN_OPTIONS", "MPLCONFIGDIR", "CUDA_*", "OPENSSL_*", "SSLKEYLOGFILE", "GCONV_PATH", "TMPDIR",
    "RUST_BACKTRACE", "QEMU_*", "MIMALLOC_*",
};

/// Variables that hardly any program starts without, or that have no meaning.
const NEVER: &[&str] = &tare_model::rows! {
    "HOSTNAME", "USER", "LOGNAME", "SHELL", "PWD", "OLDPWD", "TERM", "SHLVL", "TARE_RUN", "*_VERSION", "GPG_KEY",
};

/// Variables that name paths: a program needs the image's value, but not another value set for the container.
const OF_PLACES: &[&str] = &tare_model::rows! {
    "PATH", "HOME", "PYTHONHOME", "GEM_HOME", "GOPATH", "JAVA_HOME",
};

/// Lists of folders that a runtime searches in addition to its default: a program may work without them, even without
/// the image's.
const OF_LISTS: &[&str] = &tare_model::rows! {
    "LD_LIBRARY_PATH", "PYTHONPATH", "PERL5LIB", "NODE_PATH", "CLASSPATH", "RUBYLIB",
};

/// Who reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VariableKind {
    /// Not relevant; it stays.
    Ignored,
    /// Names a path: the image's value stays, another value is a difference.
    Path,
    /// A list of folders that a runtime searches: the image's value is a difference too.
    PathList,
    /// A library or a runtime.
    Runtime,
    /// Possibly the program itself.
    Program,
}

impl VariableKind {
    /// Whether the image's value is restored if another one is removed.
    pub(crate) fn is_restored(self) -> bool {
        matches!(self, Self::Path | Self::PathList)
    }
}

/// Returns who reads the variable of this name.
pub(crate) fn reader_of(name: &str) -> VariableKind {
    let is_in = |list: &[&str]| {
        list.iter().any(
            |pattern| match (pattern.strip_suffix('*'), pattern.strip_prefix('*')) {
                (Some(begin), _) => name.starts_with(begin),
                (_, Some(end)) => name.ends_with(end),
                _ => *pattern == name,
            },
        )
    };
    if is_in(NEVER) {
        VariableKind::Ignored
    } else if is_in(OF_PLACES) {
        VariableKind::Path
    } else if is_in(OF_LISTS) {
        VariableKind::PathList
    } else if is_in(OF_RUNTIMES) {
        VariableKind::Runtime
    } else {
        VariableKind::Program
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_unique_and_not_listed_as_no_difference() {
        for (place, one) in FIELDS.iter().enumerate() {
            assert!(!NO_DIFFERENCE.contains(&one.name), "{}", one.name);
            let mut others = FIELDS[..place].iter();
            assert!(
                others.all(|it| it.id != one.id && it.name != one.name),
                "{}",
                one.id
            );
        }
    }

    #[test]
    fn a_variable_is_known_by_its_name() {
        assert_eq!(reader_of("MALLOC_ARENA_MAX"), VariableKind::Runtime);
        assert_eq!(reader_of("MY_NUM_THREADS"), VariableKind::Runtime);
        assert_eq!(reader_of("DATABASE_URL"), VariableKind::Program);
        assert_eq!(reader_of("PYTHON_VERSION"), VariableKind::Ignored);
        assert_eq!(reader_of("TERM"), VariableKind::Ignored);
        assert_eq!(reader_of("PATH"), VariableKind::Path);
        assert_eq!(reader_of("LD_LIBRARY_PATH"), VariableKind::PathList);
        assert_eq!(reader_of("LD_PRELOAD"), VariableKind::Runtime);
    }
}
