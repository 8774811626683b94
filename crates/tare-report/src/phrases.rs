//! Headline names of metrics: `fs.create.time` is "file creation".
//!
//! Rows use identifiers, because studies, filters and other reports do. A metric that is missing here is named as in
//! its row.

/// The name of each metric after "16 % slower at".
const PHRASES: &[(&str, &str)] = &tare_model::rows! {
    ("clock.syscall.time", "clock_gettime as a syscall"),
    ("clock.vdso.time", "clock_gettime in the vDSO"),
    ("cpu.chase.time", "store-to-load forwarding"),
    ("cpu.float.time", "floating-point arithmetic"),
    ("cpu.integer.time", "integer arithmetic"),
    ("cpu.matrix.add.time", "matrix addition"),
    ("cpu.matrix.inverse.time", "matrix inversion"),
    ("cpu.matrix.multiply.time", "matrix multiplication"),
    ("cpu.matrix.transpose.time", "matrix transposition"),
    ("disk.fsync.time", "fsync"),
    ("disk.random-read-qd1.time", "io_uring reads at queue depth 1"),
    ("disk.random-read-qd32.rate", "io_uring reads at queue depth 32"),
    ("disk.random-read-sync.time", "random disk reads"),
    ("disk.sequential-read-sync.rate", "sequential disk reads"),
    ("disk.sequential-read.rate", "sequential io_uring reads"),
    ("fs.create.time", "file creation"),
    ("fs.mkdir.time", "mkdir"),
    ("fs.missing-file.time", "lookups of missing files"),
    ("fs.page-load.time", "reading a source tree"),
    ("fs.readdir.time", "readdir"),
    ("fs.rmdir.time", "rmdir"),
    ("fs.stat-path.time", "stat of a deep path"),
    ("fs.stat.time", "stat"),
    ("fs.unlink.time", "file removal"),
    ("fs.write.time", "small file writes"),
    ("ipc.pipe.round-trip.time", "pipe round trips"),
    ("lock.contended.time", "contended mutexes"),
    ("lock.mutex.time", "uncontended mutexes"),
    ("mem.allocate-large.time", "large allocations"),
    ("mem.allocate.time", "small allocations"),
    ("mem.random.time", "random memory access"),
    ("mem.touch.time", "page faults"),
    ("mem.triad.rate", "memory bandwidth"),
    ("net.tcp.connect.time", "TCP connects"),
    ("net.tcp.round-trip.time", "TCP round trips"),
    ("net.tcp.throughput.rate", "TCP throughput"),
    ("net.udp.round-trip.time", "UDP round trips"),
    ("proc.spawn.time", "process creation"),
    ("service.latency.p50", "median latency of requests"),
    ("service.latency.p90", "p90 latency of requests"),
    ("service.latency.p99", "p99 latency of requests"),
    ("service.latency.p999", "p99.9 latency of requests"),
    ("service.latency.typical", "requests"),
    ("service.request.cpu", "processor time of a request"),
    ("service.request.throughput", "requests per second"),
    ("service.start.ready", "server start"),
    ("start-up.all-memory.size", "memory of all idle ones"),
    ("start-up.create.time", "creating the environment"),
    ("start-up.disk.size", "disk space when idle"),
    ("start-up.first.time", "first instruction"),
    ("start-up.memory.size", "memory when idle"),
    ("start-up.ready.time", "start-up until ready"),
    ("start-up.stop.time", "shutdown"),
    ("start-up.total.time", "start-up and removal"),
    ("syscall.getppid.time", "system calls"),
};

/// Returns the name of the metric with this identifier, if there is one.
pub(super) fn name_of(metric: &str) -> Option<&'static str> {
    let found = PHRASES.iter().find(|(id, _)| *id == metric);
    found.map(|(_, phrase)| *phrase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::workload;

    #[test]
    fn each_phrase_is_of_one_metric_that_is_there() {
        let metrics = workload::WORKLOADS.iter().flat_map(|it| it.metrics());
        let known: Vec<&str> = metrics.map(|metric| metric.id).collect();
        for (id, phrase) in PHRASES {
            assert!(known.contains(id), "{id}");
            assert_eq!(name_of(id), Some(*phrase));
        }
        let phrases: std::collections::BTreeSet<_> = PHRASES.iter().map(|(_, it)| it).collect();
        assert_eq!(phrases.len(), PHRASES.len());
    }
}
