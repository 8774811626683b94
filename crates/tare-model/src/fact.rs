//! The names of facts: every one that rules read or that more than one part of Tare writes, in one table.
//!
//! A row says what a fact means, in which unit, who writes it and what is done with it. Agent, drivers, parity and
//! causes use the constants, so that a name is spelled in one place only; tests find rows that nobody writes or
//! nobody reads, and spellings elsewhere. A `*` in a name stands for what differs from place to place: a path, a
//! program, a variable.
//! A driver's own facts, which only people read, are one row: `ssh.*`.
//! Constants alone: the table itself is in no program that does not ask for it, so the agent is no larger by it.

use crate::names::{Measure, Name, Use, Writer, names};

/// The fact of this pattern about this path, program, variable, …
///
/// Of [`MOUNT_FSTYPE`] about `/tmp` it is `mount./tmp.fstype`.
pub fn of(pattern: &str, what: &str) -> String {
    [beginning(pattern), what, ending(pattern)].concat()
}

/// What names of this pattern begin with.
pub const fn beginning(pattern: &str) -> &str {
    pattern.split_at(star(pattern)).0
}

/// What names of this pattern end with.
pub const fn ending(pattern: &str) -> &str {
    let at = star(pattern);
    if at == pattern.len() {
        return "";
    }
    pattern.split_at(at + 1).1
}

/// Where the `*` of a pattern stands; behind its end where it has none.
const fn star(pattern: &str) -> usize {
    let mut at = 0;
    while at < pattern.len() && pattern.as_bytes()[at] != b'*' {
        at += 1;
    }
    at
}

/// What stands for the `*` of a pattern in this name; `None` if it is no name of that pattern.
pub fn what<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    name.strip_prefix(beginning(pattern))?
        .strip_suffix(ending(pattern))
}

/// The row of this name or pattern.
pub fn row(name: &str) -> Option<&'static Name> {
    FACTS.iter().find(|row| row.name == name)
}

/// A fact whose name ends like this and whose value is `true` says that software imitates the machine's
/// processor or its system there: what is measured is the imitation and not what the environment costs elsewhere. Any
/// driver may state it, under its own name; the fact of that name with [`EMULATED_DETAIL`] behind it says by what.
pub const EMULATED: &str = ".emulated";

/// See [`EMULATED`].
pub const EMULATED_DETAIL: &str = ".detail";

