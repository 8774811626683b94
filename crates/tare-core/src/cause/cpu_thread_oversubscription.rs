//! More compute threads than usable CPUs.
//!
//! Detected in three ways: user time per unit of work that grows together with involuntary switches, a time that
//! grows far faster than the number of instances, and more threads than CPUs. A quota that libraries do not see is
//! only a hint. Limits: misses pools that grow and shrink between two samples.

use super::prelude::*;
use tare_model::Better;

/// Variables that size the common thread pools.
pub(super) const VARIABLES: &[&str] = &tare_model::rows! {
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "NUMEXPR_MAX_THREADS",
    "GOMAXPROCS", "RAYON_NUM_THREADS", "UV_THREADPOOL_SIZE", "DOTNET_PROCESSOR_COUNT",
};
/// n instances that share the CPUs fairly take n times as long; growth of this many times that is not sharing.
const UNFAIR: f64 = 3.0;

pub(super) static CAUSE: Entry = Entry {
    id: "cpu.thread-oversubscription",
    title: "More compute threads run than processors may be used",
    mechanism: "Libraries size their pools by the processors of the machine or by the affinity mask; they see neither \
                a quota nor the other instances. Threads then spin at barriers while the one that they wait for has \
                no processor, and every further instance multiplies the work instead of sharing it.",
    needs: &[
        counter::USER,
        counter::NIVCSW,
        counter::THREADS,
        fact::CPU_AFFINITY,
        fact::CGROUP_CPU_MAX,
        fact::VARIABLE_OMP_THREADS,
        "cells with several instances",
    ],
    size: "Two processors, OpenBLAS, 500×500 inverse: 0.07 s alone, 1.5 s for each of two instances, 2.2 s for each of \
           three; with one thread 0.11, 0.21 and 0.25 s. Under a quota of one processor 2.4 s with the default of \
           two threads and 0.3 s with one.",
    advice: "Set the pools' sizes from the processors that may really be used (`OMP_NUM_THREADS`, \
             `OPENBLAS_NUM_THREADS`, `GOMAXPROCS`, …), or give the environment a set of processors instead of a quota: \
             libraries honour an affinity mask.",
    price: "Nothing in security; a single job that has the machine to itself may take longer.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.costs(&[Kind::Matrix, Kind::Compute, Kind::Interpreted]);
    let usable = usable_cpus(&case.arm.facts);
    let pinned = VARIABLES.iter().find_map(|name| {
        let value = case.fact(&fact::name_for(fact::VARIABLE, name))?;
        Some((*name, value.parse::<f64>().ok()?))
    });
    if let (Some((_, threads)), Some(usable)) = (pinned, usable)
        && threads <= usable.ceil()
    {
        return None;
    }
    let mut spinning = case.led_by(&cells, &[Family::Spin]);
    spinning.retain(|cell| !is_single(case, *cell));
    let unfair = unfair_growth(case, &cells);
    let threads = case
        .counter(&cells, counter::THREADS)
        .map(|(_, threads)| threads);
    let crowded = threads
        .zip(usable)
        .filter(|(threads, usable)| *threads > 1.0 && *threads > 1.5 * usable);
    let (which, likelihood) = if !spinning.is_empty() {
        (spinning, 0.92)
    } else if let Some((cells, _)) = &unfair {
        (cells.clone(), 0.9)
    } else if crowded.is_some() {
        (cells, 0.75)
    } else {
        (
            hidden_quota(case, &cells)?,
            0.5 * case.fit(
                &cells,
                &[Family::Quota, Family::Contention, Family::OtherCode],
            ),
        )
    };
    let size = usable.map_or(1.0, |usable| usable.floor().max(1.0));
    let allowed = usable.map_or_else(
        || "the processors that may be used".to_owned(),
        |usable| format!("{usable} usable processors"),
    );
    let found = case
        .found(
            &which,
            likelihood,
            format!("More compute threads run than fit on {allowed}"),
        )
        .also_seen(unfair.map(|(_, line)| line))
        .also_seen(
            crowded.map(|(threads, usable)| {
                format!("{threads:.0} threads on {usable} usable processors")
            }),
        )
        .also_seen(quota(&case.arm.facts).map(|quota| {
            format!(
                "a quota of {quota} processors, while {} are visible to a library",
                case.fact(fact::CPU_AFFINITY)
                    .and_then(cpus_in)
                    .map_or_else(|| "more".to_owned(), |count| count.to_string())
            )
        }))
        .also_seen(pinned.map(|(name, threads)| format!("`{name}` asks for {threads} threads")))
        .because(&[Family::Spin]);
    let pairs: Vec<(&str, String)> = VARIABLES
        .iter()
        .map(|name| (*name, format!("{size:.0}")))
        .collect();
    Some(found.with_counterfactual(switch::variables(&pairs)))
}

