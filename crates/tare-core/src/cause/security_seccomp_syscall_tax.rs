//! The constant overhead of a seccomp filter: some nanoseconds per syscall.
//!
//! Only for slowdowns that it can explain: those of a single call, or of a command whose calls were counted and add
//! up to enough. Limits: calls other than reads and writes are unknown without a counter.

use super::prelude::*;

/// Overhead per call of a filter that allows by number, in nanoseconds.
const PER_CALL_NS: f64 = 16.0;
/// The same if every call runs the whole filter, as before Linux 5.11.
const PER_CALL_OLD_NS: f64 = 118.0;
/// Share of the extra time that the calls must add up to.
const SHARE: f64 = 0.1;
/// From this kernel on, calls that are always allowed skip the filter's program.
const BITMAP: (u32, u32) = (5, 11);

pub(super) static CAUSE: Entry = Entry {
    id: "security.seccomp-syscall-tax",
    title: "Each system call passes the seccomp filter",
    mechanism: "With a filter each system call takes the slower way into the kernel and a look-up. Since Linux 5.11 calls \
                that are always allowed end there; rules that look at arguments, and all rules before, run the whole \
                program of the filter.",
    needs: &[
        fact::STATUS_SECCOMP,
        fact::STATUS_SECCOMP_FILTERS,
        fact::KERNEL_RELEASE,
        counter::SYSCR,
        counter::SYSCW,
        "cells of syscall and ipc",
    ],
    size: "15 ns a call with an engine's default filter (getppid 92 to 107 ns, a pipe there and back 372 to 410 ns), \
           nothing for plain computation; a filter of 150 rules on an argument 118 ns a call.",
    advice: "Keep the filter and ignore its price below about a million calls a second on a core; make fewer and larger \
             calls where there are more.",
    price: "Nothing, as long as the filter stays; without it the blocked system calls are open again.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if !case.is_filtered() || case.same_kernel() == Some(false) {
        return None;
    }
    let old = kernel(&case.arm.facts).is_some_and(|version| version < BITMAP);
    let per_call = if old { PER_CALL_OLD_NS } else { PER_CALL_NS };
    let costs = case.costs(&[Kind::Kernel, Kind::Metadata, Kind::Clock, Kind::Output]);
    let mut evidence = Vec::new();
    let mut likelihood: f64 = 0.0;
    let cells: Vec<usize> = costs
        .into_iter()
        .filter(|index| {
            let cell = &case.cells[*index];
            let kind = Kind::for_cell(cell);
            if kind == Kind::Any {
                let Some((calls, extra)) = calls_and_extra(case, *index) else { return false };
                let share = calls * per_call / extra;
                if extra <= 0.0 || share < SHARE {
                    return false;
                }
                evidence.push(format!("{calls:.0} counted calls of {per_call:.0} ns each are {:.0} % of the extra time", (share * 100.0).min(100.0)));
                likelihood = likelihood.max(0.6);
                return true;
            }
            let Some(difference) = cell.difference.filter(|_| cell.unit == "ns") else { return false };
            let share = (per_call * calls_in(&cell.metric) / difference.point).min(1.0);
            // Reading the clock without a syscall passes no filter.
            let fits = share >= SHARE && !cell.metric.starts_with("clock.vdso");
            if fits {
                likelihood = likelihood.max(0.9 * share);
            }
            fits
        })
        .collect();
    let largest = case.largest(&cells)?;
    Some(
        CauseMatch::new(
            cells.clone(),
            likelihood,
            match largest
                .difference
                .filter(|_| largest.unit == "ns" && Kind::for_cell(largest) != Kind::Any)
            {
                Some(difference) => {
                    // A trial must decide how much of it is due to the filter.
                    let (metric, cost) = (&largest.metric, words(largest));
                    format!(
                        "System calls pass a seccomp filter, which may be part of the {:.0} ns that `{metric}` takes longer; it {cost}.",
                        difference.point
                    )
                }
                None => format!(
                    "System calls pass a seccomp filter, which may be part of why {}.",
                    case.cost_clause(&cells)
                ),
            },
        )
        .seen(format!(
            "system calls pass {} in the arm and none in the baseline",
            filters(case)
        ))
        .also_seen(evidence)
        .also_seen(old.then(|| {
            "the kernel is older than 5.11, where every call runs the whole filter".to_owned()
        }))
        .with_counterfactual(switch::without_seccomp(case)),
    )
}

/// Number of syscalls in one operation of a probe.
fn calls_in(metric: &str) -> f64 {
    if metric.starts_with("ipc.pipe") {
        2.0
    } else {
        1.0
    }
}

fn filters(case: &Case<'_>) -> String {
    match case.fact(fact::STATUS_SECCOMP_FILTERS) {
        Some("1") | None => "a filter".to_owned(),
        Some(count) => format!("{count} filters"),
    }
}

/// Counted calls and extra wall time of a command, per unit of work.
fn calls_and_extra(case: &Case<'_>, index: usize) -> Option<(f64, f64)> {
    let (base_wall, wall) = case.counter(&[index], counter::WALL)?;
    let (_, read) = case.counter(&[index], counter::SYSCR)?;
    let (_, written) = case.counter(&[index], counter::SYSCW)?;
    Some((read + written, wall - base_wall))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(metric: &str, ratio: f64) -> Composed {
        Composed::new("docker")
            .differing("status.Seccomp", "0", "2")
            .cost(metric, ratio)
    }

    #[test]
    fn seccomp_tax_is_suspected_for_calls_not_compute() {
        let command = |calls: f64| {
            filtered("command.wall.time", 1.2).counted(
                "command",
                &[
                    ("wall_ns", 1e9, 1.2e9),
                    ("syscr", 0.0, calls),
                    ("syscw", 0.0, 0.0),
                ],
            )
        };
        check(
            &CAUSE,
            &[
                filtered("syscall.getppid.time", 1.16),
                filtered("ipc.pipe.round-trip.time", 1.11),
                command(6e6),
            ],
            &[
                filtered("cpu.integer.time", 1.5),
                filtered("clock.vdso.time", 1.5),
                // 57 times as long for a fault of 100 ns is not due to a filter.
                filtered("proc.spawn.time", 57.0),
                command(1e4),
                filtered("command.wall.time", 2.0),
                filtered("fs.stat.time", 3.8),
                filtered("syscall.getppid.time", 1.16).base("status.Seccomp", "2"),
                Composed::new("docker")
                    .fact("status.Seccomp", "2")
                    .cost("syscall.getppid.time", 1.16),
            ],
        );
    }

    #[test]
    fn seccomp_tax_claim_uses_only_measured_numbers() {
        let shown = |ratio: f64| filtered("fs.stat.time", ratio).suspects(&CAUSE).unwrap();
        for (ratio, longer) in [(1.16, "the 16 ns that"), (1.6, "the 60 ns that")] {
            let claim = shown(ratio).claim;
            assert!(claim.contains(longer), "{claim}");
            assert!(!claim.contains("usually"), "{claim}");
        }
        assert!(shown(1.6).likelihood < 0.5 && shown(1.16).likelihood > 0.5);
    }
}
