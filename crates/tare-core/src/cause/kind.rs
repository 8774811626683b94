//! Classifies a cell by the resource that its metric depends on.
//!
//! A cause explains only some kinds: a seccomp filter does not affect a loop without syscalls. The kind is read from
//! the metric's name, whose first word is its domain or its tool.
//! Limits: does not know what a user's command does; that is [`Kind::Any`], and counters decide.

use tare_model::dossier::DossierCell;

/// The resource that a metric depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Arithmetic and branches in user space.
    Compute,
    /// The same, by an interpreter or through dependent loads: sensitive to stores that are soon loaded again.
    Interpreted,
    /// Dense linear algebra by multithreaded libraries.
    Matrix,
    /// Bandwidth and latency of memory that is already mapped.
    Memory,
    /// Pages touched for the first time.
    Touch,
    /// Syscalls, pipes, processes.
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
    /// An unknown command.
    Any,
}

/// Kinds by prefix of the metric's name, longer prefixes first.
const BY_METRIC: &[(&str, Kind)] = &[
    ("cpu.matrix", Kind::Matrix),
    ("cpu.chase", Kind::Interpreted),
    ("cpu.", Kind::Compute),
    ("environment.", Kind::Compute),
    ("lock.contended", Kind::Kernel),
    ("lock.", Kind::Compute),
    ("random.kernel", Kind::Kernel),
    ("random.", Kind::Compute),
    ("task.call", Kind::Compute),
    ("task.", Kind::Kernel),
    ("thread.", Kind::Kernel),
    ("timer.", Kind::Kernel),
    ("blas", Kind::Matrix),
    ("php.", Kind::Metadata),
    ("python.files", Kind::Disk),
    ("python.pi-numpy", Kind::Matrix),
    ("python", Kind::Interpreted),
    ("pyperf", Kind::Interpreted),
    ("dotnet", Kind::Interpreted),
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
    ("sysbench.cached-block", Kind::Memory),
    ("sysbench.file", Kind::Disk),
    ("hpcc.hpl", Kind::Matrix),
    ("hpcc.dgemm", Kind::Matrix),
    ("hpcc.stream", Kind::Memory),
    ("hpcc.random", Kind::Memory),
    ("hpcc.ptrans", Kind::Memory),
    ("hpcc.fft", Kind::Compute),
    ("hpcc.ping-pong", Kind::Network),
    ("hpcc.ring", Kind::Network),
    ("redis.", Kind::Network),
    ("service.", Kind::Network),
];

/// First words of the metrics of Tare's built-in probes, which are the same bytes in every arm.
const OWN: &[&str] = &tare_model::rows! {
    "clock.", "cpu.", "disk.copy-up.", "disk.fsync.", "disk.random-read", "disk.sequential-read",
    "environment.", "fs.", "ipc.", "lock.", "mem.", "net.tcp.", "net.udp.", "proc.", "random.", "start-up.",
    "stdio.", "syscall.", "task.", "thread.", "timer.",
};

/// Whether the cell is one of Tare's built-in probes: static, the same bytes everywhere.
pub fn is_own_probe(cell: &DossierCell) -> bool {
    OWN.iter().any(|prefix| cell.metric.starts_with(prefix))
}

impl Kind {
    /// Returns the kind of a cell.
    pub fn for_cell(cell: &DossierCell) -> Self {
        let by_metric = BY_METRIC
            .iter()
            .find(|(prefix, _)| cell.metric.starts_with(prefix));
        by_metric.map_or(Self::Any, |(_, kind)| *kind)
    }

    /// Returns every kind except these and `Kind::Any`.
    pub fn all_but(left_out: &[Self]) -> Vec<Self> {
        let known = BY_METRIC.iter().map(|(_, kind)| *kind);
        known.filter(|kind| !left_out.contains(kind)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::composed::cell;
    use super::*;

    /// Workloads that run a program of the user's choice; every other program is named as a tool.
    const COMMANDS: [&str; 3] = ["command", "compared-command", "user-command"];
    /// Runs the server that a parameter names.
    const SERVER: &str = "service";
    /// A parameter decides which resource it uses.
    const OF_ALL_KINDS: &str = "stress-ng";

    #[test]
    fn every_metric_but_a_commands_own_is_of_a_known_kind() {
        let mut wrong = Vec::new();
        for workload in crate::workload::WORKLOADS {
            for metric in workload.metrics() {
                let is_known = Kind::for_cell(&cell(metric.id, 1.0)) != Kind::Any;
                let id = workload.id();
                if is_known == (COMMANDS.contains(&id) || id == OF_ALL_KINDS) {
                    wrong.push(metric.id);
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
        assert_eq!(
            Kind::for_cell(&cell("cpu.matrix.inverse.time", 1.0)),
            Kind::Matrix
        );
    }

    #[test]
    fn own_probes_are_those_that_run_no_other_program() {
        let mut wrong = Vec::new();
        for workload in crate::workload::WORKLOADS {
            let runs_another = COMMANDS.contains(&workload.id())
                || workload.id() == SERVER
                || !workload.tools(&tare_model::Params::new()).is_empty();
            for metric in workload.metrics() {
                if is_own_probe(&cell(metric.id, 1.0)) == runs_another {
                    wrong.push(metric.id);
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:?}");
    }
}
