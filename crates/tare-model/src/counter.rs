//! Names of counters: resource usage during a trial, with the writer and the use of each.
//!
//! As with facts (`fact`), each counter has one row, and all code uses the constants. The agent's counters cover the
//! worker or the program that it started; those that begin with `charged_` are what the host's kernel charged to the
//! arm, for all processes in it.

use crate::names::{Measure, Name, Use, Writer, names};

/// Prefix of the counters of reaped children.
pub const CHILDREN: &str = "children_";

names! {
    /// All counters.
    COUNTERS;

    by [Run Why];
    /// Wall time of the work.
    WALL = "wall_ns", Nanoseconds, Read;
    by [Run];
    /// Number of operations in a trial.
    UNITS = "units", Count, Read;
    by [Why];
    /// Maximum number of threads at once.
    THREADS = "threads", Count, Read;
    by [Agent];
    /// CPU time in user mode.
    USER = "user_ns", Nanoseconds, Read;
    /// CPU time in kernel mode.
    SYS = "sys_ns", Nanoseconds, Read;
    by [Agent Run];
    /// User-mode CPU time of reaped children.
    CHILDREN_USER = "children_user_ns", Nanoseconds, Read;
    /// Kernel-mode CPU time of reaped children.
    CHILDREN_SYS = "children_sys_ns", Nanoseconds, Read;
    by [Agent];
    /// Minor page faults, served without a read.
    MINFLT = "minflt", Count, Read;
    /// Major page faults, which needed a read.
    MAJFLT = "majflt", Count, Read;
    /// Voluntary context switches.
    NVCSW = "nvcsw", Count, Read;
    /// Involuntary context switches.
    NIVCSW = "nivcsw", Count, Read;
    /// Peak memory.
    MAX_RSS = "max_rss_bytes", Bytes, Read;
    /// Blocks read for it.
    INBLOCK = "inblock", Count, Read;
    /// Blocks that it wrote.
    OUBLOCK = "oublock", Count, Read;
    /// Number of processors that it may use.
    PERMITTED_CPUS = "permitted_cpus", Count, Read;
    /// Time on a processor, as counted by the scheduler.
    ON_CPU = "on_cpu_ns", Nanoseconds, Read;
    /// Time runnable but waiting for a processor.
    RUN_DELAY = "run_delay_ns", Nanoseconds, Read;
    /// Number of times that it was put on a processor.
    SLICES = "slices", Count, Read;
    /// CPU quota periods.
    NR_PERIODS = "nr_periods", Count, Kept;
    /// CPU quota periods in which the quota was used up.
    NR_THROTTLED = "nr_throttled", Count, Read;
    /// Time throttled by the CPU quota.
    THROTTLED = "throttled_ns", Nanoseconds, Read;
    /// Steal time of the whole machine, in ticks.
    STEAL = "steal_ticks", Count, Read;
    /// Bytes that it asked to read.
    RCHAR = "rchar", Bytes, Read;
    /// Bytes that it asked to write.
    WCHAR = "wchar", Bytes, Read;
    /// Read syscalls.
    SYSCR = "syscr", Count, Read;
    /// Write syscalls.
    SYSCW = "syscw", Count, Read;
    /// Bytes read from a device.
    READ_BYTES = "read_bytes", Bytes, Read;
    /// Bytes written to a device.
    WRITE_BYTES = "write_bytes", Bytes, Read;
    /// Number of times that the memory limit was reached.
    MEMORY_LIMIT_HITS = "memory_limit_hits", Count, Read;
    /// TCP retransmits in the network namespace.
    TCP_RETRANSMITS = "tcp_retransmits", Count, Read;
    /// Packets in the network namespace that were too large and could not be fragmented.
    IP_FRAGMENT_FAILURES = "ip_fragment_failures", Count, Read;
    /// Time in which some task of the whole machine waited for a processor.
    PRESSURE_CPU = "pressure_cpu_ns", Nanoseconds, Read;
    /// Time in which some task of the whole machine waited for memory.
    PRESSURE_MEMORY = "pressure_memory_ns", Nanoseconds, Read;
    /// Time in which some task of the whole machine waited for a device.
    PRESSURE_IO = "pressure_io_ns", Nanoseconds, Read;
    by [Why];
    /// CPU time of the engine's port proxies.
    ENGINE_PROXY = "engine_proxy_ns", Nanoseconds, Read;
    by [Run];
    /// Datagrams that left a server's network, such as name lookups.
    SERVER_DATAGRAMS = "server_datagrams", Count, Read;
    /// Connections to a server that were dropped because its queue was full.
    SERVER_OVERFLOWS = "server_overflows", Count, Read;
    /// CPU time of the arm.
    CHARGED_CPU = "charged_cpu_ns", Nanoseconds, Read;
    /// CPU quota periods in which the arm's quota was used up.
    CHARGED_NR_THROTTLED = "charged_nr_throttled", Count, Read;
    /// Time that the arm was throttled by its CPU quota.
    CHARGED_THROTTLED = "charged_throttled_ns", Nanoseconds, Read;
    /// Number of times that the arm's memory limit was reached.
    CHARGED_MEMORY_LIMIT_HITS = "charged_memory_limit_hits", Count, Read;
    /// Bytes that the arm read from a device.
    CHARGED_READ = "charged_read_bytes", Bytes, Read;
    /// Bytes that the arm wrote to a device.
    CHARGED_WRITE = "charged_write_bytes", Bytes, Read;
}
