//! Page faults on first touch: pages must be allocated before they can be used.
//!
//! Limits: does not know whether the hypervisor had to allocate a page as well.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Faults];

pub(super) static CAUSE: Entry = Entry {
    id: "memory.first-touch",
    title: "Touching memory for the first time costs more",
    mechanism: "The first write to a page enters the kernel, which finds and clears one; in a guest the hypervisor may \
                have to do the same once more. Memory that was given back, by an allocator, a balloon or a report of \
                free pages, has to be found again.",
    needs: &[
        counter::MINFLT,
        counter::SYS,
        "cells of mem.touch",
        fact::HYPERVISOR_VENDOR,
    ],
    size: "2.0–3.7 µs for each first touch of 4 KiB in a guest; a map, touch and unmap took 5.8 µs on a host and as much \
           in every kind of container on it.",
    advice: "Measure warm and cold separately; keep memory instead of giving it back (the allocator's trim threshold); \
             allocate ahead what latency depends on.",
    price: "Memory that is kept is not there for others.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let touched = case.costs_only(&[Kind::Touch]);
    let cells = case.costs(&[Kind::Touch, Kind::Memory]);
    let faulting = case.led_by(&cells, FAMILIES);
    let which = if faulting.is_empty() {
        touched
    } else {
        faulting.clone()
    };
    case.largest(&which)?;
    let faults = case.counter(&which, counter::MINFLT);
    let likelihood = if faulting.is_empty() { 0.5 } else { 0.85 };
    let is_command = which
        .iter()
        .any(|index| Kind::for_cell(&case.cells[*index]) == Kind::Any);
    Some(
        case.found(
            &which,
            likelihood,
            "Making pages at their first touch costs more in the arm",
        )
        .seen(match faults {
            Some((there, here)) => {
                format!("{here:.0} page faults per unit of work, in the baseline {there:.0}")
            }
            None => case.cost_clause(&which),
        })
        .also_seen(
            case.fact(fact::HYPERVISOR_VENDOR)
                .filter(|name| *name != "none")
                .map(|name| format!("it runs under `{name}`")),
        )
        .because(FAMILIES)
        .with_counterfactual(if is_command {
            switch::variables(&[
                ("MALLOC_TRIM_THRESHOLD_", "1073741824".to_owned()),
                ("MALLOC_MMAP_THRESHOLD_", "1073741824".to_owned()),
            ])
        } else {
            switch::not_here("the first touch is what this workload measures")
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_touch_is_suspected_by_count_or_measurement() {
        let faults = |arm: f64| {
            Composed::new("docker")
                .cost("command.wall.time", 2.0)
                .took("command", (1e9, 2e9), (0.5e9, 0.5e9), (0.1e9, 1.1e9))
                .counted("command", &[("minflt", 1e3, arm)])
        };
        check(
            &CAUSE,
            &[Composed::new("vm").cost("mem.touch.time", 3.0), faults(3e5)],
            &[faults(1e3), Composed::new("vm").cost("mem.triad.rate", 1.2)],
        );
    }
}
