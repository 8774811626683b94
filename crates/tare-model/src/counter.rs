//! The names of counters: what was used during a trial, by whom it is counted and what it is read for.
//!
//! Like the facts' (`fact`): one row each, and everybody uses the constants. Those of the agent are of the worker
//! or of the program that it started; those that begin with `charged_` are what the host's kernel charged to the
//! arm, whoever in it used it.

use crate::names::{Measure, Name, Use, Writer, names};

/// What the counters of reaped children begin with.
pub const CHILDREN: &str = "children_";

names! {
    /// All of them.
    COUNTERS;

    /// How long the work took.
    WALL = "wall_ns", Nanoseconds, by [Run Why], Read;
    /// How many operations a trial held.
    UNITS = "units", Count, by [Run], Read;
    /// The most threads at once.
    THREADS = "threads", Count, by [Why], Read;
    /// Time on processors outside of the kernel.
    USER = "user_ns", Nanoseconds, by [Agent], Read;
    /// Time on processors inside the kernel.
    SYS = "sys_ns", Nanoseconds, by [Agent], Read;
    /// That outside of the kernel, of children that were reaped.
    CHILDREN_USER = "children_user_ns", Nanoseconds, by [Agent Run], Read;
    /// That inside the kernel, of children that were reaped.
    CHILDREN_SYS = "children_sys_ns", Nanoseconds, by [Agent Run], Read;
    /// Pages that were put in place without a read.
    MINFLT = "minflt", Count, by [Agent], Read;
    /// Pages that had to be read.
    MAJFLT = "majflt", Count, by [Agent], Read;
    /// How often it gave its processor up.
    NVCSW = "nvcsw", Count, by [Agent], Read;
    /// How often its processor was taken away.
    NIVCSW = "nivcsw", Count, by [Agent], Read;
    /// Memory at its most.
    MAX_RSS = "max_rss_bytes", Bytes, by [Agent], Read;
    /// Blocks that were read for it.
    INBLOCK = "inblock", Count, by [Agent], Read;
    /// Blocks that it wrote.
    OUBLOCK = "oublock", Count, by [Agent], Read;
    /// Processors that it was permitted.
    PERMITTED_CPUS = "permitted_cpus", Count, by [Agent], Read;
    /// Time on a processor, as the scheduler counts it.
    ON_CPU = "on_cpu_ns", Nanoseconds, by [Agent], Read;
    /// Time ready to run and waiting for a processor.
    RUN_DELAY = "run_delay_ns", Nanoseconds, by [Agent], Read;
    /// How often it was put on a processor.
    SLICES = "slices", Count, by [Agent], Read;
    /// Periods of a processor quota.
    NR_PERIODS = "nr_periods", Count, by [Agent], Kept;
    /// Those in which the quota was used up.
    NR_THROTTLED = "nr_throttled", Count, by [Agent], Read;
    /// How long it was stopped for that.
    THROTTLED = "throttled_ns", Nanoseconds, by [Agent], Read;
    /// Ticks in which the hypervisor ran something else; the whole machine's.
    STEAL = "steal_ticks", Count, by [Agent], Read;
    /// Bytes that it asked to read.
    RCHAR = "rchar", Bytes, by [Agent], Read;
    /// Bytes that it asked to write.
    WCHAR = "wchar", Bytes, by [Agent], Read;
    /// Calls that read.
    SYSCR = "syscr", Count, by [Agent], Read;
    /// Calls that wrote.
    SYSCW = "syscw", Count, by [Agent], Read;
    /// Bytes that came from a device.
    READ_BYTES = "read_bytes", Bytes, by [Agent], Read;
    /// Bytes that went to a device.
    WRITE_BYTES = "write_bytes", Bytes, by [Agent], Read;
    /// How often the memory limit was reached.
    MEMORY_LIMIT_HITS = "memory_limit_hits", Count, by [Agent], Read;
    /// TCP segments that were sent again; the network namespace's.
    TCP_RETRANSMITS = "tcp_retransmits", Count, by [Agent], Read;
    /// Packets that were too large and could not be cut; the network namespace's.
    IP_FRAGMENT_FAILURES = "ip_fragment_failures", Count, by [Agent], Read;
    /// How long somebody waited for a processor; the whole machine's.
    PRESSURE_CPU = "pressure_cpu_ns", Nanoseconds, by [Agent], Read;
    /// How long somebody waited for memory; the whole machine's.
    PRESSURE_MEMORY = "pressure_memory_ns", Nanoseconds, by [Agent], Read;
    /// How long somebody waited for a device; the whole machine's.
    PRESSURE_IO = "pressure_io_ns", Nanoseconds, by [Agent], Read;
    /// Time on processors of the engine's port proxies.
    ENGINE_PROXY = "engine_proxy_ns", Nanoseconds, by [Why], Read;
    /// Datagrams that left a server's network, name lookups for instance.
    SERVER_DATAGRAMS = "server_datagrams", Count, by [Run], Read;
    /// Connections to a server that its full queue turned away.
    SERVER_OVERFLOWS = "server_overflows", Count, by [Run], Read;
    /// Time on processors.
    CHARGED_CPU = "charged_cpu_ns", Nanoseconds, by [Run], Read;
    /// Periods in which its quota was used up.
    CHARGED_NR_THROTTLED = "charged_nr_throttled", Count, by [Run], Read;
    /// How long it was stopped for that.
    CHARGED_THROTTLED = "charged_throttled_ns", Nanoseconds, by [Run], Read;
    /// How often its memory limit was reached.
    CHARGED_MEMORY_LIMIT_HITS = "charged_memory_limit_hits", Count, by [Run], Read;
    /// Bytes that came from a device.
    CHARGED_READ = "charged_read_bytes", Bytes, by [Run], Read;
    /// Bytes that went to a device.
    CHARGED_WRITE = "charged_write_bytes", Bytes, by [Run], Read;
}