names! {
    /// All of them.
    FACTS;

    // What cannot be told.
    /// Why the fact of that name could not be read, in the system's words.
    UNREADABLE = "unreadable.*", Text, by [Agent], Read;
    /// Why the limits of a controller could not be read.
    UNREADABLE_CGROUP = "unreadable.cgroup.*", Text, by [Agent], Read;
    /// Why nothing is known of a program; begins with `not installed` where it is not there.
    UNREADABLE_TOOL = "unreadable.tool.*", Text, by [Agent], Read;

    // The agent.
    /// Which build of the agent runs there.
    AGENT_BUILD = "agent.build", Text, by [Agent Run], Kept;
    /// How the agent came into the place.
    AGENT_DELIVERY = "agent.delivery", Text, by [Driver], Kept;
    /// Bytes by which environment and heap of its workers were moved in this launch.
    AGENT_PAD = "agent.pad_bytes", Bytes, by [Run], Kept;
    /// The agent's own bytes.
    AGENT_SHA256 = "agent.sha256", Digest, by [Driver Run], Given;
    /// The agent's version, as it prints it.
    AGENT_VERSION = "agent.version", Text, by [Driver], Kept;
    /// What reading the clock costs.
    TIMER_COST = "timer.cost_ns", Nanoseconds, by [Agent], Read;
    /// The smallest step of the clock.
    TIMER_RESOLUTION = "timer.resolution_ns", Nanoseconds, by [Agent], Kept;

    // The system.
    /// The kind of system that the agent was built for.
    OS = "os", Text, by [Agent], Read;
    /// The architecture that the agent was built for.
    MACHINE = "machine", Text, by [Agent], Read;
    /// The distribution, as `/etc/os-release` names it.
    OS_NAME = "os.name", Text, by [Agent], Read;
    /// The kernel's release.
    KERNEL_RELEASE = "kernel.release", Text, by [Agent], Is;
    /// The kernel's build: number, options, date.
    KERNEL_VERSION = "kernel.version", Text, by [Agent], Kept;
    /// What the kernel was started with.
    KERNEL_CMDLINE = "kernel.cmdline", Text, by [Agent], Kept;
    /// A number that the kernel makes at each boot, the same in every container on it.
    KERNEL_BOOT_ID = "kernel.boot_id", Text, by [Agent], Is;
    /// The name of the machine.
    KERNEL_HOSTNAME = "kernel.hostname", Text, by [Agent], Kept;
    /// Where cores of crashed programs go.
    KERNEL_CORE_PATTERN = "kernel.core_pattern", Text, by [Agent], Kept;
    /// Whether io_uring is switched off; since Linux 6.6.
    KERNEL_IO_URING_DISABLED = "kernel.io_uring_disabled", Count, by [Agent], Kept;
    /// Under which profile of a security module the agent runs.
    LSM_LABEL = "lsm.label", Text, by [Agent], Read;
    /// The security modules of the kernel.
    LSM_LIST = "lsm.list", List, by [Agent], Kept;
    /// Whether the calls of Windows are imitated by another system.
    WINE_EMULATED = "wine.emulated", Flag, by [Agent], Kept;
    /// By what.
    WINE_EMULATED_DETAIL = "wine.emulated.detail", Text, by [Agent], Kept;
    /// Bytes of all variables of the agent's process.
    ENVIRONMENT_BYTES = "environment.bytes", Bytes, by [Agent], Read;

    // The processor.
    /// Its model.
    CPU_MODEL = "cpu.model", Text, by [Agent], Is;
    /// Its features.
    CPU_FLAGS = "cpu.flags", List, by [Agent], Read;
    /// The revision of its microcode.
    CPU_MICROCODE = "cpu.microcode", Text, by [Agent], Kept;
    /// The weaknesses that the kernel knows of it.
    CPU_BUGS = "cpu.bugs", List, by [Agent], Kept;
    /// How many processors the standard library would use.
    CPU_USABLE = "cpu.usable", Count, by [Agent], Kept;
    /// How many processors are online.
    CPU_COUNT = "cpu.count", Count, by [Agent], Read;
    /// The processors that the scheduler may use, such as `0-3,6`.
    CPU_AFFINITY = "cpu.affinity", List, by [Agent], Given;
    /// How many cores those are.
    CPU_CORES = "cpu.cores", Count, by [Agent], Read;
    /// The cores of the faster kind, where there are two.
    CPU_PERFORMANCE_CORES = "cpu.performance_cores", List, by [Agent], Read;
    /// The cores of the slower kind, where there are two.
    CPU_EFFICIENCY_CORES = "cpu.efficiency_cores", List, by [Agent], Read;
    /// The driver that sets the frequency.
    CPU_FREQUENCY_DRIVER = "cpu.frequency_driver", Text, by [Agent], Kept;
    /// The highest frequency, in kHz.
    CPU_MAX_KHZ = "cpu.max_khz", Count, by [Agent], Kept;
    /// By which rule the frequency is chosen.
    CPU_GOVERNOR = "cpu.governor", Text, by [Agent], Given;
    /// Whether cores run two threads each.
    CPU_SMT = "cpu.smt", Text, by [Agent], Kept;
    /// What the kernel does about a weakness of the processor.
    MITIGATION = "mitigation.*", Text, by [Agent], Is;
    /// What it does about the bypass of stores.
    MITIGATION_STORE_BYPASS = "mitigation.spec_store_bypass", Text, by [Agent], Read;
    /// The clock that the kernel reads.
    CLOCKSOURCE_CURRENT = "clocksource.current", Text, by [Agent], Given;
    /// The clocks that it could read.
    CLOCKSOURCE_AVAILABLE = "clocksource.available", List, by [Agent], Kept;
    /// The hypervisor's own name, as the processor answers; `none` without one.
    HYPERVISOR_VENDOR = "hypervisor.vendor", Text, by [Agent], Read;
    /// The hypervisor's kind, as Xen tells it.
    HYPERVISOR_TYPE = "hypervisor.type", Text, by [Agent], Kept;
    /// Memory nodes that are online.
    NUMA_NODES = "numa.nodes", List, by [Agent], Read;
    /// Programs for other architectures that the kernel starts through a handler.
    BINFMT_HANDLERS = "binfmt.handlers", List, by [Agent], Read;

    // Memory.
    /// Memory of the machine.
    MEMORY_TOTAL = "memory.total_bytes", Bytes, by [Agent], Given;
    /// Memory that is available.
    MEMORY_AVAILABLE = "memory.available_bytes", Bytes, by [Agent], Kept;
    /// Swap of the machine.
    MEMORY_SWAP = "memory.swap_bytes", Bytes, by [Agent], Kept;
    /// When huge pages are used.
    THP_ENABLED = "thp.enabled", Text, by [Agent], Given;
    /// When memory is compacted for huge pages.
    THP_DEFRAG = "thp.defrag", Text, by [Agent], Kept;
    /// When shared memory is made of huge pages.
    THP_SHMEM = "thp.shmem_enabled", Text, by [Agent], Kept;
    /// Whether equal pages are merged.
    KSM_RUN = "ksm.run", Count, by [Agent], Kept;
    /// Whether swapped pages are compressed in memory first.
    ZSWAP_ENABLED = "zswap.enabled", Text, by [Agent], Kept;
    /// Room in `/dev/shm`.
    SHM_SIZE = "shm.size_bytes", Bytes, by [Agent], Is;

    // The process's own state, `/proc/self/status`; of a user's command its own.
    /// A line of it.
    STATUS = "status.*", Text, by [Agent Why], Read;
    /// Seccomp: 0 off, 1 strict, 2 a filter.
    STATUS_SECCOMP = "status.Seccomp", Count, by [Agent], Is;
    /// How many filters.
    STATUS_SECCOMP_FILTERS = "status.Seccomp_filters", Count, by [Agent], Is;
    /// Whether loads may pass stores.
    STATUS_STORE_BYPASS = "status.Speculation_Store_Bypass", Text, by [Agent], Is;
    /// How indirect branches are predicted.
    STATUS_INDIRECT_BRANCH = "status.SpeculationIndirectBranch", Text, by [Agent], Is;
    /// Whether it may gain privileges.
    STATUS_NO_NEW_PRIVS = "status.NoNewPrivs", Count, by [Agent], Kept;
    /// Inheritable capabilities.
    STATUS_CAP_INH = "status.CapInh", Text, by [Agent], Kept;
    /// Permitted capabilities.
    STATUS_CAP_PRM = "status.CapPrm", Text, by [Agent], Kept;
    /// Effective capabilities.
    STATUS_CAP_EFF = "status.CapEff", Text, by [Agent], Kept;
    /// The capabilities that it can ever have.
    STATUS_CAP_BND = "status.CapBnd", Text, by [Agent], Kept;
    /// Ambient capabilities.
    STATUS_CAP_AMB = "status.CapAmb", Text, by [Agent], Kept;
    /// The processors that it may use.
    STATUS_CPUS_ALLOWED = "status.Cpus_allowed_list", List, by [Agent], Read;
    /// The memory nodes that it may use.
    STATUS_MEMS_ALLOWED = "status.Mems_allowed_list", List, by [Agent], Read;
    /// Whether it may have huge pages.
    STATUS_THP_ENABLED = "status.THP_enabled", Count, by [Agent], Given;
    /// Its users.
    STATUS_UID = "status.Uid", List, by [Agent], Kept;
    /// Its groups.
    STATUS_GID = "status.Gid", List, by [Agent], Kept;
    /// The effective user.
    UID = "uid", Count, by [Agent], Kept;
    /// The number of the agent's process.
    PID = "pid", Count, by [Agent], Kept;
    /// What a namespace of its process is called.
    NS = "ns.*", Text, by [Agent], Kept;
    /// Its network namespace.
    NS_NET = "ns.net", Text, by [Agent], Read;

    // Limits.
    /// Soft and hard limit of a resource.
    RLIMIT = "rlimit.*", Text, by [Agent], Kept;
    /// Of open files.
    RLIMIT_NOFILE = "rlimit.nofile", Text, by [Agent], Is;
    /// Of the stack.
    RLIMIT_STACK = "rlimit.stack", Text, by [Agent], Is;
    /// Of locked memory.
    RLIMIT_MEMLOCK = "rlimit.memlock", Text, by [Agent], Is;
    /// Which versions of control groups there are.
    CGROUP_LAYOUT = "cgroup.layout", Text, by [Agent], Read;
    /// Where in a hierarchy it is.
    CGROUP_PATH = "cgroup.path.*", Text, by [Agent], Kept;
    /// Processor time in a period; v1.
    CGROUP_CFS_QUOTA = "cgroup.cpu.cfs_quota_us", Count, by [Agent], Given;
    /// That period; v1.
    CGROUP_CFS_PERIOD = "cgroup.cpu.cfs_period_us", Count, by [Agent], Given;
    /// Its share where processors are short; v1.
    CGROUP_CPU_SHARES = "cgroup.cpu.shares", Count, by [Agent], Kept;
    /// Processor time in a period, and the period; v2.
    CGROUP_CPU_MAX = "cgroup.cpu.max", Text, by [Agent], Given;
    /// Its share where processors are short; v2.
    CGROUP_CPU_WEIGHT = "cgroup.cpu.weight", Count, by [Agent], Kept;
    /// Its processors; v1.
    CGROUP_CPUSET_CPUS = "cgroup.cpuset.cpus", List, by [Agent], Kept;
    /// Its memory nodes; v1.
    CGROUP_CPUSET_MEMS = "cgroup.cpuset.mems", List, by [Agent], Kept;
    /// Its processors; v2.
    CGROUP_CPUSET_CPUS_EFFECTIVE = "cgroup.cpuset.cpus.effective", List, by [Agent], Kept;
    /// Its memory nodes; v2.
    CGROUP_CPUSET_MEMS_EFFECTIVE = "cgroup.cpuset.mems.effective", List, by [Agent], Kept;
    /// Its memory; v1.
    CGROUP_MEMORY_LIMIT = "cgroup.memory.limit_in_bytes", Bytes, by [Agent], Given;
    /// Its memory and swap together; v1.
    CGROUP_MEMSW_LIMIT = "cgroup.memory.memsw.limit_in_bytes", Bytes, by [Agent], Read;
    /// Its memory; v2.
    CGROUP_MEMORY_MAX = "cgroup.memory.max", Bytes, by [Agent], Given;
    /// From where on memory is taken back; v2.
    CGROUP_MEMORY_HIGH = "cgroup.memory.high", Bytes, by [Agent], Kept;
    /// Its swap; v2.
    CGROUP_SWAP_MAX = "cgroup.memory.swap.max", Bytes, by [Agent], Read;
    /// Its processes and threads.
    CGROUP_PIDS_MAX = "cgroup.pids.max", Count, by [Agent], Given;
    /// Bytes a second that it may read, by device; v1.
    CGROUP_READ_BPS = "cgroup.blkio.throttle.read_bps_device", Text, by [Agent], Read;
    /// Bytes a second that it may write, by device; v1.
    CGROUP_WRITE_BPS = "cgroup.blkio.throttle.write_bps_device", Text, by [Agent], Read;
    /// Reads a second, by device; v1.
    CGROUP_READ_IOPS = "cgroup.blkio.throttle.read_iops_device", Text, by [Agent], Read;
    /// Writes a second, by device; v1.
    CGROUP_WRITE_IOPS = "cgroup.blkio.throttle.write_iops_device", Text, by [Agent], Read;
    /// One of these four.
    CGROUP_BLKIO = "cgroup.blkio.throttle.*", Text, by [Agent], Kept;
    /// Limits of its devices; v2.
    CGROUP_IO_MAX = "cgroup.io.max", Text, by [Agent], Read;
    /// Its share where devices are short; v2.
    CGROUP_IO_WEIGHT = "cgroup.io.weight", Count, by [Agent], Kept;

    // Files. A `*` is the path that was asked about.
    /// How many mounts there are.
    MOUNTS_COUNT = "mounts.count", Count, by [Agent], Kept;
    /// Something about the mount under a path.
    MOUNT = "mount.*", Text, by [Agent], Read;
    /// Kind of the file system.
    MOUNT_FSTYPE = "mount.*.fstype", Text, by [Agent], Is;
    /// What is mounted.
    MOUNT_SOURCE = "mount.*.source", Text, by [Agent], Kept;
    /// Options of the mount.
    MOUNT_OPTIONS = "mount.*.options", Text, by [Agent], Read;
    /// Options of the file system.
    MOUNT_SUPER_OPTIONS = "mount.*.super_options", Text, by [Agent], Read;
    /// Numbers of the device.
    MOUNT_DEVICE = "mount.*.device", Text, by [Agent], Read;
    /// Where it is mounted.
    MOUNT_POINT = "mount.*.point", Text, by [Agent], Read;
    /// Which folder of it.
    MOUNT_ROOT = "mount.*.root", Text, by [Agent], Kept;
    /// Room that is left.
    MOUNT_FREE = "mount.*.free_bytes", Bytes, by [Agent], Kept;
    /// Name of the disk.
    BLOCK_NAME = "mount.*.block.name", Text, by [Agent], Kept;
    /// Whether it turns.
    BLOCK_ROTATIONAL = "mount.*.block.rotational", Count, by [Agent], Kept;
    /// What orders its requests.
    BLOCK_SCHEDULER = "mount.*.block.scheduler", Text, by [Agent], Read;
    /// Whether it keeps writes in a cache.
    BLOCK_WRITE_CACHE = "mount.*.block.write_cache", Text, by [Agent], Read;
    /// Whether single writes can pass that cache.
    BLOCK_FUA = "mount.*.block.fua", Count, by [Agent], Kept;
    /// How many requests its queue holds.
    BLOCK_REQUESTS = "mount.*.block.nr_requests", Count, by [Agent], Kept;
    /// How far it reads ahead, in KiB.
    BLOCK_READ_AHEAD = "mount.*.block.read_ahead_kb", Count, by [Agent], Kept;
    /// Its model.
    BLOCK_MODEL = "mount.*.block.model", Text, by [Agent], Read;
    /// The driver that moves its bytes.
    BLOCK_DRIVER = "mount.*.block.driver", Text, by [Agent], Read;

    // The network.
    /// The device of the default route; `none` without one.
    NET_DEFAULT_DEVICE = "net.default.device", Text, by [Agent], Kept;
    /// Its largest packets.
    NET_DEFAULT_MTU = "net.default.mtu", Bytes, by [Agent], Read;
    /// Its driver.
    NET_DEFAULT_DRIVER = "net.default.driver", Text, by [Agent], Read;
    /// The loopback device.
    NET_LOOPBACK_DEVICE = "net.loopback.device", Text, by [Agent], Kept;
    /// Its largest packets.
    NET_LOOPBACK_MTU = "net.loopback.mtu", Bytes, by [Agent], Kept;
    /// Devices whose queue holds packets back, with its kind; `none` if there are none.
    NET_HELD_BACK = "net.held_back", List, by [Agent], Read;
    /// A setting of the kernel's.
    SYSCTL = "sysctl.*", Text, by [Agent], Read;
    /// One of the network's.
    SYSCTL_NET = "sysctl.net.*", Text, by [Agent], Read;
    /// How many connections are tracked.
    SYSCTL_CONNTRACK_COUNT = "sysctl.net.netfilter.nf_conntrack_count", Count, by [Agent], Read;
    /// How many can be.
    SYSCTL_CONNTRACK_MAX = "sysctl.net.netfilter.nf_conntrack_max", Count, by [Agent], Read;
    /// Name servers.
    RESOLVER_NAMESERVERS = "resolver.nameservers", List, by [Agent], Read;
    /// Domains that are tried.
    RESOLVER_SEARCH = "resolver.search", List, by [Agent], Read;
    /// Options of the resolver.
    RESOLVER_OPTIONS = "resolver.options", List, by [Agent], Read;

    // What a process inherits.
    /// A variable that changes how much a program does at once, or which way it does it.
    VARIABLE = "variable.*", Text, by [Agent Why], Read;
    /// How many threads OpenMP starts.
    VARIABLE_OMP_THREADS = "variable.OMP_NUM_THREADS", Count, by [Agent], Read;
    /// What every Java machine is told.
    VARIABLE_JAVA = "variable.JAVA_TOOL_OPTIONS", Text, by [Agent], Read;
    /// Whose dynamic loader lies there.
    LIBC = "libc", Text, by [Agent], Read;
    /// The program of process 1.
    INIT_NAME = "init.name", Text, by [Agent], Read;
    /// Whether process 1 hears SIGTERM.
    INIT_SIGTERM = "init.handles_sigterm", Flag, by [Agent], Read;
    /// What standard output is.
    FD_1 = "fd.1", Text, by [Agent], Read;
    /// What a system call answers to arguments that can do nothing.
    ERRNO = "errno.*", Text, by [Agent], Read;

    // Programs. A `*` is the program, or the file's name.
    /// Something about a tool.
    TOOL = "tool.*", Text, by [Agent], Read;
    /// Its file, links resolved.
    TOOL_PATH = "tool.*.path", Text, by [Agent], Is;
    /// Its bytes.
    TOOL_SHA256 = "tool.*.sha256", Digest, by [Agent], Given;
    /// The first line that it prints when asked for its version.
    TOOL_VERSION = "tool.*.version", Text, by [Agent], Given;
    /// What loads or interprets it.
    TOOL_INTERPRETER = "tool.*.interpreter", Text, by [Agent], Given;
    /// The bytes of that.
    TOOL_INTERPRETER_SHA256 = "tool.*.interpreter_sha256", Digest, by [Agent], Given;
    /// The bytes of a program that was packed, or that ran.
    PROGRAM_SHA256 = "program.*.sha256", Digest, by [Driver Why], Read;
    /// The bytes of a library that was loaded.
    LIBRARY_SHA256 = "library.*.sha256", Digest, by [Why], Read;

    // A user's command, as it was seen to run.
    /// Its program.
    COMMAND_PROGRAM = "command.program", Text, by [Why], Read;
    /// Where it works.
    COMMAND_DIRECTORY = "command.directory", Text, by [Why], Read;
    /// What its standard output is.
    COMMAND_STDOUT = "command.stdout", Text, by [Why], Read;
    /// What it prints.
    COMMAND_STDOUT_BYTES = "command.stdout_bytes", Bytes, by [Why], Read;
    /// What it prints, in lines.
    COMMAND_STDOUT_LINES = "command.stdout_lines", Count, by [Why], Read;
    /// How long it took.
    COMMAND_WALL = "command.wall_ns", Nanoseconds, by [Why], Read;
    /// How long the engine's port proxies were on processors meanwhile.
    COMMAND_PROXY = "command.engine_proxy_ns", Nanoseconds, by [Why], Read;
    /// The files that it opened, one a line.
    COMMAND_OPENED = "command.opened", List, by [Why], Read;
    /// The files that it mapped, one a line.
    COMMAND_MAPPED = "command.mapped", List, by [Why], Kept;
    /// The most threads that it had at once.
    COMMAND_THREADS = "command.threads", Count, by [Why], Read;
    /// The most processes that it had at once.
    COMMAND_PROCESSES = "command.processes", Count, by [Why], Read;
    /// The shared memory that it used.
    COMMAND_SHARED_MEMORY = "command.shared_memory_bytes", Bytes, by [Why], Read;
    /// Whose C library it loaded.
    COMMAND_LIBC = "command.libc", Text, by [Why], Read;
    /// Something about the mount under a path of its own, like [`MOUNT`].
    COMMAND_MOUNT = "command.mount.*", Text, by [Why], Read;

    // The machine that Tare runs on.
    /// Its kind of system.
    HOST_SYSTEM = "host.system", Text, by [Run], Kept;
    /// Its architecture.
    HOST_MACHINE = "host.machine", Text, by [Run], Kept;
    /// How many processors it has; of an arm, which of them it was given.
    HOST_CPUS = "host.cpus", Text, by [Driver Run], Kept;
    /// A variable that an arm was given.
    HOST_ENV = "host.env.*", Text, by [Driver], Kept;
    /// The nodes of an arm that has several, and where they meet.
    CLUSTER = "cluster.*", Text, by [Run], Kept;

    // Engines.
    /// Where it listens.
    ENGINE_ENDPOINT = "engine.endpoint", Text, by [Driver], Read;
    /// Its version.
    ENGINE_VERSION = "engine.version", Text, by [Driver], Kept;
    /// The version of its protocol.
    ENGINE_API = "engine.api", Text, by [Driver], Kept;
    /// The version of a part of it.
    ENGINE_PART_VERSION = "engine.*.version", Text, by [Driver], Kept;
    /// How it stores images.
    ENGINE_STORAGE_DRIVER = "engine.storage_driver", Text, by [Driver], Read;
    /// On which file system.
    ENGINE_STORAGE_FILESYSTEM = "engine.storage_filesystem", Text, by [Driver], Read;
    /// In which folder.
    ENGINE_STORAGE_FOLDER = "engine.storage_folder", Text, by [Driver], Kept;
    /// The program that mounts them, where that is not the kernel.
    ENGINE_STORAGE_PROGRAM = "engine.storage_program", Text, by [Driver], Read;
    /// Who makes control groups.
    ENGINE_CGROUP_DRIVER = "engine.cgroup_driver", Text, by [Driver], Kept;
    /// Of which version.
    ENGINE_CGROUP_VERSION = "engine.cgroup_version", Text, by [Driver], Kept;
    /// The controllers that this user may set limits with.
    ENGINE_CGROUP_CONTROLLERS = "engine.cgroup_controllers", List, by [Driver], Kept;
    /// Where it keeps what containers print.
    ENGINE_LOG_DRIVER = "engine.log_driver", Text, by [Driver], Read;
    /// The runtime that starts containers.
    ENGINE_RUNTIME = "engine.runtime", Text, by [Driver], Read;
    /// Why that and no other.
    ENGINE_RUNTIME_CHOSEN = "engine.runtime.chosen", Text, by [Driver], Kept;
    /// The runtimes that it has.
    ENGINE_RUNTIMES = "engine.runtimes", List, by [Driver], Read;
    /// Its means of security.
    ENGINE_SECURITY = "engine.security", List, by [Driver], Read;
    /// Whether it filters system calls.
    ENGINE_SECCOMP = "engine.seccomp", Flag, by [Driver], Kept;
    /// By which file.
    ENGINE_SECCOMP_PROFILE = "engine.seccomp_profile", Text, by [Driver], Kept;
    /// The release of its machine's kernel.
    ENGINE_KERNEL = "engine.kernel", Text, by [Driver], Read;
    /// The distribution of its machine.
    ENGINE_SYSTEM = "engine.system", Text, by [Driver], Read;
    /// The kind of system of its machine.
    ENGINE_OS_TYPE = "engine.os_type", Text, by [Driver], Kept;
    /// The architecture of its machine.
    ENGINE_ARCHITECTURE = "engine.architecture", Text, by [Driver], Read;
    /// Processors of its machine.
    ENGINE_CPUS = "engine.cpus", Count, by [Driver], Kept;
    /// Memory of its machine.
    ENGINE_MEMORY = "engine.memory_bytes", Bytes, by [Driver], Kept;
    /// What it warns of.
    ENGINE_WARNINGS = "engine.warnings", Text, by [Driver], Kept;
    /// The capabilities that its own process can ever have.
    ENGINE_CAP_BND = "engine.CapBnd", Text, by [Driver], Kept;
    /// Those that it lacks.
    ENGINE_CAPABILITIES_MISSING = "engine.capabilities_missing", List, by [Driver], Read;
    /// Who makes its networks.
    ENGINE_NETWORKS = "engine.networks", Text, by [Driver], Kept;
    /// The kind of network that a container has.
    ENGINE_NETWORK_MODE = "engine.network_mode", Text, by [Driver], Kept;
    /// Whether it runs on another machine.
    ENGINE_REMOTE = "engine.remote", Flag, by [Driver], Read;
    /// Whether it runs without privileges.
    ENGINE_ROOTLESS = "engine.rootless", Flag, by [Driver], Read;
    /// What makes the network of such containers.
    ENGINE_ROOTLESS_NETWORK = "engine.rootless_network", Text, by [Driver], Read;
    /// The user that it runs for.
    ENGINE_USER = "engine.user", Text, by [Driver], Kept;
    /// How many user identifiers that user has.
    ENGINE_USER_IDS = "engine.user_ids", Count, by [Driver], Kept;
    /// Name of the image.
    IMAGE_NAME = "image.name", Text, by [Driver], Kept;
    /// Its identifier.
    IMAGE_ID = "image.id", Digest, by [Driver], Kept;
    /// Its digests at registries.
    IMAGE_DIGESTS = "image.digests", List, by [Driver], Kept;
    /// Its size.
    IMAGE_SIZE = "image.size_bytes", Bytes, by [Driver], Read;
    /// The architecture that it is for.
    IMAGE_ARCHITECTURE = "image.architecture", Text, by [Driver], Read;
    /// Whether that is another than the machine's.
    IMAGE_EMULATED = "image.emulated", Flag, by [Driver], Read;
    /// The bytes of what was packed.
    IMAGE_CONTENT_SHA256 = "image.content_sha256", Digest, by [Driver], Kept;
    /// How many files were packed.
    IMAGE_PACKED_FILES = "image.packed_files", Count, by [Driver], Kept;
    /// How much they hold.
    IMAGE_PACKED_BYTES = "image.packed_bytes", Bytes, by [Driver], Kept;
    /// The bytes of the seccomp profile.
    SECCOMP_PROFILE_SHA256 = "seccomp.profile_sha256", Digest, by [Driver], Kept;
    /// What AppArmor does.
    SECURITY_APPARMOR = "security.apparmor", Text, by [Driver], Kept;
    /// What an engine was asked for, under its own name for it.
    ASKED = "asked.*", Text, by [Driver], Kept;
    /// Folders of the machine.
    ASKED_BINDS = "asked.Binds", List, by [Driver], Read;
    /// Limits of devices.
    ASKED_BLKIO = "asked.Blkio*", Text, by [Driver], Kept;
    /// The command line's context.
    ASKED_CONTEXT = "asked.Context", Text, by [Driver], Kept;
    /// Where the log goes.
    ASKED_LOG = "asked.LogConfig", Text, by [Driver], Kept;
    /// The kind of network.
    ASKED_NETWORK = "asked.NetworkMode", Text, by [Driver], Read;
    /// The platform.
    ASKED_PLATFORM = "asked.Platform", Text, by [Driver], Kept;
    /// Published ports.
    ASKED_PORTS = "asked.PortBindings", Text, by [Driver], Read;
    /// The runtime.
    ASKED_RUNTIME = "asked.Runtime", Text, by [Driver], Read;
    /// Room in `/dev/shm`.
    ASKED_SHM = "asked.ShmSize", Bytes, by [Driver], Kept;
    /// A terminal.
    ASKED_TTY = "asked.Tty", Flag, by [Driver], Read;
    /// The user.
    ASKED_USER = "asked.User", Text, by [Driver], Kept;

    // The drivers' own.
    /// What the built-in container did, and what it was asked for.
    CONTAINER = "container.*", Text, by [Driver], Kept;
    /// What an OCI runtime is, and what it was asked for.
    OCI = "oci.*", Text, by [Driver], Kept;
    /// Which runtime.
    OCI_RUNTIME = "oci.runtime", Text, by [Driver], Read;
    /// How the other end was reached.
    SSH = "ssh.*", Text, by [Driver], Kept;
    /// What a virtual machine is made of.
    VM = "vm.*", Text, by [Driver], Kept;
    /// The processor that it shows.
    VM_CPU = "vm.cpu", Text, by [Driver], Kept;
    /// How its disk's writes are cached.
    VM_CACHE = "vm.cache", Text, by [Driver], Read;
    /// The kind of its disk.
    VM_DISK = "vm.disk", Text, by [Driver], Read;
    /// The kind of its network card.
    VM_NIC = "vm.nic", Text, by [Driver], Read;
    /// Whether its processor is software.
    VM_EMULATED = "vm.emulated", Flag, by [Driver], Kept;
    /// By which software.
    VM_EMULATED_DETAIL = "vm.emulated.detail", Text, by [Driver], Kept;
    /// Why it cannot use KVM.
    VM_NO_KVM = "vm.no_kvm", Text, by [Driver], Read;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_made_of_its_pattern_and_read_back() {
        for (pattern, what_it_is, name) in [
            (MOUNT_FSTYPE, "/tmp", "mount./tmp.fstype"),
            (MITIGATION, "mds", "mitigation.mds"),
            (TOOL_SHA256, "a*b", "tool.a*b.sha256"),
        ] {
            assert_eq!(of(pattern, what_it_is), name);
            assert_eq!(what(pattern, name), Some(what_it_is));
        }
        assert_eq!(what(MOUNT_FSTYPE, "mount./tmp.device"), None);
        assert_eq!((beginning(OS_NAME), ending(OS_NAME)), ("os.name", ""));
    }

    #[test]
    fn every_row_is_a_fact_of_its_own_whose_name_ends_in_its_unit() {
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
