//! A memory limit that includes the page cache, and the reclaim that follows.
//!
//! A limit that was never reached explains nothing; the cgroup counts how often it was. Limits: misses programs that
//! size themselves by the machine's memory and are killed, because they leave no cell.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Device, Family::Faults, Family::CostlierCalls];

pub(super) static CAUSE: Entry = Entry {
    id: "memory.limit-cache-and-oom",
    title: "The memory limit is reached, and page cache counts towards it",
    mechanism: "A cgroup is charged for the file pages that it reads first, for tmpfs and for socket buffers, and \
                gives pages back at the limit. Work on files then reads from the device again although the machine has \
                memory to spare, and a program that trusts the machine's memory is killed.",
    needs: &[
        fact::CGROUP_MEMORY_MAX,
        fact::CGROUP_MEMORY_LIMIT,
        counter::MEMORY_LIMIT_HITS,
        counter::MAJFLT,
        counter::READ_BYTES,
    ],
    size: "A file of 100 MB, cold: 4.7–5.5 GB/s under a limit of 512 MiB, 1.2–1.5 GB/s under one of 64 MiB.",
    advice: "Let the limit hold the working set and the cache that the work needs, and set the sizes of heaps from the \
             limit.",
    price: "More memory is reserved; without any limit one program can exhaust the machine's.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let here = memory_limit(&case.arm.facts)?;
    if memory_limit(&case.baseline.facts).is_some_and(|there| there <= here) {
        return None;
    }
    let cells = case.costs(&[Kind::Disk, Kind::Memory, Kind::Touch, Kind::Matrix]);
    let hits = case.counter(&cells, counter::MEMORY_LIMIT_HITS);
    let likelihood = match hits {
        Some((there, here)) if here > there => 0.92,
        Some(_) => return None,
        None => 0.45 * case.fit(&cells, FAMILIES),
    };
    Some(
        case.found(&cells, likelihood, format!("The arm reaches its memory limit of {}", bytes(here as f64)))
        .seen(format!("a memory limit of {}, which page cache counts towards", bytes(here as f64)))
        .also_seen(hits.map(|(there, here)| format!("the limit was reached {here:.2} times per unit of work, in the baseline {there:.2} times")))
        .because(FAMILIES)
        .with_counterfactual(switch::without(case, "memory")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_limit_is_suspected_only_if_reached() {
        let limited = || {
            Composed::new("docker")
                .setting("memory", "64m")
                .fact("cgroup.memory.limit_in_bytes", "67108864")
                .base("cgroup.memory.limit_in_bytes", "9223372036854771712")
                .cost("disk.fio-read.rate", 4.0)
        };
        let hits = |arm: f64| limited().counted("disk", &[("memory_limit_hits", 0.0, arm)]);
        check(
            &CAUSE,
            &[limited(), hits(458.0)],
            &[
                hits(0.0),
                limited().fact("cgroup.memory.limit_in_bytes", "9223372036854771712"),
                limited().base("cgroup.memory.limit_in_bytes", "67108864"),
                Composed::new("docker")
                    .fact("cgroup.memory.max", "67108864")
                    .cost("syscall.getppid.time", 1.2),
            ],
        );
    }
}
