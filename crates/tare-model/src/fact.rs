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
    /// Why the fact of that name could not be read, in the system's words.
    UNREADABLE = "unreadable.*", Text, by [Agent], Read;
    /// Why the limits of a controller could not be read.
    UNREADABLE_CGROUP = "unreadable.cgroup.*", Text, by [Agent], Read;
    /// Why nothing is known about a program; begins with `not installed` if it is missing.
    UNREADABLE_TOOL = "unreadable.tool.*", Text, by [Agent], Read;

    // The agent.
    /// Build of the agent.
    AGENT_BUILD = "agent.build", Text, by [Agent Run], Kept;
    /// How the agent was delivered.
    AGENT_DELIVERY = "agent.delivery", Text, by [Driver], Kept;
    /// Bytes by which environment and heap of its workers were shifted in this launch.
    AGENT_PAD = "agent.pad_bytes", Bytes, by [Run], Kept;
    /// Hash of the agent's file.
    AGENT_SHA256 = "agent.sha256", Digest, by [Driver Run], Given;
    /// Version that the agent prints.
    AGENT_VERSION = "agent.version", Text, by [Driver], Kept;
    /// Cost of reading the clock.
    TIMER_COST = "timer.cost_ns", Nanoseconds, by [Agent], Read;
    /// The smallest step of the clock.
    TIMER_RESOLUTION = "timer.resolution_ns", Nanoseconds, by [Agent], Kept;

    // The system.
    /// Operating system that the agent was built for.
    OS = "os", Text, by [Agent], Read;
    /// Architecture that the agent was built for.
    MACHINE = "machine", Text, by [Agent], Read;
    /// The distribution, as `/etc/os-release` names it.
    OS_NAME = "os.name", Text, by [Agent], Read;
    /// Kernel release.
    KERNEL_RELEASE = "kernel.release", Text, by [Agent], Is;
    /// Kernel build: number, options, date.
    KERNEL_VERSION = "kernel.version", Text, by [Agent], Kept;
    /// Kernel command line.
    KERNEL_CMDLINE = "kernel.cmdline", Text, by [Agent], Kept;
    /// Boot id of the kernel, the same in every container on it.
    KERNEL_BOOT_ID = "kernel.boot_id", Text, by [Agent], Is;
    /// Host name.
    KERNEL_HOSTNAME = "kernel.hostname", Text, by [Agent], Kept;
    /// Where core dumps go.
    KERNEL_CORE_PATTERN = "kernel.core_pattern", Text, by [Agent], Kept;
    /// Whether io_uring is disabled; since Linux 6.6.
    KERNEL_IO_URING_DISABLED = "kernel.io_uring_disabled", Count, by [Agent], Kept;
    /// Security module profile that the agent runs under.
    LSM_LABEL = "lsm.label", Text, by [Agent], Read;
    /// The security modules of the kernel.
    LSM_LIST = "lsm.list", List, by [Agent], Kept;
    /// Whether another system emulates Windows.
    WINE_EMULATED = "wine.emulated", Flag, by [Agent], Kept;
    /// The emulating software.
    WINE_EMULATED_DETAIL = "wine.emulated.detail", Text, by [Agent], Kept;
    /// Size of all environment variables of the agent's process.
    ENVIRONMENT_BYTES = "environment.bytes", Bytes, by [Agent], Read;

    // The processor.
    /// Processor model.
    CPU_MODEL = "cpu.model", Text, by [Agent], Is;
    /// Processor features.
    CPU_FLAGS = "cpu.flags", List, by [Agent], Read;
    /// Microcode revision.
    CPU_MICROCODE = "cpu.microcode", Text, by [Agent], Kept;
    /// Processor vulnerabilities known to the kernel.
    CPU_BUGS = "cpu.bugs", List, by [Agent], Kept;
    /// Number of processors that the standard library would use.
    CPU_USABLE = "cpu.usable", Count, by [Agent], Kept;
    /// Number of online processors.
    CPU_COUNT = "cpu.count", Count, by [Agent], Read;
    /// The processors that the scheduler may use, such as `0-3,6`.
    CPU_AFFINITY = "cpu.affinity", List, by [Agent], Given;
    /// Number of cores that those processors are on.
    CPU_CORES = "cpu.cores", Count, by [Agent], Read;
    /// Cores of the faster kind, if there are two kinds.
    CPU_PERFORMANCE_CORES = "cpu.performance_cores", List, by [Agent], Read;
    /// Cores of the slower kind, if there are two kinds.
    CPU_EFFICIENCY_CORES = "cpu.efficiency_cores", List, by [Agent], Read;
    /// CPU frequency driver.
    CPU_FREQUENCY_DRIVER = "cpu.frequency_driver", Text, by [Agent], Kept;
    /// The highest frequency, in kHz.
    CPU_MAX_KHZ = "cpu.max_khz", Count, by [Agent], Kept;
    /// CPU frequency governor.
    CPU_GOVERNOR = "cpu.governor", Text, by [Agent], Given;
    /// Whether cores run two threads each (SMT).
    CPU_SMT = "cpu.smt", Text, by [Agent], Kept;
    /// Kernel mitigation of a processor vulnerability.
    MITIGATION = "mitigation.*", Text, by [Agent], Is;
    /// Kernel mitigation of speculative store bypass.
    MITIGATION_STORE_BYPASS = "mitigation.spec_store_bypass", Text, by [Agent], Read;
    /// Clock source that the kernel uses.
    CLOCKSOURCE_CURRENT = "clocksource.current", Text, by [Agent], Given;
    /// Clock sources that the kernel could use.
    CLOCKSOURCE_AVAILABLE = "clocksource.available", List, by [Agent], Kept;
    /// Hypervisor name that the processor reports; `none` without one.
    HYPERVISOR_VENDOR = "hypervisor.vendor", Text, by [Agent], Read;
    /// Hypervisor type that Xen reports.
    HYPERVISOR_TYPE = "hypervisor.type", Text, by [Agent], Kept;
    /// Online NUMA nodes.
    NUMA_NODES = "numa.nodes", List, by [Agent], Read;
    /// Kernel handlers (binfmt_misc) for programs of other architectures.
    BINFMT_HANDLERS = "binfmt.handlers", List, by [Agent], Read;

    // Memory.
    /// Memory of the machine.
    MEMORY_TOTAL = "memory.total_bytes", Bytes, by [Agent], Given;
    /// Available memory.
    MEMORY_AVAILABLE = "memory.available_bytes", Bytes, by [Agent], Kept;
    /// Swap of the machine.
    MEMORY_SWAP = "memory.swap_bytes", Bytes, by [Agent], Kept;
    /// When transparent huge pages are used.
    THP_ENABLED = "thp.enabled", Text, by [Agent], Given;
    /// When memory is compacted for transparent huge pages.
    THP_DEFRAG = "thp.defrag", Text, by [Agent], Kept;
    /// When shared memory uses transparent huge pages.
    THP_SHMEM = "thp.shmem_enabled", Text, by [Agent], Kept;
    /// Whether equal pages are merged (KSM).
    KSM_RUN = "ksm.run", Count, by [Agent], Kept;
    /// Whether swapped pages are compressed in memory first.
    ZSWAP_ENABLED = "zswap.enabled", Text, by [Agent], Kept;
    /// Size of `/dev/shm`.
    SHM_SIZE = "shm.size_bytes", Bytes, by [Agent], Is;

    // Status of the process, `/proc/self/status`; for a user's command, that of the command.
    /// A line of the status.
    STATUS = "status.*", Text, by [Agent Why], Read;
    /// Seccomp mode: 0 off, 1 strict, 2 filter.
    STATUS_SECCOMP = "status.Seccomp", Count, by [Agent], Is;
    /// Number of seccomp filters.
    STATUS_SECCOMP_FILTERS = "status.Seccomp_filters", Count, by [Agent], Is;
    /// State of speculative store bypass.
    STATUS_STORE_BYPASS = "status.Speculation_Store_Bypass", Text, by [Agent], Is;
    /// State of indirect branch speculation.
    STATUS_INDIRECT_BRANCH = "status.SpeculationIndirectBranch", Text, by [Agent], Is;
    /// Whether no_new_privs is set.
    STATUS_NO_NEW_PRIVS = "status.NoNewPrivs", Count, by [Agent], Kept;
    /// Inheritable capabilities.
    STATUS_CAP_INH = "status.CapInh", Text, by [Agent], Kept;
    /// Permitted capabilities.
    STATUS_CAP_PRM = "status.CapPrm", Text, by [Agent], Kept;
    /// Effective capabilities.
    STATUS_CAP_EFF = "status.CapEff", Text, by [Agent], Kept;
    /// Capability bounding set.
    STATUS_CAP_BND = "status.CapBnd", Text, by [Agent], Kept;
    /// Ambient capabilities.
    STATUS_CAP_AMB = "status.CapAmb", Text, by [Agent], Kept;
    /// Processors that it may use.
    STATUS_CPUS_ALLOWED = "status.Cpus_allowed_list", List, by [Agent], Read;
    /// NUMA nodes that it may use.
    STATUS_MEMS_ALLOWED = "status.Mems_allowed_list", List, by [Agent], Read;
    /// Whether it may use transparent huge pages.
    STATUS_THP_ENABLED = "status.THP_enabled", Count, by [Agent], Given;
    /// Its user ids.
    STATUS_UID = "status.Uid", List, by [Agent], Kept;
    /// Its group ids.
    STATUS_GID = "status.Gid", List, by [Agent], Kept;
    /// Effective user id.
    UID = "uid", Count, by [Agent], Kept;
    /// Process id of the agent.
    PID = "pid", Count, by [Agent], Kept;
    /// Identifier of a namespace of its process.
    NS = "ns.*", Text, by [Agent], Kept;
    /// Its network namespace.
    NS_NET = "ns.net", Text, by [Agent], Read;

    // Limits.
    /// Soft and hard limit of a resource.
    RLIMIT = "rlimit.*", Text, by [Agent], Kept;
    /// Limit of open files.
    RLIMIT_NOFILE = "rlimit.nofile", Text, by [Agent], Is;
    /// Limit of the stack.
    RLIMIT_STACK = "rlimit.stack", Text, by [Agent], Is;
    /// Limit of locked memory.
    RLIMIT_MEMLOCK = "rlimit.memlock", Text, by [Agent], Is;
    /// Available cgroup versions.
    CGROUP_LAYOUT = "cgroup.layout", Text, by [Agent], Read;
    /// Its path in a cgroup hierarchy.
    CGROUP_PATH = "cgroup.path.*", Text, by [Agent], Kept;
    /// CPU quota per period; v1.
    CGROUP_CFS_QUOTA = "cgroup.cpu.cfs_quota_us", Count, by [Agent], Given;
    /// CPU quota period; v1.
    CGROUP_CFS_PERIOD = "cgroup.cpu.cfs_period_us", Count, by [Agent], Given;
    /// CPU shares; v1.
    CGROUP_CPU_SHARES = "cgroup.cpu.shares", Count, by [Agent], Kept;
    /// CPU quota and period; v2.
    CGROUP_CPU_MAX = "cgroup.cpu.max", Text, by [Agent], Given;
    /// CPU weight; v2.
    CGROUP_CPU_WEIGHT = "cgroup.cpu.weight", Count, by [Agent], Kept;
    /// Processors of its cpuset; v1.
    CGROUP_CPUSET_CPUS = "cgroup.cpuset.cpus", List, by [Agent], Kept;
    /// NUMA nodes of its cpuset; v1.
    CGROUP_CPUSET_MEMS = "cgroup.cpuset.mems", List, by [Agent], Kept;
    /// Processors of its cpuset; v2.
    CGROUP_CPUSET_CPUS_EFFECTIVE = "cgroup.cpuset.cpus.effective", List, by [Agent], Kept;
    /// NUMA nodes of its cpuset; v2.
    CGROUP_CPUSET_MEMS_EFFECTIVE = "cgroup.cpuset.mems.effective", List, by [Agent], Kept;
    /// Memory limit; v1.
    CGROUP_MEMORY_LIMIT = "cgroup.memory.limit_in_bytes", Bytes, by [Agent], Given;
    /// Limit of memory and swap together; v1.
    CGROUP_MEMSW_LIMIT = "cgroup.memory.memsw.limit_in_bytes", Bytes, by [Agent], Read;
    /// Memory limit; v2.
    CGROUP_MEMORY_MAX = "cgroup.memory.max", Bytes, by [Agent], Given;
    /// Threshold above which memory is reclaimed; v2.
    CGROUP_MEMORY_HIGH = "cgroup.memory.high", Bytes, by [Agent], Kept;
    /// Swap limit; v2.
    CGROUP_SWAP_MAX = "cgroup.memory.swap.max", Bytes, by [Agent], Read;
    /// Limit of processes and threads.
    CGROUP_PIDS_MAX = "cgroup.pids.max", Count, by [Agent], Given;
    /// Read limit in bytes per second, by device; v1.
    CGROUP_READ_BPS = "cgroup.blkio.throttle.read_bps_device", Text, by [Agent], Read;
    /// Write limit in bytes per second, by device; v1.
    CGROUP_WRITE_BPS = "cgroup.blkio.throttle.write_bps_device", Text, by [Agent], Read;
    /// Limit of reads per second, by device; v1.
    CGROUP_READ_IOPS = "cgroup.blkio.throttle.read_iops_device", Text, by [Agent], Read;
    /// Limit of writes per second, by device; v1.
    CGROUP_WRITE_IOPS = "cgroup.blkio.throttle.write_iops_device", Text, by [Agent], Read;
    /// One of these four limits.
    CGROUP_BLKIO = "cgroup.blkio.throttle.*", Text, by [Agent], Kept;
    /// I/O limits of its devices; v2.
    CGROUP_IO_MAX = "cgroup.io.max", Text, by [Agent], Read;
    /// I/O weight; v2.
    CGROUP_IO_WEIGHT = "cgroup.io.weight", Count, by [Agent], Kept;

    // Files. A `*` is the path in question.
    /// Number of mounts.
    MOUNTS_COUNT = "mounts.count", Count, by [Agent], Kept;
    /// A property of the mount under a path.
    MOUNT = "mount.*", Text, by [Agent], Read;
    /// File system type.
    MOUNT_FSTYPE = "mount.*.fstype", Text, by [Agent], Is;
    /// Mount source.
    MOUNT_SOURCE = "mount.*.source", Text, by [Agent], Kept;
    /// Mount options.
    MOUNT_OPTIONS = "mount.*.options", Text, by [Agent], Read;
    /// File system options.
    MOUNT_SUPER_OPTIONS = "mount.*.super_options", Text, by [Agent], Read;
    /// Device numbers.
    MOUNT_DEVICE = "mount.*.device", Text, by [Agent], Read;
    /// Mount point.
    MOUNT_POINT = "mount.*.point", Text, by [Agent], Read;
    /// Root of the mount in its file system.
    MOUNT_ROOT = "mount.*.root", Text, by [Agent], Kept;
    /// Free space.
    MOUNT_FREE = "mount.*.free_bytes", Bytes, by [Agent], Kept;
    /// Name of the disk.
    BLOCK_NAME = "mount.*.block.name", Text, by [Agent], Kept;
    /// Whether the disk rotates.
    BLOCK_ROTATIONAL = "mount.*.block.rotational", Count, by [Agent], Kept;
    /// I/O scheduler.
    BLOCK_SCHEDULER = "mount.*.block.scheduler", Text, by [Agent], Read;
    /// Whether it caches writes.
    BLOCK_WRITE_CACHE = "mount.*.block.write_cache", Text, by [Agent], Read;
    /// Whether single writes can bypass that cache (FUA).
    BLOCK_FUA = "mount.*.block.fua", Count, by [Agent], Kept;
    /// Number of requests that its queue holds.
    BLOCK_REQUESTS = "mount.*.block.nr_requests", Count, by [Agent], Kept;
    /// Read-ahead, in KiB.
    BLOCK_READ_AHEAD = "mount.*.block.read_ahead_kb", Count, by [Agent], Kept;
    /// Disk model.
    BLOCK_MODEL = "mount.*.block.model", Text, by [Agent], Read;
    /// Driver that moves its bytes.
    BLOCK_DRIVER = "mount.*.block.driver", Text, by [Agent], Read;

    // The network.
    /// Device of the default route; `none` without one.
    NET_DEFAULT_DEVICE = "net.default.device", Text, by [Agent], Kept;
    /// MTU of that device.
    NET_DEFAULT_MTU = "net.default.mtu", Bytes, by [Agent], Read;
    /// Driver of that device.
    NET_DEFAULT_DRIVER = "net.default.driver", Text, by [Agent], Read;
    /// The loopback device.
    NET_LOOPBACK_DEVICE = "net.loopback.device", Text, by [Agent], Kept;
    /// MTU of the loopback device.
    NET_LOOPBACK_MTU = "net.loopback.mtu", Bytes, by [Agent], Kept;
    /// Devices whose queue delays packets, with the kind of queue; `none` if there are none.
    NET_HELD_BACK = "net.held_back", List, by [Agent], Read;
    /// A kernel setting.
    SYSCTL = "sysctl.*", Text, by [Agent], Read;
    /// A kernel setting of the network.
    SYSCTL_NET = "sysctl.net.*", Text, by [Agent], Read;
    /// Number of tracked connections.
    SYSCTL_CONNTRACK_COUNT = "sysctl.net.netfilter.nf_conntrack_count", Count, by [Agent], Read;
    /// Maximum number of tracked connections.
    SYSCTL_CONNTRACK_MAX = "sysctl.net.netfilter.nf_conntrack_max", Count, by [Agent], Read;
    /// Name servers.
    RESOLVER_NAMESERVERS = "resolver.nameservers", List, by [Agent], Read;
    /// Search domains.
    RESOLVER_SEARCH = "resolver.search", List, by [Agent], Read;
    /// Resolver options.
    RESOLVER_OPTIONS = "resolver.options", List, by [Agent], Read;

    // Inherited by a process.
    /// A variable that changes a program's parallelism or code path.
    VARIABLE = "variable.*", Text, by [Agent Why], Read;
    /// Number of threads that OpenMP starts.
    VARIABLE_OMP_THREADS = "variable.OMP_NUM_THREADS", Count, by [Agent], Read;
    /// Options for every JVM.
    VARIABLE_JAVA = "variable.JAVA_TOOL_OPTIONS", Text, by [Agent], Read;
    /// C library whose dynamic loader is present.
    LIBC = "libc", Text, by [Agent], Read;
    /// Program of process 1.
    INIT_NAME = "init.name", Text, by [Agent], Read;
    /// Whether process 1 handles SIGTERM.
    INIT_SIGTERM = "init.handles_sigterm", Flag, by [Agent], Read;
    /// What stdout is connected to.
    FD_1 = "fd.1", Text, by [Agent], Read;
    /// Result of a syscall with arguments that have no effect.
    ERRNO = "errno.*", Text, by [Agent], Read;

    // Programs. A `*` is the program, or the file's name.
    /// A property of a tool.
    TOOL = "tool.*", Text, by [Agent], Read;
    /// Its file, links resolved.
    TOOL_PATH = "tool.*.path", Text, by [Agent], Is;
    /// Hash of its file.
    TOOL_SHA256 = "tool.*.sha256", Digest, by [Agent], Given;
    /// First line of its version output.
    TOOL_VERSION = "tool.*.version", Text, by [Agent], Given;
    /// Its loader or interpreter.
    TOOL_INTERPRETER = "tool.*.interpreter", Text, by [Agent], Given;
    /// Hash of its loader or interpreter.
    TOOL_INTERPRETER_SHA256 = "tool.*.interpreter_sha256", Digest, by [Agent], Given;
    /// Hash of a program that was packed or that ran.
    PROGRAM_SHA256 = "program.*.sha256", Digest, by [Driver Why], Read;
    /// Hash of a library that was loaded.
    LIBRARY_SHA256 = "library.*.sha256", Digest, by [Why], Read;

    // A user's command, as observed while it ran.
    /// Its program.
    COMMAND_PROGRAM = "command.program", Text, by [Why], Read;
    /// Its working directory.
    COMMAND_DIRECTORY = "command.directory", Text, by [Why], Read;
    /// What its stdout is connected to.
    COMMAND_STDOUT = "command.stdout", Text, by [Why], Read;
    /// Bytes that it prints.
    COMMAND_STDOUT_BYTES = "command.stdout_bytes", Bytes, by [Why], Read;
    /// Lines that it prints.
    COMMAND_STDOUT_LINES = "command.stdout_lines", Count, by [Why], Read;
    /// Its wall time.
    COMMAND_WALL = "command.wall_ns", Nanoseconds, by [Why], Read;
    /// CPU time of the engine's port proxies meanwhile.
    COMMAND_PROXY = "command.engine_proxy_ns", Nanoseconds, by [Why], Read;
    /// Files that it opened, one per line.
    COMMAND_OPENED = "command.opened", List, by [Why], Read;
    /// Files that it mapped, one per line.
    COMMAND_MAPPED = "command.mapped", List, by [Why], Kept;
    /// Maximum number of threads at once.
    COMMAND_THREADS = "command.threads", Count, by [Why], Read;
    /// Maximum number of processes at once.
    COMMAND_PROCESSES = "command.processes", Count, by [Why], Read;
    /// Shared memory that it used.
    COMMAND_SHARED_MEMORY = "command.shared_memory_bytes", Bytes, by [Why], Read;
    /// C library that it loaded.
    COMMAND_LIBC = "command.libc", Text, by [Why], Read;
    /// A property of the mount under one of its paths, like [`MOUNT`].
    COMMAND_MOUNT = "command.mount.*", Text, by [Why], Read;

    // The machine that Tare runs on.
    /// Its operating system.
    HOST_SYSTEM = "host.system", Text, by [Run], Kept;
    /// Its architecture.
    HOST_MACHINE = "host.machine", Text, by [Run], Kept;
    /// Number of its processors; for an arm, the processors that it was given.
    HOST_CPUS = "host.cpus", Text, by [Driver Run], Kept;
    /// A variable given to an arm.
    HOST_ENV = "host.env.*", Text, by [Driver], Kept;
    /// Nodes of an arm that has several, and where they meet.
    CLUSTER = "cluster.*", Text, by [Run], Kept;

    // Engines.
    /// Endpoint that it listens on.
    ENGINE_ENDPOINT = "engine.endpoint", Text, by [Driver], Read;
    /// Its version.
    ENGINE_VERSION = "engine.version", Text, by [Driver], Kept;
    /// API version.
    ENGINE_API = "engine.api", Text, by [Driver], Kept;
    /// Version of one of its components.
    ENGINE_PART_VERSION = "engine.*.version", Text, by [Driver], Kept;
    /// Storage driver for images.
    ENGINE_STORAGE_DRIVER = "engine.storage_driver", Text, by [Driver], Read;
    /// File system of the storage.
    ENGINE_STORAGE_FILESYSTEM = "engine.storage_filesystem", Text, by [Driver], Read;
    /// Folder of the storage.
    ENGINE_STORAGE_FOLDER = "engine.storage_folder", Text, by [Driver], Kept;
    /// Program that mounts images, if it is not the kernel.
    ENGINE_STORAGE_PROGRAM = "engine.storage_program", Text, by [Driver], Read;
    /// cgroup driver.
    ENGINE_CGROUP_DRIVER = "engine.cgroup_driver", Text, by [Driver], Kept;
    /// cgroup version.
    ENGINE_CGROUP_VERSION = "engine.cgroup_version", Text, by [Driver], Kept;
    /// cgroup controllers that this user may set limits with.
    ENGINE_CGROUP_CONTROLLERS = "engine.cgroup_controllers", List, by [Driver], Kept;
    /// Log driver for the output of containers.
    ENGINE_LOG_DRIVER = "engine.log_driver", Text, by [Driver], Read;
    /// The runtime that starts containers.
    ENGINE_RUNTIME = "engine.runtime", Text, by [Driver], Read;
    /// Why this runtime was chosen.
    ENGINE_RUNTIME_CHOSEN = "engine.runtime.chosen", Text, by [Driver], Kept;
    /// Available runtimes.
    ENGINE_RUNTIMES = "engine.runtimes", List, by [Driver], Read;
    /// Security options.
    ENGINE_SECURITY = "engine.security", List, by [Driver], Read;
    /// Whether it filters syscalls (seccomp).
    ENGINE_SECCOMP = "engine.seccomp", Flag, by [Driver], Kept;
    /// The seccomp profile that it uses.
    ENGINE_SECCOMP_PROFILE = "engine.seccomp_profile", Text, by [Driver], Kept;
    /// Kernel release of its machine.
    ENGINE_KERNEL = "engine.kernel", Text, by [Driver], Read;
    /// The distribution of its machine.
    ENGINE_SYSTEM = "engine.system", Text, by [Driver], Read;
    /// Operating system of its machine.
    ENGINE_OS_TYPE = "engine.os_type", Text, by [Driver], Kept;
    /// The architecture of its machine.
    ENGINE_ARCHITECTURE = "engine.architecture", Text, by [Driver], Read;
    /// Number of processors of its machine.
    ENGINE_CPUS = "engine.cpus", Count, by [Driver], Kept;
    /// Memory of its machine.
    ENGINE_MEMORY = "engine.memory_bytes", Bytes, by [Driver], Kept;
    /// Its warnings.
    ENGINE_WARNINGS = "engine.warnings", Text, by [Driver], Kept;
    /// Capability bounding set of its process.
    ENGINE_CAP_BND = "engine.CapBnd", Text, by [Driver], Kept;
    /// Capabilities that it lacks.
    ENGINE_CAPABILITIES_MISSING = "engine.capabilities_missing", List, by [Driver], Read;
    /// Program that creates its networks.
    ENGINE_NETWORKS = "engine.networks", Text, by [Driver], Kept;
    /// Network mode of a container.
    ENGINE_NETWORK_MODE = "engine.network_mode", Text, by [Driver], Kept;
    /// Whether it runs on another machine.
    ENGINE_REMOTE = "engine.remote", Flag, by [Driver], Read;
    /// Whether it runs rootless.
    ENGINE_ROOTLESS = "engine.rootless", Flag, by [Driver], Read;
    /// Program that creates the network of rootless containers.
    ENGINE_ROOTLESS_NETWORK = "engine.rootless_network", Text, by [Driver], Read;
    /// The user that it runs for.
    ENGINE_USER = "engine.user", Text, by [Driver], Kept;
    /// Number of user ids that this user has.
    ENGINE_USER_IDS = "engine.user_ids", Count, by [Driver], Kept;
    /// Name of the image.
    IMAGE_NAME = "image.name", Text, by [Driver], Kept;
    /// Image id.
    IMAGE_ID = "image.id", Digest, by [Driver], Kept;
    /// Registry digests of the image.
    IMAGE_DIGESTS = "image.digests", List, by [Driver], Kept;
    /// Image size.
    IMAGE_SIZE = "image.size_bytes", Bytes, by [Driver], Read;
    /// Image architecture.
    IMAGE_ARCHITECTURE = "image.architecture", Text, by [Driver], Read;
    /// Whether the image architecture differs from the machine's.
    IMAGE_EMULATED = "image.emulated", Flag, by [Driver], Read;
    /// Hash of the packed content.
    IMAGE_CONTENT_SHA256 = "image.content_sha256", Digest, by [Driver], Kept;
    /// Number of packed files.
    IMAGE_PACKED_FILES = "image.packed_files", Count, by [Driver], Kept;
    /// Size of the packed files.
    IMAGE_PACKED_BYTES = "image.packed_bytes", Bytes, by [Driver], Kept;
    /// Hash of the seccomp profile.
    SECCOMP_PROFILE_SHA256 = "seccomp.profile_sha256", Digest, by [Driver], Kept;
    /// State of AppArmor.
    SECURITY_APPARMOR = "security.apparmor", Text, by [Driver], Kept;
    /// A setting requested from an engine, under the engine's name for it.
    ASKED = "asked.*", Text, by [Driver], Kept;
    /// Requested bind mounts.
    ASKED_BINDS = "asked.Binds", List, by [Driver], Read;
    /// Requested I/O limits of devices.
    ASKED_BLKIO = "asked.Blkio*", Text, by [Driver], Kept;
    /// Requested context of the command line.
    ASKED_CONTEXT = "asked.Context", Text, by [Driver], Kept;
    /// Requested log destination.
    ASKED_LOG = "asked.LogConfig", Text, by [Driver], Kept;
    /// Requested network mode.
    ASKED_NETWORK = "asked.NetworkMode", Text, by [Driver], Read;
    /// Requested platform.
    ASKED_PLATFORM = "asked.Platform", Text, by [Driver], Kept;
    /// Requested published ports.
    ASKED_PORTS = "asked.PortBindings", Text, by [Driver], Read;
    /// Requested runtime.
    ASKED_RUNTIME = "asked.Runtime", Text, by [Driver], Read;
    /// Requested size of `/dev/shm`.
    ASKED_SHM = "asked.ShmSize", Bytes, by [Driver], Kept;
    /// Whether a terminal was requested.
    ASKED_TTY = "asked.Tty", Flag, by [Driver], Read;
    /// Requested user.
    ASKED_USER = "asked.User", Text, by [Driver], Kept;

    // Drivers.
    /// Actions and requested settings of the built-in container.
    CONTAINER = "container.*", Text, by [Driver], Kept;
    /// Identity and requested settings of an OCI runtime.
    OCI = "oci.*", Text, by [Driver], Kept;
    /// The OCI runtime.
    OCI_RUNTIME = "oci.runtime", Text, by [Driver], Read;
    /// How the remote end was reached.
    SSH = "ssh.*", Text, by [Driver], Kept;
    /// Components of a virtual machine.
    VM = "vm.*", Text, by [Driver], Kept;
    /// Processor that the guest sees.
    VM_CPU = "vm.cpu", Text, by [Driver], Kept;
    /// Cache mode for writes to its disk.
    VM_CACHE = "vm.cache", Text, by [Driver], Read;
    /// Kind of its disk.
    VM_DISK = "vm.disk", Text, by [Driver], Read;
    /// Kind of its network card.
    VM_NIC = "vm.nic", Text, by [Driver], Read;
    /// Whether its processor is emulated.
    VM_EMULATED = "vm.emulated", Flag, by [Driver], Kept;
    /// The emulating software.
    VM_EMULATED_DETAIL = "vm.emulated.detail", Text, by [Driver], Kept;
    /// Why it cannot use KVM.
    VM_NO_KVM = "vm.no_kvm", Text, by [Driver], Read;
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
