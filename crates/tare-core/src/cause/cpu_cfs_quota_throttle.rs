//! A CPU quota that throttles the whole cgroup until the next period.
//!
//! That a limit exists is a fact; that it took effect shows only in counters taken around the work. A count of zero
//! does not clear the limit: on a busy machine a cgroup may wait so long for a CPU that it never uses up its share.
//! Limits: misses the tail latency of single requests, where a quota hurts most.

use super::prelude::*;

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.cfs-quota-throttle",
    title: "A processor quota stops the group in the middle of its work",
    mechanism: "A quota is a sum of processor time per period of 100 ms for all threads of the group together. Several \
                threads use it up in a fraction of the period, and then all of them sleep until the next one begins, \
                although the average use may be far below the limit.",
    needs: &[
        fact::CGROUP_CPU_MAX,
        fact::CGROUP_CFS_QUOTA,
        counter::THROTTLED,
        counter::NR_THROTTLED,
        counter::RUN_DELAY,
    ],
    size: "Two threads with bursts of 8 ms: typically 8–15 ms without a limit, 65 ms and at worst 75 ms with a quota of \
           0.2 processors, stopped in 48 of 49 periods.",
    advice: "For latency, give a set of processors or a weight instead of a quota, or match the number of threads to the \
             quota; raise the quota where the work needs it.",
    price: "Without a quota a neighbour that runs wild can take the processors; on shared machines the quota is what is \
            paid for.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let here = quota(&case.arm.facts)?;
    if quota(&case.baseline.facts).is_some_and(|there| there <= here) {
        return None;
    }
    let cells = case.costs(&Kind::all_but(&[Kind::CopyUp, Kind::Disk, Kind::StartUp]));
    let leads = case.leads(&cells);
    let is_stopped = case.shows(&cells, &[Family::Quota]);
    let likelihood = if is_stopped {
        0.95
    } else if leads.is_empty() {
        0.6
    } else {
        0.25
    };
    let stopped = case.led_by(&cells, &[Family::Quota]);
    let cells = if stopped.is_empty() { cells } else { stopped };
    let found = case.found(&cells, likelihood, format!("A quota of {here} processors stops the arm"))
    .seen(match quota(&case.baseline.facts) {
        Some(there) => format!("a quota of {here} processors, in the baseline {there}"),
        None => format!("a quota of {here} processors, in the baseline none"),
    })
    .also_seen((!is_stopped && !leads.is_empty()).then(|| {
        "the group's count of throttled periods did not grow, which does not clear the limit on a busy machine".to_owned()
    }))
    .because(&[Family::Quota]);
    Some(found.with_counterfactual(switch::cpuset_for_quota(case, here)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_quota() -> Composed {
        Composed::new("docker")
            .setting("cpus", 0.5)
            .fact("cgroup.cpu.max", "50000 100000")
            .base("cgroup.cpu.max", "max 100000")
            .cost("cpu.integer.time", 2.1)
    }

    fn counted(throttled: f64) -> Composed {
        let counters = [
            ("wall_ns", 1e8, 2.1e8),
            ("user_ns", 1e8, 1e8),
            ("sys_ns", 0.0, 0.0),
            ("throttled_ns", 0.0, throttled),
            ("run_delay_ns", 0.0, 1e8),
        ];
        with_quota().counted("cpu", &counters)
    }

    #[test]
    fn a_quota_of_the_arm_alone_is_suspected() {
        check(
            &CAUSE,
            &[with_quota(), counted(1.05e8), counted(0.0)],
            &[
                with_quota().fact("cgroup.cpu.max", "max 100000"),
                with_quota().base("cgroup.cpu.max", "50000 100000"),
                Composed::new("docker")
                    .fact("cgroup.cpu.max", "50000 100000")
                    .cost("start-up.ready.time", 9.0),
            ],
        );
    }

    #[test]
    fn throttle_counter_determines_quota_likelihood() {
        let likelihood = |composed: Composed| composed.suspects(&CAUSE).unwrap().likelihood;
        assert!(likelihood(counted(1.05e8)) > likelihood(with_quota()));
        assert!(likelihood(with_quota()) > likelihood(counted(0.0)));
        let proof = format!(
            "{:?}",
            with_quota().suspects(&CAUSE).unwrap().counterfactual
        );
        assert!(proof.contains("cpuset"), "{proof}");
    }
}
