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

    /// Wall time of the work.
    WALL = "wall_ns", Nanoseconds, by [Run Why], Read;
    /// Number of operations in a trial.
    UNITS = "units", Count, by [Run], Read;
    /// Maximum number of threads at once.
    THREADS = "threads", Count, by [Why], Read;
    /// CPU time in user mode.
    USER = "user_ns", Nanoseconds, by [Agent], Read;
    /// CPU time in kernel mode.
    SYS = "sys_ns", Nanoseconds, by [Agent], Read;
    /// User-mode CPU time of reaped children.
    CHILDREN_USER = "children_user_ns", Nanoseconds, by [Agent Run], Read;
    /// Kernel-mode CPU time of reaped children.
    CHILDREN_SYS = "children_sys_ns", Nanoseconds, by [Agent Run], Read;
    /// Minor page faults, served without a read.
    MINFLT = "minflt", Count, by [Agent], Read;
    /// Major page faults, which needed a read.
    MAJFLT = "majflt", Count, by [Agent], Read;
    /// Voluntary context switches.
    NVCSW = "nvcsw", Count, by [Agent], Read;
    /// Involuntary context switches.
    NIVCSW = "nivcsw", Count, by [Agent], Read;
    /// Peak memory.
    MAX_RSS = "max_rss_bytes", Bytes, by [Agent], Read;
    /// Blocks read for it.
    INBLOCK = "inblock", Count, by [Agent], Read;
    /// Blocks that it wrote.
    OUBLOCK = "oublock", Count, by [Agent], Read;
    /// Number of processors that it may use.
    PERMITTED_CPUS = "permitted_cpus", Count, by [Agent], Read;
    /// Time on a processor, as counted by the scheduler.
    ON_CPU = "on_cpu_ns", Nanoseconds, by [Agent], Read;
    /// Time runnable but waiting for a processor.
    RUN_DELAY = "run_delay_ns", Nanoseconds, by [Agent], Read;
    /// Number of times that it was put on a processor.
    SLICES = "slices", Count, by [Agent], Read;
    /// CPU quota periods.
    NR_PERIODS = "nr_periods", Count, by [Agent], Kept;
    /// CPU quota periods in which the quota was used up.
    NR_THROTTLED = "nr_throttled", Count, by [Agent], Read;
    /// Time throttled by the CPU quota.
    THROTTLED = "throttled_ns", Nanoseconds, by [Agent], Read;
    /// Steal time of the whole machine, in ticks.
    STEAL = "steal_ticks", Count, by [Agent], Read;
    /// Bytes that it asked to read.
    RCHAR = "rchar", Bytes, by [Agent], Read;
    /// Bytes that it asked to write.
    WCHAR = "wchar", Bytes, by [Agent], Read;
    /// Read syscalls.
    SYSCR = "syscr", Count, by [Agent], Read;
    /// Write syscalls.
    SYSCW = "syscw", Count, by [Agent], Read;
    /// Bytes read from a device.
    READ_BYTES = "read_bytes", Bytes, by [Agent], Read;
    /// Bytes written to a device.
    WRITE_BYTES = "write_bytes", Bytes, by [Agent], Read;
    /// Number of times that the memory limit was reached.
    MEMORY_LIMIT_HITS = "memory_limit_hits", Count, by [Agent], Read;
    /// TCP retransmits in the network namespace.
    TCP_RETRANSMITS = "tcp_retransmits", Count, by [Agent], Read;
    /// Packets in the network namespace that were too large and could not be fragmented.
    IP_FRAGMENT_FAILURES = "ip_fragment_failures", Count, by [Agent], Read;
    /// Time in which some task of the whole machine waited for a processor.
    PRESSURE_CPU = "pressure_cpu_ns", Nanoseconds, by [Agent], Read;
    /// Time in which some task of the whole machine waited for memory.
    PRESSURE_MEMORY = "pressure_memory_ns", Nanoseconds, by [Agent], Read;
    /// Time in which some task of the whole machine waited for a device.
    PRESSURE_IO = "pressure_io_ns", Nanoseconds, by [Agent], Read;
    /// CPU time of the engine's port proxies.
    ENGINE_PROXY = "engine_proxy_ns", Nanoseconds, by [Why], Read;
    /// Datagrams that left a server's network, such as name lookups.
    SERVER_DATAGRAMS = "server_datagrams", Count, by [Run], Read;
    /// Connections to a server that were dropped because its queue was full.
    SERVER_OVERFLOWS = "server_overflows", Count, by [Run], Read;
    /// CPU time of the arm.
    CHARGED_CPU = "charged_cpu_ns", Nanoseconds, by [Run], Read;
    /// CPU quota periods in which the arm's quota was used up.
    CHARGED_NR_THROTTLED = "charged_nr_throttled", Count, by [Run], Read;
    /// Time that the arm was throttled by its CPU quota.
    CHARGED_THROTTLED = "charged_throttled_ns", Nanoseconds, by [Run], Read;
    /// Number of times that the arm's memory limit was reached.
    CHARGED_MEMORY_LIMIT_HITS = "charged_memory_limit_hits", Count, by [Run], Read;
    /// Bytes that the arm read from a device.
    CHARGED_READ = "charged_read_bytes", Bytes, by [Run], Read;
    /// Bytes that the arm wrote to a device.
    CHARGED_WRITE = "charged_write_bytes", Bytes, by [Run], Read;
}
