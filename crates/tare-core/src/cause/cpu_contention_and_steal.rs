//! Contention: other work on the same kernel, or on the same CPU below it (steal time).
//!
//! Limits: misses threads of a process other than the first, and neighbours under a hypervisor that reports no steal
//! time.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Contention, Family::Steal];

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.contention-and-steal",
    title: "Other work had the processor, on this kernel or under it",
    mechanism: "A thread that could run and has no processor waits for a competitor on the same kernel, or the \
                hypervisor has given the processor to another guest. Neither is a cost of the environment, and both \
                change from one minute to the next.",
    needs: &[
        counter::RUN_DELAY,
        counter::STEAL,
        fact::CPU_AFFINITY,
        "settings: cpuset",
        "flags of the cells",
    ],
    size: "Up to the number of competitors; typical values wandered by 30–60 % on a shared machine while the best of \
           many repeated within 1–2 %.",
    advice: "Repeat when the machine is quiet, pin both sides to processors of their own, and compare paired trials; \
             do not conclude from this run.",
    price: "Dedicated processors cost money.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let all = case.costs(&Kind::all_but(&[Kind::CopyUp, Kind::StartUp]));
    let cells: Vec<usize> = all
        .into_iter()
        .filter(|index| {
            let leads = case.leads(&[*index]);
            leads
                .first()
                .is_some_and(|lead| FAMILIES.contains(&lead.family))
        })
        .collect();
    case.largest(&cells)?;
    let who = if case.shows(&cells, &[Family::Steal]) {
        "the hypervisor gave the processor to others"
    } else {
        "other work on this kernel had the processor"
    };
    Some(
        case.found(&cells, 0.75, format!("While the arm was measured, {who}"))
            .because(FAMILIES)
            .with_counterfactual(switch::other_cpus(case)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_wait_is_suspected_and_cpu_use_is_not() {
        let counted = |delay: f64, steal: f64, user: f64| {
            let counters = [
                ("wall_ns", 1e9, 2e9),
                ("user_ns", 0.9e9, user),
                ("sys_ns", 0.0, 0.0),
                ("run_delay_ns", 0.0, delay),
                ("steal_ticks", 0.0, steal),
                ("throttled_ns", 0.0, 0.0),
            ];
            Composed::new("docker")
                .cost("cpu.integer.time", 2.0)
                .counted("cpu", &counters)
        };
        check(
            &CAUSE,
            &[counted(0.9e9, 0.0, 0.9e9), counted(0.0, 90.0, 0.9e9)],
            &[
                counted(0.0, 0.0, 1.9e9),
                Composed::new("docker").cost("cpu.integer.time", 2.0),
            ],
        );
    }
}
