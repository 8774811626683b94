//! What a person would call a metric in a sentence: `fs.create.time` is "creating a file".
//!
//! For the answer above a table alone; rows are called by their identifiers, which are what a study, a filter or another
//! report names. A metric that is not here is called as in its row.
//! What it cannot see: parameters. Who names a cell adds what tells it from others.

/// The phrase of each metric; so much more or less of it is the rest of the sentence.
const PHRASES: &[(&str, &str)] = &tare_model::rows! {
    ("clock.syscall.time", "reading the clock by a system call"),
    ("clock.vdso.time", "reading the clock without a call"),
    ("cpu.chase.time", "loads that overtake stores"),
    ("cpu.float.time", "floating-point arithmetic"),
    ("cpu.integer.time", "integer arithmetic"),
    ("cpu.matrix.add.time", "adding matrices"),
    ("cpu.matrix.inverse.time", "inverting a matrix"),
    ("cpu.matrix.multiply.time", "multiplying matrices"),
    ("cpu.matrix.transpose.time", "transposing a matrix"),
    ("disk.fsync.time", "forcing a write to the disk"),
    ("disk.random-read-qd1.time", "a random read of the disk by io_uring"),
    ("disk.random-read-qd32.rate", "32 random reads of the disk at once"),
    ("disk.random-read-sync.time", "a random read of the disk"),
    ("disk.sequential-read-sync.rate", "reading the disk in sequence"),
    ("disk.sequential-read.rate", "reading the disk in sequence by io_uring"),
    ("fs.create.time", "creating a file"),
    ("fs.mkdir.time", "making a directory"),
    ("fs.missing-file.time", "looking for a file that is not there"),
    ("fs.page-load.time", "reading a tree of source files"),
    ("fs.readdir.time", "listing a directory"),
    ("fs.rmdir.time", "removing a directory"),
    ("fs.stat-path.time", "looking up a file five folders down"),
    ("fs.stat.time", "looking up the root folder"),
    ("fs.unlink.time", "removing a file"),
    ("fs.write.time", "writing a small file"),
    ("ipc.pipe.round-trip.time", "a round trip through a pipe"),
    ("lock.contended.time", "a mutex that two threads want"),
    ("lock.mutex.time", "a mutex that nobody else wants"),
    ("mem.allocate-large.time", "allocating a large block"),
    ("mem.allocate.time", "allocating a small block"),
    ("mem.random.time", "a random access to memory"),
    ("mem.touch.time", "the first write to a page of memory"),
    ("mem.triad.rate", "streaming through memory"),
    ("net.tcp.connect.time", "opening a TCP connection"),
    ("net.tcp.round-trip.time", "a TCP round trip"),
    ("net.tcp.throughput.rate", "TCP throughput"),
    ("net.udp.round-trip.time", "a UDP round trip"),
    ("proc.spawn.time", "starting a process"),
    ("start-up.disk.size", "disk space of an idle environment"),
    ("start-up.memory.size", "memory of an idle environment"),
    ("start-up.ready.time", "from its creation to its first answer"),
    ("start-up.stop.time", "stopping it"),
    ("start-up.total.time", "from its creation to its removal"),
    ("syscall.getppid.time", "a system call"),
};

/// What a person would call the metric with this identifier.
pub(super) fn of(metric: &str) -> Option<&'static str> {
    let found = PHRASES.iter().find(|(id, _)| *id == metric);
    found.map(|(_, phrase)| *phrase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload;

    #[test]
    fn each_phrase_is_of_one_metric_that_is_there() {
        let metrics = workload::WORKLOADS.iter().flat_map(|it| it.metrics());
        let known: Vec<&str> = metrics.map(|metric| metric.id).collect();
        for (id, phrase) in PHRASES {
            assert!(known.contains(id), "{id}");
            assert_eq!(of(id), Some(*phrase));
        }
        let phrases: std::collections::BTreeSet<_> = PHRASES.iter().map(|(_, it)| it).collect();
        assert_eq!(phrases.len(), PHRASES.len());
    }
}
