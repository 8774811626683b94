//! The table of fact names: every fact that rules read or that more than one part of Tare writes.
//!
//! A row gives a fact's meaning, unit, writers and use. Agent, drivers, parity and causes use the constants, so that
//! each name is spelled once; tests find rows that are never written or never read, and spellings elsewhere. A `*` in
//! a name stands for the variable part: a path, a program, a variable.
//! Facts of a single driver that only people read share one row, such as `ssh.*`.
//! The table is only in programs that use it, so it does not enlarge the agent.

use crate::names::{Measure, Name, Use, Writer, names};

/// Returns the name of a pattern's fact about a path, program, variable, …
///
/// [`MOUNT_FSTYPE`] about `/tmp` gives `mount./tmp.fstype`.
pub fn name_for(pattern: &str, what: &str) -> String {
    [beginning(pattern), what, ending(pattern)].concat()
}

/// Returns the part of a pattern before its `*`.
pub const fn beginning(pattern: &str) -> &str {
    pattern.split_at(star(pattern)).0
}

/// Returns the part of a pattern after its `*`.
pub const fn ending(pattern: &str) -> &str {
    let at = star(pattern);
    if at == pattern.len() {
        return "";
    }
    pattern.split_at(at + 1).1
}

/// Returns the index of the `*` in a pattern, or the pattern's length without one.
const fn star(pattern: &str) -> usize {
    let mut at = 0;
    while at < pattern.len() && pattern.as_bytes()[at] != b'*' {
        at += 1;
    }
    at
}

/// Returns what the `*` of a pattern stands for in a name; `None` if the name does not match.
pub fn what<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(beginning(pattern))?
        .strip_suffix(ending(pattern))
}

/// Returns the row of a name or pattern.
pub fn row(name: &str) -> Option<&'static Name> {
    FACTS.iter().find(|row| row.name == name)
}

/// Suffix of facts that say, with the value `true`, that software emulates the machine's processor or system: the
/// emulation is measured then, and not the environment's overhead elsewhere. Any driver may state this under its own
/// name; the same name followed by [`EMULATED_DETAIL`] names the software.
pub const EMULATED: &str = ".emulated";

/// See [`EMULATED`].
pub const EMULATED_DETAIL: &str = ".detail";

