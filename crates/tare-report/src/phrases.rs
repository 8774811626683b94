//! Headline names of metrics: `fs.create.time` is "file creation".
//!
//! Rows use identifiers, because studies, filters and other reports do. A metric that is missing here is named as in
//! its row.

/// The name of each metric after "16 % slower at".
const PHRASES: &[(&str, &str)] = &tare_model::rows! {
    ("blas.matrices-add.time", "NumPy matrix addition"),
    ("blas.matrices-inverse.time", "NumPy matrix inversion"),
    ("blas.matrices-multiply.time", "NumPy element-wise products"),
    ("blas.matrices-transpose.time", "NumPy transposition"),
    ("blas.matrices.memory", "memory of the NumPy program"),
    ("blas.matrices.processors", "processors that NumPy keeps busy"),
    ("blas.matrices.time", "NumPy matrix operations"),
    ("blas.together.time", "NumPy operations side by side"),
    ("clock.local-date.time", "local dates"),
    ("clock.syscall.time", "clock_gettime as a syscall"),
    ("clock.utc-date.time", "UTC dates"),
    ("clock.vdso.time", "clock_gettime in the vDSO"),
    ("cpu.chase.time", "store-to-load forwarding"),
    ("cpu.des.time", "DES encryption"),
    ("cpu.float.time", "floating-point arithmetic"),
    ("cpu.integer.time", "integer arithmetic"),
    ("cpu.matrix.add.time", "matrix addition"),
    ("cpu.matrix.inverse.time", "matrix inversion"),
    ("cpu.matrix.multiply.time", "matrix multiplication"),
    ("cpu.matrix.transpose.time", "matrix transposition"),
    ("cpu.regex-heavy.time", "regular expressions with many patterns"),
    ("cpu.regex-threads.time", "regular expressions in threads"),
    ("cpu.regex.time", "regular expressions"),
    ("disk.copy-up.time", "the first write to a file of the image"),
    ("disk.fio-read-completion.time", "fio read completion"),
    ("disk.fio-read-p99.time", "fio p99 read latency"),
    ("disk.fio-read-submission.time", "fio read submission"),
    ("disk.fio-read.rate", "fio reads per second"),
    ("disk.fio-read.throughput", "fio read bandwidth"),
    ("disk.fio-read.time", "fio read latency"),
    ("disk.fio-write-completion.time", "fio write completion"),
    ("disk.fio-write-p99.time", "fio p99 write latency"),
    ("disk.fio-write-submission.time", "fio write submission"),
    ("disk.fio-write.rate", "fio writes per second"),
    ("disk.fio-write.throughput", "fio write bandwidth"),
    ("disk.fio-write.time", "fio write latency"),
    ("disk.fsync.time", "fsync"),
    ("disk.iozone-random-read.throughput", "Iozone random reads"),
    ("disk.iozone-random-write.throughput", "Iozone random writes"),
    ("disk.iozone-read.throughput", "Iozone reads"),
    ("disk.iozone-reread.throughput", "Iozone repeated reads"),
    ("disk.iozone-rewrite.throughput", "Iozone repeated writes"),
    ("disk.iozone-write.throughput", "Iozone writes"),
    ("disk.random-read-qd1.time", "io_uring reads at queue depth 1"),
    ("disk.random-read-qd32.rate", "io_uring reads at queue depth 32"),
    ("disk.random-read-sync.time", "random disk reads"),
    ("disk.sequential-read-sync.rate", "sequential disk reads"),
    ("disk.sequential-read.rate", "sequential io_uring reads"),
    ("dotnet.operation.time", ".NET's"),
    ("environment.all.time", "listing environment variables"),
    ("environment.get.time", "reading an environment variable"),
    ("environment.locale.time", "reading the locale"),
    ("environment.set.time", "setting an environment variable"),
    ("fs.create.time", "file creation"),
    ("fs.getcwd.time", "getcwd"),
    ("fs.line-read.time", "reading lines"),
    ("fs.line-write-direct.time", "unbuffered line writes"),
    ("fs.line-write.time", "line writes"),
    ("fs.missing-file.time", "lookups of missing files"),
    ("fs.mkdir.time", "mkdir"),
    ("fs.mount-list.time", "listing mounts"),
    ("fs.page-load.time", "reading a source tree"),
    ("fs.read-files.time", "reading many files"),
    ("fs.readdir.time", "readdir"),
    ("fs.rmdir.time", "rmdir"),
    ("fs.source-file.time", "opening and reading a source file"),
    ("fs.stat-path.time", "stat of a deep path"),
    ("fs.stat.time", "stat"),
    ("fs.unlink.time", "file removal"),
    ("fs.write.time", "small file writes"),
    ("hpcc.dgemm.rate", "HPCC DGEMM"),
    ("hpcc.fft.rate", "HPCC FFT"),
    ("hpcc.hpl.rate", "HPCC HPL"),
    ("hpcc.ping-pong.latency", "HPCC ping-pong latency"),
    ("hpcc.ping-pong.rate", "HPCC ping-pong bandwidth"),
    ("hpcc.ptrans.rate", "HPCC PTRANS"),
    ("hpcc.random-access.rate", "HPCC RandomAccess"),
    ("hpcc.ring.latency", "HPCC ring latency"),
    ("hpcc.ring.rate", "HPCC ring bandwidth"),
    ("hpcc.stream.rate", "HPCC STREAM"),
    ("ipc.pipe.round-trip.time", "pipe round trips"),
    ("lock.contended.time", "contended mutexes"),
    ("lock.mutex.time", "uncontended mutexes"),
    ("lock.read.time", "read locks"),
    ("mem.allocate-large.time", "large allocations"),
    ("mem.allocate.time", "small allocations"),
    ("mem.random.time", "random memory access"),
    ("mem.touch.time", "page faults"),
    ("mem.triad.rate", "memory bandwidth"),
    ("net.iperf3-resent.count", "iperf3 retransmissions"),
    ("net.iperf3.throughput", "iperf3 throughput"),
    ("net.netcat-sent.throughput", "netcat throughput at the sender"),
    ("net.netcat.throughput", "netcat throughput"),
    ("net.ping.time", "ping"),
    ("net.tcp.connect.rate", "TCP connects per second"),
    ("net.tcp.connect.time", "TCP connects"),
    ("net.tcp.receive-send.time", "receive and send over TCP"),
    ("net.tcp.round-trip.time", "TCP round trips"),
    ("net.tcp.send-receive.time", "send and receive over TCP"),
    ("net.tcp.throughput.rate", "TCP throughput"),
    ("net.udp.round-trip.time", "UDP round trips"),
    ("proc.spawn.time", "process creation"),
    ("python.des.time", "DES in Python"),
    ("python.mix-round.time", "Python operations"),
    ("python.pi-loop.time", "a Python loop"),
    ("python.pi-numpy.time", "NumPy random numbers"),
    ("random.bytes.time", "random bytes"),
    ("random.integer.time", "random integers"),
    ("random.kernel.time", "random bytes of the kernel"),
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
    ("task.call.time", "task calls"),
    ("task.insert.time", "concurrent insertions"),
    ("task.run.time", "running tasks"),
    ("thread.create.time", "thread creation"),
    ("thread.switch.time", "thread switches"),
    ("thread.yield.time", "yields"),
    ("timer.long.time", "long timers"),
    ("timer.short.time", "short timers"),
    ("timer.sleep.time", "short sleeps"),
};

/// Returns the name of the metric with this identifier, if there is one.
pub(super) fn name_of(metric: &str) -> Option<&'static str> {
    let found = PHRASES.iter().find(|(id, _)| *id == metric);
    found.map(|(_, phrase)| *phrase)
}

/// Last words of identifiers that the unit next to the value makes redundant.
const SAID_BY_THE_UNIT: &[&str] = &["time", "throughput", "rate", "bandwidth", "latency", "size"];

/// The name of the metric with this identifier in a row: `syscall.getppid.time` is `syscall getppid`.
pub(crate) fn spoken(metric: &str) -> String {
    let mut parts: Vec<&str> = metric.split('.').collect();
    if parts.len() > 2
        && parts
            .last()
            .is_some_and(|last| SAID_BY_THE_UNIT.contains(last))
    {
        parts.pop();
    }
    parts.join(" ").replace(['-', '_'], " ")
}

/// Capitalises a text and ends it with a full stop.
pub(crate) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(char::to_uppercase);
    let text: String = first.into_iter().flatten().chain(letters).collect();
    if text.is_empty() || text.ends_with('.') {
        text
    } else {
        text + "."
    }
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