/// Whether one thread did the work: it waits for no other, and its switches are due to a busy machine.
fn is_single(case: &Case<'_>, cell: usize) -> bool {
    case.counter(&[cell], counter::THREADS)
        .is_some_and(|(_, threads)| threads <= 1.0)
}

/// Cells of several instances whose time in the arm grew far more than n-fold from that of one instance.
fn unfair_growth(case: &Case<'_>, cells: &[usize]) -> Option<(Vec<usize>, String)> {
    let mut found = Vec::new();
    let mut line = None;
    for index in cells {
        let cell = case.cells.get(*index)?;
        if cell.instances < 2 || cell.better != Better::Lower {
            continue;
        }
        let single = case.cells.iter().find(|other| {
            other.instances == 1
                && other.metric == cell.metric
                && other.params == cell.params
                && other.path == cell.path
        });
        let (Some(alone), Some(together)) = (single.and_then(|cell| cell.env), cell.env) else {
            continue;
        };
        let growth = together.point / alone.point;
        if growth > UNFAIR * f64::from(cell.instances) {
            found.push(*index);
            line.get_or_insert(format!(
                "`{}` takes {growth:.0} times as long with {} instances as with one",
                cell.metric, cell.instances
            ));
        }
    }
    Some((found, line?))
}

/// Cells of programs that may have pools, if the quota is smaller than the CPUs that libraries see.
fn hidden_quota(case: &Case<'_>, cells: &[usize]) -> Option<Vec<usize>> {
    let paid = quota(&case.arm.facts)?;
    let visible = case.fact(fact::CPU_AFFINITY).and_then(cpus_in)? as f64;
    // Tare's built-in probes have one thread.
    let mut cells = case.without_probes(cells.to_vec());
    cells.retain(|index| !is_single(case, *index));
    (paid < visible && !cells.is_empty()).then_some(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spinning() -> Composed {
        Composed::new("docker")
            .both("cpu.affinity", "0-1")
            .cost("blas.inverse.time", 6.0)
            .took("blas", (0.2e9, 1.2e9), (0.12e9, 0.7e9), (0.0, 0.0))
            .counted("blas", &[("nivcsw", 36.0, 200.0)])
    }

    fn instances(together: f64) -> Composed {
        let mut one = cell("blas.inverse.time", 0.5);
        one.env = one.base;
        let mut two = cell("blas.inverse.time", 1.2);
        two.instances = 2;
        if let Some(env) = &mut two.env {
            env.point = 100.0 * together;
        }
        Composed::new("docker")
            .both("cpu.affinity", "0-15")
            .cell(one)
            .cell(two)
    }

    #[test]
    fn oversubscription_is_suspected_fair_sharing_is_not() {
        let quota = Composed::new("docker")
            .both("cpu.affinity", "0-7")
            .fact("cgroup.cpu.max", "100000 100000")
            .cost("command.wall.time", 4.0);
        check(
            &CAUSE,
            &[spinning(), instances(198.0), quota.clone()],
            &[
                instances(2.1),
                quota.clone().fact("variable.OMP_NUM_THREADS", "1"),
                spinning().fact("variable.OPENBLAS_NUM_THREADS", "2"),
                Composed::new("docker")
                    .both("cpu.affinity", "0-7")
                    .fact("cgroup.cpu.max", "100000 100000")
                    .cost("cpu.matrix.inverse.time", 4.0),
            ],
        );
    }

    #[test]
    fn a_single_thread_on_a_busy_machine_is_no_crowd() {
        let with = |threads: f64| spinning().counted("blas", &[("threads", 1.0, threads)]);
        assert!(with(1.0).suspects(&CAUSE).is_none());
        assert!(with(2.0).suspects(&CAUSE).is_some());
        // A quota that a library would not see does not hurt a program without a threaded library.
        let under_quota = |threads: f64| with(threads).fact("cgroup.cpu.max", "50000 100000");
        assert!(under_quota(1.0).suspects(&CAUSE).is_none());
        assert!(under_quota(2.0).suspects(&CAUSE).is_some());
    }

    #[test]
    fn thread_pool_counterfactual_is_sized_by_quota() {
        let text = Composed::new("docker")
            .both("cpu.affinity", "0-7")
            .fact("cgroup.cpu.max", "250000 100000")
            .cost("command.wall.time", 4.0)
            .counterfactual(&CAUSE);
        assert!(text.contains(r#""OPENBLAS_NUM_THREADS": "2""#), "{text}");
    }
}