names! {
    /// All facts.
    FACTS;

    // Unreadable facts.
    by [Agent];
    /// Why the fact of that name could not be read, in the system's words.
    UNREADABLE = "unreadable.*", Text, Read;
    /// Why the limits of a controller could not be read.
    UNREADABLE_CGROUP = "unreadable.cgroup.*", Text, Read;
    /// Why nothing is known about a program; begins with `not installed` if it is missing.
    UNREADABLE_TOOL = "unreadable.tool.*", Text, Read;

    // The agent.
    by [Agent Run];
    /// Build of the agent.
    AGENT_BUILD = "agent.build", Text, Kept;
    by [Driver];
    /// How the agent was delivered.
    AGENT_DELIVERY = "agent.delivery", Text, Kept;
    by [Run];
    /// Bytes by which environment and heap of its workers were shifted in this launch.
    AGENT_PAD = "agent.pad_bytes", Bytes, Kept;
    by [Driver Run];
    /// Hash of the agent's file.
    AGENT_SHA256 = "agent.sha256", Digest, Given;
    by [Driver];
    /// Version that the agent prints.
    AGENT_VERSION = "agent.version", Text, Kept;
    by [Agent];
    /// Cost of reading the clock.
    TIMER_COST = "timer.cost_ns", Nanoseconds, Read;
    /// The smallest step of the clock.
    TIMER_RESOLUTION = "timer.resolution_ns", Nanoseconds, Kept;

    // The system.
    /// Operating system that the agent was built for.
    OS = "os", Text, Read;
    /// Architecture that the agent was built for.
    MACHINE = "machine", Text, Read;
    /// The distribution, as `/etc/os-release` names it.
    OS_NAME = "os.name", Text, Read;
    /// Kernel release.
    KERNEL_RELEASE = "kernel.release", Text, Is;
    /// Kernel build: number, options, date.
    KERNEL_VERSION = "kernel.version", Text, Kept;
    /// Kernel command line.
    KERNEL_CMDLINE = "kernel.cmdline", Text, Kept;
    /// Boot id of the kernel, the same in every container on it.
    KERNEL_BOOT_ID = "kernel.boot_id", Text, Is;
    /// Host name.
    KERNEL_HOSTNAME = "kernel.hostname", Text, Kept;
    /// Where core dumps go.
    KERNEL_CORE_PATTERN = "kernel.core_pattern", Text, Kept;
    /// Whether io_uring is disabled; since Linux 6.6.
    KERNEL_IO_URING_DISABLED = "kernel.io_uring_disabled", Count, Kept;
    /// Security module profile that the agent runs under.
    LSM_LABEL = "lsm.label", Text, Read;
    /// The security modules of the kernel.
    LSM_LIST = "lsm.list", List, Kept;
    /// Whether another system emulates Windows.
    WINE_EMULATED = "wine.emulated", Flag, Kept;
    /// The emulating software.
    WINE_EMULATED_DETAIL = "wine.emulated.detail", Text, Kept;
    /// Size of all environment variables of the agent's process.
    ENVIRONMENT_BYTES = "environment.bytes", Bytes, Read;

    // The processor.
    /// Processor model.
    CPU_MODEL = "cpu.model", Text, Is;
    /// Processor features.
    CPU_FLAGS = "cpu.flags", List, Read;
    /// Microcode revision.
    CPU_MICROCODE = "cpu.microcode", Text, Kept;
    /// Processor vulnerabilities known to the kernel.
    CPU_BUGS = "cpu.bugs", List, Kept;
    /// Number of processors that the standard library would use.
    CPU_USABLE = "cpu.usable", Count, Kept;
    /// Number of online processors.
    CPU_COUNT = "cpu.count", Count, Read;
    /// The processors that the scheduler may use, such as `0-3,6`.
    CPU_AFFINITY = "cpu.affinity", List, Given;
    /// Number of cores that those processors are on.
    CPU_CORES = "cpu.cores", Count, Read;
    /// Cores of the faster kind, if there are two kinds.
    CPU_PERFORMANCE_CORES = "cpu.performance_cores", List, Read;
    /// Cores of the slower kind, if there are two kinds.
    CPU_EFFICIENCY_CORES = "cpu.efficiency_cores", List, Read;
    /// CPU frequency driver.
    CPU_FREQUENCY_DRIVER = "cpu.frequency_driver", Text, Kept;
    /// The highest frequency, in kHz.
    CPU_MAX_KHZ = "cpu.max_khz", Count, Kept;
    /// CPU frequency governor.
    CPU_GOVERNOR = "cpu.governor", Text, Given;
    /// Whether cores run two threads each (SMT).
    CPU_SMT = "cpu.smt", Text, Kept;
    /// Kernel mitigation of a processor vulnerability.
    MITIGATION = "mitigation.*", Text, Is;
    /// Kernel mitigation of speculative store bypass.
    MITIGATION_STORE_BYPASS = "mitigation.spec_store_bypass", Text, Read;
    /// Clock source that the kernel uses.
    CLOCKSOURCE_CURRENT = "clocksource.current", Text, Given;
    /// Clock sources that the kernel could use.
    CLOCKSOURCE_AVAILABLE = "clocksource.available", List, Kept;
    /// Hypervisor name that the processor reports; `none` without one.
    HYPERVISOR_VENDOR = "hypervisor.vendor", Text, Read;
    /// Hypervisor type that Xen reports.
    HYPERVISOR_TYPE = "hypervisor.type", Text, Kept;
    /// Online NUMA nodes.
    NUMA_NODES = "numa.nodes", List, Read;
    /// Kernel handlers (binfmt_misc) for programs of other architectures.
    BINFMT_HANDLERS = "binfmt.handlers", List, Read;

    // Memory.
    /// Memory of the machine.
    MEMORY_TOTAL = "memory.total_bytes", Bytes, Given;
    /// Available memory.
    MEMORY_AVAILABLE = "memory.available_bytes", Bytes, Kept;
    /// Swap of the machine.
    MEMORY_SWAP = "memory.swap_bytes", Bytes, Kept;
    /// When transparent huge pages are used.
    THP_ENABLED = "thp.enabled", Text, Given;
    /// When memory is compacted for transparent huge pages.
    THP_DEFRAG = "thp.defrag", Text, Kept;
    /// When shared memory uses transparent huge pages.
    THP_SHMEM = "thp.shmem_enabled", Text, Kept;
    /// Whether equal pages are merged (KSM).
    KSM_RUN = "ksm.run", Count, Kept;
    /// Whether swapped pages are compressed in memory first.
    ZSWAP_ENABLED = "zswap.enabled", Text, Kept;
    /// Size of `/dev/shm`.
    SHM_SIZE = "shm.size_bytes", Bytes, Is;

    // Status of the process, `/proc/self/status`; for a user's command, that of the command.
    by [Agent Why];
    /// A line of the status.
    STATUS = "status.*", Text, Read;
    by [Agent];
    /// Seccomp mode: 0 off, 1 strict, 2 filter.
    STATUS_SECCOMP = "status.Seccomp", Count, Is;
    /// Number of seccomp filters.
    STATUS_SECCOMP_FILTERS = "status.Seccomp_filters", Count, Is;
    /// State of speculative store bypass.
    STATUS_STORE_BYPASS = "status.Speculation_Store_Bypass", Text, Is;
    /// State of indirect branch speculation.
    STATUS_INDIRECT_BRANCH = "status.SpeculationIndirectBranch", Text, Is;
    /// Whether no_new_privs is set.
    STATUS_NO_NEW_PRIVS = "status.NoNewPrivs", Count, Kept;
    /// Inheritable capabilities.
    STATUS_CAP_INH = "status.CapInh", Text, Kept;
    /// Permitted capabilities.
    STATUS_CAP_PRM = "status.CapPrm", Text, Kept;
    /// Effective capabilities.
    STATUS_CAP_EFF = "status.CapEff", Text, Kept;
    /// Capability bounding set.
    STATUS_CAP_BND = "status.CapBnd", Text, Kept;
    /// Ambient capabilities.
    STATUS_CAP_AMB = "status.CapAmb", Text, Kept;
    /// Processors that it may use.
    STATUS_CPUS_ALLOWED = "status.Cpus_allowed_list", List, Read;
    /// NUMA nodes that it may use.
    STATUS_MEMS_ALLOWED = "status.Mems_allowed_list", List, Read;
    /// Whether it may use transparent huge pages.
    STATUS_THP_ENABLED = "status.THP_enabled", Count, Given;
    /// Its user ids.
    STATUS_UID = "status.Uid", List, Kept;
    /// Its group ids.
    STATUS_GID = "status.Gid", List, Kept;
    /// Effective user id.
    UID = "uid", Count, Kept;
    /// Process id of the agent.
    PID = "pid", Count, Kept;
    /// Identifier of a namespace of its process.
    NS = "ns.*", Text, Kept;
    /// Its network namespace.
    NS_NET = "ns.net", Text, Read;

    // Limits.
    /// Soft and hard limit of a resource.
    RLIMIT = "rlimit.*", Text, Kept;
    /// Limit of open files.
    RLIMIT_NOFILE = "rlimit.nofile", Text, Is;
    /// Limit of the stack.
    RLIMIT_STACK = "rlimit.stack", Text, Is;
    /// Limit of locked memory.
    RLIMIT_MEMLOCK = "rlimit.memlock", Text, Is;
    /// Available cgroup versions.
    CGROUP_LAYOUT = "cgroup.layout", Text, Read;
    /// Its path in a cgroup hierarchy.
    CGROUP_PATH = "cgroup.path.*", Text, Kept;
    /// CPU quota per period; v1.
    CGROUP_CFS_QUOTA = "cgroup.cpu.cfs_quota_us", Count, Given;
    /// CPU quota period; v1.
    CGROUP_CFS_PERIOD = "cgroup.cpu.cfs_period_us", Count, Given;
    /// CPU shares; v1.
    CGROUP_CPU_SHARES = "cgroup.cpu.shares", Count, Kept;
    /// CPU quota and period; v2.
    CGROUP_CPU_MAX = "cgroup.cpu.max", Text, Given;
    /// CPU weight; v2.
    CGROUP_CPU_WEIGHT = "cgroup.cpu.weight", Count, Kept;
    /// Processors of its cpuset; v1.
    CGROUP_CPUSET_CPUS = "cgroup.cpuset.cpus", List, Kept;
    /// NUMA nodes of its cpuset; v1.
    CGROUP_CPUSET_MEMS = "cgroup.cpuset.mems", List, Kept;
    /// Processors of its cpuset; v2.
    CGROUP_CPUSET_CPUS_EFFECTIVE = "cgroup.cpuset.cpus.effective", List, Kept;
    /// NUMA nodes of its cpuset; v2.
    CGROUP_CPUSET_MEMS_EFFECTIVE = "cgroup.cpuset.mems.effective", List, Kept;
    /// Memory limit; v1.
    CGROUP_MEMORY_LIMIT = "cgroup.memory.limit_in_bytes", Bytes, Given;
    /// Limit of memory and swap together; v1.
    CGROUP_MEMSW_LIMIT = "cgroup.memory.memsw.limit_in_bytes", Bytes, Read;
    /// Memory limit; v2.
    CGROUP_MEMORY_MAX = "cgroup.memory.max", Bytes, Given;
    /// Threshold above which memory is reclaimed; v2.
    CGROUP_MEMORY_HIGH = "cgroup.memory.high", Bytes, Kept;
    /// Swap limit; v2.
    CGROUP_SWAP_MAX = "cgroup.memory.swap.max", Bytes, Read;
    /// Limit of processes and threads.
    CGROUP_PIDS_MAX = "cgroup.pids.max", Count, Given;
    /// Read limit in bytes per second, by device; v1.
    CGROUP_READ_BPS = "cgroup.blkio.throttle.read_bps_device", Text, Read;
    /// Write limit in bytes per second, by device; v1.
    CGROUP_WRITE_BPS = "cgroup.blkio.throttle.write_bps_device", Text, Read;
    /// Limit of reads per second, by device; v1.
    CGROUP_READ_IOPS = "cgroup.blkio.throttle.read_iops_device", Text, Read;
    /// Limit of writes per second, by device; v1.
    CGROUP_WRITE_IOPS = "cgroup.blkio.throttle.write_iops_device", Text, Read;
    /// One of these four limits.
    CGROUP_BLKIO = "cgroup.blkio.throttle.*", Text, Kept;
    /// I/O limits of its devices; v2.
    CGROUP_IO_MAX = "cgroup.io.max", Text, Read;
    /// I/O weight; v2.
    CGROUP_IO_WEIGHT = "cgroup.io.weight", Count, Kept;

    // Files. A `*` is the path in question.
    /// Number of mounts.
    MOUNTS_COUNT = "mounts.count", Count, Kept;
    /// A property of the mount under a path.
    MOUNT = "mount.*", Text, Read;
    /// File system type.
    MOUNT_FSTYPE = "mount.*.fstype", Text, Is;
    /// Mount source.
    MOUNT_SOURCE = "mount.*.source", Text, Kept;
    /// Mount options.
    MOUNT_OPTIONS = "mount.*.options", Text, Read;
    /// File system options.
    MOUNT_SUPER_OPTIONS = "mount.*.super_options", Text, Read;
    /// Device numbers.
    MOUNT_DEVICE = "mount.*.device", Text, Read;
    /// Mount point.
    MOUNT_POINT = "mount.*.point", Text, Read;
    /// Root of the mount in its file system.
    MOUNT_ROOT = "mount.*.root", Text, Kept;
    /// Free space.
    MOUNT_FREE = "mount.*.free_bytes", Bytes, Kept;
    /// Name of the disk.
    BLOCK_NAME = "mount.*.block.name", Text, Kept;
    /// Whether the disk rotates.
    BLOCK_ROTATIONAL = "mount.*.block.rotational", Count, Kept;
    /// I/O scheduler.
    BLOCK_SCHEDULER = "mount.*.block.scheduler", Text, Read;
    /// Whether it caches writes.
    BLOCK_WRITE_CACHE = "mount.*.block.write_cache", Text, Read;
    /// Whether single writes can bypass that cache (FUA).
    BLOCK_FUA = "mount.*.block.fua", Count, Kept;
    /// Number of requests that its queue holds.
    BLOCK_REQUESTS = "mount.*.block.nr_requests", Count, Kept;
    /// Read-ahead, in KiB.
    BLOCK_READ_AHEAD = "mount.*.block.read_ahead_kb", Count, Kept;
    /// Disk model.
    BLOCK_MODEL = "mount.*.block.model", Text, Read;
    /// Driver that moves its bytes.
    BLOCK_DRIVER = "mount.*.block.driver", Text, Read;

    // The network.
    /// Device of the default route; `none` without one.
    NET_DEFAULT_DEVICE = "net.default.device", Text, Kept;
    /// MTU of that device.
    NET_DEFAULT_MTU = "net.default.mtu", Bytes, Read;
    /// Driver of that device.
    NET_DEFAULT_DRIVER = "net.default.driver", Text, Read;
    /// The loopback device.
    NET_LOOPBACK_DEVICE = "net.loopback.device", Text, Kept;
    /// MTU of the loopback device.
    NET_LOOPBACK_MTU = "net.loopback.mtu", Bytes, Kept;
    /// Devices whose queue delays packets, with the kind of queue; `none` if there are none.
    NET_HELD_BACK = "net.held_back", List, Read;
    /// A kernel setting.
    SYSCTL = "sysctl.*", Text, Read;
    /// A kernel setting of the network.
    SYSCTL_NET = "sysctl.net.*", Text, Read;
    /// Number of tracked connections.
    SYSCTL_CONNTRACK_COUNT = "sysctl.net.netfilter.nf_conntrack_count", Count, Read;
    /// Maximum number of tracked connections.
    SYSCTL_CONNTRACK_MAX = "sysctl.net.netfilter.nf_conntrack_max", Count, Read;
    /// Name servers.
    RESOLVER_NAMESERVERS = "resolver.nameservers", List, Read;
    /// Search domains.
    RESOLVER_SEARCH = "resolver.search", List, Read;
    /// Resolver options.
    RESOLVER_OPTIONS = "resolver.options", List, Read;

    // Inherited by a process.
    by [Agent Why];
    /// A variable that changes a program's parallelism or code path.
    VARIABLE = "variable.*", Text, Read;
    by [Agent];
    /// Number of threads that OpenMP starts.
    VARIABLE_OMP_THREADS = "variable.OMP_NUM_THREADS", Count, Read;
    /// Options for every JVM.
    VARIABLE_JAVA = "variable.JAVA_TOOL_OPTIONS", Text, Read;
    /// C library whose dynamic loader is present.
    LIBC = "libc", Text, Read;
    /// Program of process 1.
    INIT_NAME = "init.name", Text, Read;
    /// Whether process 1 handles SIGTERM.
    INIT_SIGTERM = "init.handles_sigterm", Flag, Read;
    /// What stdout is connected to.
    FD_1 = "fd.1", Text, Read;
    /// Result of a syscall with arguments that have no effect.
    ERRNO = "errno.*", Text, Read;

    // Programs. A `*` is the program, or the file's name.
    /// A property of a tool.
    TOOL = "tool.*", Text, Read;
    /// Its file, links resolved.
    TOOL_PATH = "tool.*.path", Text, Is;
    /// Hash of its file.
    TOOL_SHA256 = "tool.*.sha256", Digest, Given;
    /// First line of its version output.
    TOOL_VERSION = "tool.*.version", Text, Given;
    /// Its loader or interpreter.
    TOOL_INTERPRETER = "tool.*.interpreter", Text, Given;
    /// Hash of its loader or interpreter.
    TOOL_INTERPRETER_SHA256 = "tool.*.interpreter_sha256", Digest, Given;
    by [Driver Why];
    /// Hash of a program that was packed or that ran.
    PROGRAM_SHA256 = "program.*.sha256", Digest, Read;
    by [Why];
    /// Hash of a library that was loaded.
    LIBRARY_SHA256 = "library.*.sha256", Digest, Read;

    // A user's command, as observed while it ran.
    /// Its program.
    COMMAND_PROGRAM = "command.program", Text, Read;
    /// Its working directory.
    COMMAND_DIRECTORY = "command.directory", Text, Read;
    /// What its stdout is connected to.
    COMMAND_STDOUT = "command.stdout", Text, Read;
    /// Bytes that it prints.
    COMMAND_STDOUT_BYTES = "command.stdout_bytes", Bytes, Read;
    /// Lines that it prints.
    COMMAND_STDOUT_LINES = "command.stdout_lines", Count, Read;
    /// Its wall time.
    COMMAND_WALL = "command.wall_ns", Nanoseconds, Read;
    /// CPU time of the engine's port proxies meanwhile.
    COMMAND_PROXY = "command.engine_proxy_ns", Nanoseconds, Read;
    /// Files that it opened, one per line.
    COMMAND_OPENED = "command.opened", List, Read;
    /// Files that it mapped, one per line.
    COMMAND_MAPPED = "command.mapped", List, Kept;
    /// Maximum number of threads at once.
    COMMAND_THREADS = "command.threads", Count, Read;
    /// Maximum number of processes at once.
    COMMAND_PROCESSES = "command.processes", Count, Read;
    /// Shared memory that it used.
    COMMAND_SHARED_MEMORY = "command.shared_memory_bytes", Bytes, Read;
    /// C library that it loaded.
    COMMAND_LIBC = "command.libc", Text, Read;
    /// A property of the mount under one of its paths, like [`MOUNT`].
    COMMAND_MOUNT = "command.mount.*", Text, Read;

    // The machine that Tare runs on.
    by [Run];
    /// Its operating system.
    HOST_SYSTEM = "host.system", Text, Kept;
    /// Its architecture.
    HOST_MACHINE = "host.machine", Text, Kept;
    by [Driver Run];
    /// Number of its processors; for an arm, the processors that it was given.
    HOST_CPUS = "host.cpus", Text, Kept;
    by [Driver];
    /// A variable given to an arm.
    HOST_ENV = "host.env.*", Text, Kept;
    by [Run];
    /// Nodes of an arm that has several, and where they meet.
    CLUSTER = "cluster.*", Text, Kept;

    // Engines.
    by [Driver];
    /// Endpoint that it listens on.
    ENGINE_ENDPOINT = "engine.endpoint", Text, Read;
    /// Its version.
    ENGINE_VERSION = "engine.version", Text, Kept;
    /// API version.
    ENGINE_API = "engine.api", Text, Kept;
    /// Version of one of its components.
    ENGINE_PART_VERSION = "engine.*.version", Text, Kept;
    /// Storage driver for images.
    ENGINE_STORAGE_DRIVER = "engine.storage_driver", Text, Read;
    /// File system of the storage.
    ENGINE_STORAGE_FILESYSTEM = "engine.storage_filesystem", Text, Read;
    /// Folder of the storage.
    ENGINE_STORAGE_FOLDER = "engine.storage_folder", Text, Kept;
    /// Program that mounts images, if it is not the kernel.
    ENGINE_STORAGE_PROGRAM = "engine.storage_program", Text, Read;
    /// cgroup driver.
    ENGINE_CGROUP_DRIVER = "engine.cgroup_driver", Text, Kept;
    /// cgroup version.
    ENGINE_CGROUP_VERSION = "engine.cgroup_version", Text, Kept;
    /// cgroup controllers that this user may set limits with.
    ENGINE_CGROUP_CONTROLLERS = "engine.cgroup_controllers", List, Kept;
    /// Log driver for the output of containers.
    ENGINE_LOG_DRIVER = "engine.log_driver", Text, Read;
    /// The runtime that starts containers.
    ENGINE_RUNTIME = "engine.runtime", Text, Read;
    /// Why this runtime was chosen.
    ENGINE_RUNTIME_CHOSEN = "engine.runtime.chosen", Text, Kept;
    /// Available runtimes.
    ENGINE_RUNTIMES = "engine.runtimes", List, Read;
    /// Security options.
    ENGINE_SECURITY = "engine.security", List, Read;
    /// Whether it filters syscalls (seccomp).
    ENGINE_SECCOMP = "engine.seccomp", Flag, Kept;
    /// The seccomp profile that it uses.
    ENGINE_SECCOMP_PROFILE = "engine.seccomp_profile", Text, Kept;
    /// Kernel release of its machine.
    ENGINE_KERNEL = "engine.kernel", Text, Read;
    /// The distribution of its machine.
    ENGINE_SYSTEM = "engine.system", Text, Read;
    /// Operating system of its machine.
    ENGINE_OS_TYPE = "engine.os_type", Text, Kept;
    /// The architecture of its machine.
    ENGINE_ARCHITECTURE = "engine.architecture", Text, Read;
    /// Number of processors of its machine.
    ENGINE_CPUS = "engine.cpus", Count, Kept;
    /// Memory of its machine.
    ENGINE_MEMORY = "engine.memory_bytes", Bytes, Kept;
    /// Its warnings.
    ENGINE_WARNINGS = "engine.warnings", Text, Kept;
    /// Capability bounding set of its process.
    ENGINE_CAP_BND = "engine.CapBnd", Text, Kept;
    /// Capabilities that it lacks.
    ENGINE_CAPABILITIES_MISSING = "engine.capabilities_missing", List, Read;
    /// Program that creates its networks.
    ENGINE_NETWORKS = "engine.networks", Text, Kept;
    /// Network mode of a container.
    ENGINE_NETWORK_MODE = "engine.network_mode", Text, Kept;
    /// Whether it runs on another machine.
    ENGINE_REMOTE = "engine.remote", Flag, Read;
    /// Whether it runs rootless.
    ENGINE_ROOTLESS = "engine.rootless", Flag, Read;
    /// Program that creates the network of rootless containers.
    ENGINE_ROOTLESS_NETWORK = "engine.rootless_network", Text, Read;
    /// The user that it runs for.
    ENGINE_USER = "engine.user", Text, Kept;
    /// Number of user ids that this user has.
    ENGINE_USER_IDS = "engine.user_ids", Count, Kept;
    /// Name of the image.
    IMAGE_NAME = "image.name", Text, Kept;
    /// Image id.
    IMAGE_ID = "image.id", Digest, Kept;
    /// Registry digests of the image.
    IMAGE_DIGESTS = "image.digests", List, Kept;
    /// Image size.
    IMAGE_SIZE = "image.size_bytes", Bytes, Read;
    /// Image architecture.
    IMAGE_ARCHITECTURE = "image.architecture", Text, Read;
    /// Whether the image architecture differs from the machine's.
    IMAGE_EMULATED = "image.emulated", Flag, Read;
    /// Hash of the packed content.
    IMAGE_CONTENT_SHA256 = "image.content_sha256", Digest, Kept;
    /// Number of packed files.
    IMAGE_PACKED_FILES = "image.packed_files", Count, Kept;
    /// Size of the packed files.
    IMAGE_PACKED_BYTES = "image.packed_bytes", Bytes, Kept;
    /// Hash of the seccomp profile.
    SECCOMP_PROFILE_SHA256 = "seccomp.profile_sha256", Digest, Kept;
    /// State of AppArmor.
    SECURITY_APPARMOR = "security.apparmor", Text, Kept;
    /// A setting requested from an engine, under the engine's name for it.
    ASKED = "asked.*", Text, Kept;
    /// Requested bind mounts.
    ASKED_BINDS = "asked.Binds", List, Read;
    /// Requested I/O limits of devices.
    ASKED_BLKIO = "asked.Blkio*", Text, Kept;
    /// Requested context of the command line.
    ASKED_CONTEXT = "asked.Context", Text, Kept;
    /// Requested log destination.
    ASKED_LOG = "asked.LogConfig", Text, Kept;
    /// Requested network mode.
    ASKED_NETWORK = "asked.NetworkMode", Text, Read;
    /// Requested platform.
    ASKED_PLATFORM = "asked.Platform", Text, Kept;
    /// Requested published ports.
    ASKED_PORTS = "asked.PortBindings", Text, Read;
    /// Requested runtime.
    ASKED_RUNTIME = "asked.Runtime", Text, Read;
    /// Requested size of `/dev/shm`.
    ASKED_SHM = "asked.ShmSize", Bytes, Kept;
    /// Whether a terminal was requested.
    ASKED_TTY = "asked.Tty", Flag, Read;
    /// Requested user.
    ASKED_USER = "asked.User", Text, Kept;

    // Drivers.
    /// Actions and requested settings of the built-in container.
    CONTAINER = "container.*", Text, Kept;
    /// Identity and requested settings of an OCI runtime.
    OCI = "oci.*", Text, Kept;
    /// The OCI runtime.
    OCI_RUNTIME = "oci.runtime", Text, Read;
    /// How the remote end was reached.
    SSH = "ssh.*", Text, Kept;
    /// Components of a virtual machine.
    VM = "vm.*", Text, Kept;
    /// Processor that the guest sees.
    VM_CPU = "vm.cpu", Text, Kept;
    /// Cache mode for writes to its disk.
    VM_CACHE = "vm.cache", Text, Read;
    /// Kind of its disk.
    VM_DISK = "vm.disk", Text, Read;
    /// Kind of its network card.
    VM_NIC = "vm.nic", Text, Read;
    /// Whether its processor is emulated.
    VM_EMULATED = "vm.emulated", Flag, Kept;
    /// The emulating software.
    VM_EMULATED_DETAIL = "vm.emulated.detail", Text, Kept;
    /// Why it cannot use KVM.
    VM_NO_KVM = "vm.no_kvm", Text, Read;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fact_name_roundtrips_through_its_pattern() {
        for (pattern, what_it_is, name) in [
            (MOUNT_FSTYPE, "/tmp", "mount./tmp.fstype"),
            (MITIGATION, "mds", "mitigation.mds"),
            (TOOL_SHA256, "a*b", "tool.a*b.sha256"),
        ] {
            assert_eq!(name_for(pattern, what_it_is), name);
            assert_eq!(what(pattern, name), Some(what_it_is));
        }
        assert_eq!(what(MOUNT_FSTYPE, "mount./tmp.device"), None);
        assert_eq!((beginning(OS_NAME), ending(OS_NAME)), ("os.name", ""));
    }

    #[test]
    fn fact_rows_are_unique_and_names_match_units() {
        for (index, row) in FACTS.iter().enumerate() {
            assert!(FACTS[..index].iter().all(|other| other.name != row.name));
            for (ending, measure) in [
                ("_bytes", Measure::Bytes),
                ("_ns", Measure::Nanoseconds),
                ("sha256", Measure::Digest),
            ] {
                assert!(
                    !row.name.ends_with(ending) || row.measure == measure,
                    "{}",
                    row.name
                );
            }
            assert!(row.name.matches('*').count() <= 1, "{}", row.name);
            assert!(row.meaning().ends_with('.'), "{}", row.name);
            assert!(!row.writers.is_empty(), "{}", row.name);
        }
    }
}
