//! Language runtimes that choose another algorithm by the limits that they find.
//!
//! Limits: does not know which runtime a command uses; the variables of several are set to prove it.

use super::prelude::*;
use super::triage::Family::{Contention, Faults, OtherCode, Quota, Spin};

/// Below these a JVM considers itself a client and uses a single-threaded garbage collector.
const CLIENT_CPUS: f64 = 2.0;
const CLIENT_BYTES: u64 = 1792 << 20;
const FAMILIES: &[Family] = &[OtherCode, Spin, Quota, Contention, Faults];

pub(super) static CAUSE: Entry = Entry {
    id: "runtime.ergonomics",
    title: "A language runtime chooses other collectors and pools from the limits",
    mechanism: "Runtimes read the limits of their cgroup and choose their garbage collector, the size of their \
                heap and the number of their threads by them. A limit then changes the algorithm and not only the speed.",
    needs: &[
        fact::CGROUP_CPU_MAX,
        fact::CGROUP_MEMORY_MAX,
        fact::CPU_AFFINITY,
        fact::VARIABLE_JAVA,
    ],
    size: "Slow percentiles several times as high where a collector with one thread replaced a concurrent one (reports).",
    advice: "Name the collector, the heap and the number of processors on both sides instead of letting the runtime \
             guess.",
    price: "Memory for a heap that is set by hand; nothing in security.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let cells = case.costs(&[]);
    // Every such runtime has threads in addition to the program's.
    let threads = case.counter(&cells, counter::THREADS);
    if threads.is_some_and(|(there, here)| there.max(here) < 2.0) {
        return None;
    }
    let [there, here] = [case.baseline, case.arm].map(|side| usable_cpus(&side.facts));
    let fewer = here.is_some_and(|here| here < CLIENT_CPUS)
        && there.is_some_and(|there| there >= CLIENT_CPUS);
    let limit = memory_limit(&case.arm.facts);
    let less = limit.is_some_and(|bytes| bytes < CLIENT_BYTES)
        && memory_limit(&case.baseline.facts).is_none_or(|there| there >= CLIENT_BYTES);
    if !fewer && !less {
        return None;
    }
    let count = here.map_or(1.0, |here| here.ceil().max(1.0));
    Some(
        case.fitting(FAMILIES, &cells, 0.3, "The arm's limits are those at which language runtimes choose other collectors and pools")
            .also_seen(here.zip(there).filter(|_| fewer).map(|(here, there)| format!("{here} usable processors, in the baseline {there}")))
            .also_seen(limit.filter(|_| less).map(|limit| format!("a memory limit of {}", bytes(limit as f64))))
            .with_counterfactual(switch::variables(&[
                ("JAVA_TOOL_OPTIONS", format!("-XX:+UseG1GC -XX:ActiveProcessorCount={count:.0}")),
                ("DOTNET_gcServer", "0".to_owned()),
                ("GOMAXPROCS", format!("{count:.0}")),
                ("UV_THREADPOOL_SIZE", "4".to_owned()),
            ])),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_below_runtime_thresholds_are_suspected() {
        let arm = |quota: &str, metric: &str| {
            Composed::new("docker")
                .both("cpu.affinity", "0-3")
                .fact("cgroup.cpu.max", quota)
                .cost(metric, 2.0)
        };
        check(
            &CAUSE,
            &[
                arm("100000 100000", "command.wall.time"),
                arm("100000 100000", "command.wall.time")
                    .counted("command", &[("threads", 12.0, 12.0)]),
                Composed::new("docker")
                    .fact("cgroup.memory.max", "536870912")
                    .cost("command.wall.time", 2.0),
            ],
            &[
                arm("max 100000", "command.wall.time"),
                arm("100000 100000", "command.wall.time")
                    .counted("command", &[("threads", 1.0, 1.0)]),
                arm("300000 100000", "command.wall.time"),
                arm("100000 100000", "cpu.integer.time"),
                Composed::new("docker")
                    .fact("cgroup.memory.max", "4294967296")
                    .cost("command.wall.time", 2.0),
            ],
        );
    }
}
