//! Fewer CPUs, SMT siblings of one core, or memory on another NUMA node.
//!
//! Limits: does not know on which node a process's pages are.

use super::prelude::*;
use super::triage::Family::{Contention, OtherCode, Spin, Waiting};

const FAMILIES: &[Family] = &[OtherCode, Contention, Spin, Waiting];

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.cpuset-numa-smt",
    title: "The processors that may be used are fewer, share cores, or lie far from the memory",
    mechanism: "A set of processors may hold both halves of one core, which share its units, or processors of one node \
                and memory of another. Engines' filters often deny the calls with which a program could put that right.",
    needs: &[
        fact::CPU_AFFINITY,
        fact::CPU_CORES,
        fact::STATUS_MEMS_ALLOWED,
        fact::NUMA_NODES,
    ],
    size: "As many times as there are fewer processors, for work in several threads; far memory answers later than near \
           memory by a share that depends on the machine.",
    advice: "Give both sides the same processors, whole cores, and memory of the same node.",
    price: "Sets of whole cores leave parts of the machine unused.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cores = |facts: &Facts| {
        let cpus = cpus_in(facts.get(fact::CPU_AFFINITY)?)?;
        let cores = number(facts, fact::CPU_CORES)?;
        Some(cpus as f64 / cores)
    };
    let halves = cores(&case.baseline.facts)
        .zip(cores(&case.arm.facts))
        .filter(|(there, here)| here > there);
    let counts = case
        .differs(fact::CPU_AFFINITY)
        .and_then(|(there, here)| Some((cpus_in(there)?, cpus_in(here)?)));
    let fewer = counts.filter(|(there, here)| here < there);
    let nodes = case.differs(fact::STATUS_MEMS_ALLOWED);
    if halves.is_none() && fewer.is_none() && nodes.is_none() {
        return None;
    }
    let mut kinds = vec![Kind::Matrix, Kind::Compute, Kind::Interpreted];
    if nodes.is_some() {
        kinds.push(Kind::Memory);
    }
    let cells: Vec<usize> = case
        .costs(&kinds)
        .into_iter()
        // A single thread does not need the other CPUs, unless several instances share them.
        .filter(|index| {
            let cell = &case.cells[*index];
            let is_alone = is_own_probe(cell) || is_single(case);
            nodes.is_some() || !is_alone || cell.instances > 1
        })
        .collect();
    Some(
        case.fitting(FAMILIES, &cells,
            if fewer.is_some() || halves.is_some() { 0.55 } else { 0.4 },
            match fewer {
                Some((there, here)) => format!("The arm has {here} processors where the baseline has {there}"),
                None => "The arm's processors lie otherwise on cores and memory nodes than the baseline's".to_owned(),
            },
        )
        .seen_differing("processors", case.differs(fact::CPU_AFFINITY))
        .also_seen(halves.map(|(there, here)| format!("{here:.1} of them to a core, in the baseline {there:.1}")))
        .seen_differing("memory nodes", nodes)
        .with_counterfactual(switch::without(case, "cpuset")),
    )
}

/// Whether the command was observed to run as a single thread.
fn is_single(case: &Case<'_>) -> bool {
    case.number(fact::COMMAND_THREADS) == Some(1.0)
        && case.number(fact::COMMAND_PROCESSES) == Some(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_cpuset_is_suspected_for_parallel_work() {
        let cpus = |there: &str, here: &str, metric: &str| {
            Composed::new("docker")
                .setting("cpuset", here)
                .differing("cpu.affinity", there, here)
                .cost(metric, 2.0)
        };
        check(
            &CAUSE,
            &[
                cpus("0-3", "0", "command.wall.time"),
                cpus("0-3", "0", "command.wall.time")
                    .fact("command.threads", "1")
                    .fact("command.processes", "2"),
                cpus("0,2", "0-1", "hpcc.hpl.rate").differing("cpu.cores", "2", "1"),
                Composed::new("docker")
                    .differing("status.Mems_allowed_list", "0-1", "1")
                    .cost("mem.triad.rate", 1.5),
            ],
            &[
                cpus("0-3", "0", "cpu.integer.time"),
                cpus("0-3", "0-3", "command.wall.time"),
                cpus("0", "0-3", "command.wall.time"),
                cpus("0-3", "0", "command.wall.time")
                    .fact("command.threads", "1")
                    .fact("command.processes", "1"),
            ],
        );
    }
}
