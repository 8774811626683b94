//! The time to create and remove an environment, charged to a short job.
//!
//! Visible only in the cells of `start-up`: a trial in a warm arm does not pay it. Limits: does not split the time
//! between client, daemon, runtime and kernel; switching the network off shows one part.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "startup.docker-run-constant",
    title: "Setting up and removing the environment is charged to a short job",
    mechanism: "Between the command and the first instruction lie the daemon, the runtime, mounts, cgroups, \
                network devices, packet filter rules and a log file, and all of it again backwards at the end. For a \
                job of less than seconds this constant is most of what a stopwatch outside shows.",
    needs: &[
        "cells of start-up",
        fact::ASKED_NETWORK,
        fact::ENGINE_RUNTIME,
    ],
    size: "Fork and exec 0.5 ms, all namespaces 1.5 ms, crun 9–16 ms, runc 17–23 ms, a compiled filter 21–28 ms more; \
           an engine's `run` 170 ms with the host's namespaces, 277 ms with a network namespace, 330–350 ms by default.",
    advice: "Report start-up next to the steady state and never subtract it blindly; keep a container warm and start \
             further programs in it; a container that needs no network can do without one.",
    price: "A warm container holds memory, and no network means no network; using the host's network instead saves a \
            tenth of a second and loses the separation.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if !case.has(Mechanism::SystemCallFilter) {
        return None;
    }
    let cells = case.costs_only(&[Kind::StartUp]);
    // The whole start, not only the part that a process does fastest.
    let differences = cells.iter().filter_map(|cell| case.cells[*cell].difference);
    let ns = differences.map(|span| span.point).max_by(f64::total_cmp);
    let milliseconds = ns.map(|ns| ns / 1e6);
    let is_engine = case.is_of_engine();
    Some(
        CauseMatch::new(
            cells.clone(),
            if is_engine { 0.9 } else { 0.7 },
            match milliseconds {
                Some(ms) => format!("Each start of the arm costs a constant of about {ms:.0} ms, whatever is run in it."),
                None => format!("Each start of the arm costs a constant: {}.", case.cost_clause(&cells)),
            },
        )
        .seen(case.cost_clause(&cells))
        .also_seen(case.fact(fact::ASKED_NETWORK).map(|mode| format!("the network is `{mode}`")))
        .also_seen(case.fact(fact::ENGINE_RUNTIME).map(|runtime| format!("the runtime is `{runtime}`")))
        .with_counterfactual(switch::host_network(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_start_up_itself_pays_for_start_up() {
        check(
            &CAUSE,
            &[
                Composed::new("docker").cost("start-up.ready.time", 300.0),
                Composed::new("container")
                    .cost("start-up.total.time", 5.0)
                    .cost("cpu.integer.time", 1.5),
            ],
            &[
                Composed::new("docker").cost("command.wall.time", 3.0),
                Composed::new("ssh").cost("start-up.ready.time", 300.0),
                Composed::new("docker").cost("start-up.ready.time", 1.0),
            ],
        );
    }
}
