//! What a cell is made of: which resource its metric leans on.
//!
//! A cause explains costs of some kinds only: a filter on system calls says nothing about a loop without any.
//! Read from the metric's name, whose first word is its domain; names of well-known tools are sorted by hand.
//! What it cannot see: what a user's own command does; that is [`Kind::Any`], and counters decide.

use tare_model::dossier::DossierCell;

/// What a metric leans on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Arithmetic and branches in user space.
    Compute,
    /// The same, by an interpreter or through dependent loads: leans on stores that are soon loaded again.
    Interpreted,
    /// Dense linear algebra, as libraries do it in several threads.
    Matrix,
    /// Bandwidth and latency of memory that is there already.
    Memory,
    /// Pages touched for the first time.
    Touch,
    /// System calls, pipes, processes.
    Kernel,
    /// Reading the time.
    Clock,
    /// Looking up, creating and removing files.
    Metadata,
    /// The first write to a file of a lower layer.
    CopyUp,
    /// Bytes to and from files and devices.
    Disk,
    /// Sockets.
    Network,
    /// Creating and removing environments.
    StartUp,
    /// Lines to standard output.
    Output,
    /// A command of which nothing is known.
    Any,
}

/// By the beginning of the metric's name, the longest first.
const BY_METRIC: &[(&str, Kind)] = &[
    ("cpu.matrix", Kind::Matrix),
    ("cpu.chase", Kind::Interpreted),
    ("cpu.", Kind::Compute),
    ("python.numpy", Kind::Matrix),
    ("python", Kind::Interpreted),
    ("pyperf", Kind::Interpreted),
    ("mem.touch", Kind::Touch),
    ("mem.", Kind::Memory),
    ("syscall.", Kind::Kernel),
    ("ipc.", Kind::Kernel),
    ("proc.", Kind::Kernel),
    ("clock.", Kind::Clock),
    ("fs.", Kind::Metadata),
    ("disk.copy-up", Kind::CopyUp),
    ("disk.", Kind::Disk),
    ("net.", Kind::Network),
    ("start-up.", Kind::StartUp),
    ("stdio.", Kind::Output),
    ("sysbench.cpu", Kind::Compute),
    ("sysbench.memory", Kind::Memory),
    ("sysbench.fileio", Kind::Disk),
    ("stress-ng.cpu", Kind::Compute),
    ("stress-ng.vm", Kind::Touch),
    ("fio", Kind::Disk),
    ("iozone", Kind::Disk),
    ("iperf3", Kind::Network),
    ("ping", Kind::Network),
    ("netcat", Kind::Network),
    ("hpcc.hpl", Kind::Matrix),
    ("hpcc.dgemm", Kind::Matrix),
    ("hpcc.stream", Kind::Memory),
    ("hpcc.random", Kind::Memory),
];

/// First words of the metrics of Tare's own probes, which are the same bytes in every arm.
const OWN: &[&str] = &[
    "cpu.",
    "mem.",
    "syscall.",
    "ipc.",
    "proc.",
    "clock.",
    "fs.",
    "disk.",
    "net.",
    "start-up.",
];

/// Whether the cell is one of Tare's own probes: one thread, static, the same bytes everywhere.
pub fn is_own_probe(cell: &DossierCell) -> bool {
    OWN.iter().any(|prefix| cell.metric.starts_with(prefix))
}

impl Kind {
    /// What the cell leans on.
    pub fn of(cell: &DossierCell) -> Self {
        let by_metric = BY_METRIC
            .iter()
            .find(|(prefix, _)| cell.metric.starts_with(prefix));
        by_metric.map_or(Self::Any, |(_, kind)| *kind)
    }
}

#[cfg(test)]
mod tests {
    use super::super::composed::cell;
    use super::*;

    #[test]
    fn every_metric_of_every_probe_is_of_a_known_kind() {
        for workload in crate::workload::WORKLOADS {
            for metric in workload.metrics() {
                let cell = cell(metric.id, 1.0);
                if is_own_probe(&cell) {
                    assert_ne!(Kind::of(&cell), Kind::Any, "{}", metric.id);
                }
            }
        }
        assert_eq!(Kind::of(&cell("command.wall.time", 1.0)), Kind::Any);
        assert_eq!(
            Kind::of(&cell("cpu.matrix.inverse.time", 1.0)),
            Kind::Matrix
        );
    }
}
