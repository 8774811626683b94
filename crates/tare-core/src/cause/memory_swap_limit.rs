//! Little or no swap behind a memory limit.
//!
//! Limits: does not see swapping of the whole machine.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Device, Family::Faults];

pub(super) static CAUSE: Entry = Entry {
    id: "memory.swap-limit",
    title: "The limit leaves no swap, so that pressure falls on the page cache",
    mechanism: "A memory limit usually comes with one on swap. Where none is left, memory that is not used cannot be put \
                aside, and the kernel takes the page cache or kills instead.",
    needs: &[
        fact::CGROUP_SWAP_MAX,
        fact::CGROUP_MEMSW_LIMIT,
        counter::MEMORY_LIMIT_HITS,
        counter::MAJFLT,
    ],
    size: "From a few slow faults to a killed program; an engine gives twice the memory limit by default.",
    advice: "Allow some swap behind the limit, or raise the limit to the working set.",
    price: "Swapping wears disks and delays what was put aside.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let limit = memory_limit(&case.arm.facts)?;
    let no_swap = case.fact(fact::CGROUP_SWAP_MAX) == Some("0")
        || case
            .number(fact::CGROUP_MEMSW_LIMIT)
            .is_some_and(|both| both <= limit as f64);
    let cells = case.costs(&[Kind::Memory, Kind::Touch, Kind::Disk]);
    let (there, here) = case.counter(&cells, counter::MEMORY_LIMIT_HITS)?;
    if !no_swap || here <= there {
        return None;
    }
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            0.5,
            "The arm reaches its memory limit with no swap behind it",
        )
        .seen(format!(
            "the limit was reached {here:.2} times per unit of work, and no swap is allowed"
        ))
        .with_counterfactual(switch::without(case, "memory")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_was_reached_without_swap_is_suspected() {
        let limited = |swap: &str, hits: f64| {
            Composed::new("docker")
                .fact("cgroup.memory.max", "67108864")
                .fact("cgroup.memory.swap.max", swap)
                .cost("mem.random.time", 3.0)
                .counted("mem", &[("memory_limit_hits", 0.0, hits)])
        };
        check(
            &CAUSE,
            &[limited("0", 12.0)],
            &[
                limited("67108864", 12.0),
                limited("0", 0.0),
                Composed::new("docker")
                    .fact("cgroup.memory.swap.max", "0")
                    .cost("mem.random.time", 3.0),
            ],
        );
    }
}
