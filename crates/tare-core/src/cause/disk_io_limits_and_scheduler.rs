//! A limit on bytes or requests per second, or a different I/O scheduler.
//!
//! Limits: misses limits of a cloud volume, which look like a slow disk.

use super::prelude::*;
use tare_model::facts::io_limit;

const FAMILIES: &[Family] = &[Family::Waiting, Family::Device];

pub(super) static CAUSE: Entry = Entry {
    id: "disk.io-limits-and-scheduler",
    title: "A limit on the disk, or another scheduler of its requests",
    mechanism: "A cgroup may be allowed so many bytes or requests a second and waits when they are used up; \
                a scheduler may hold requests back to be fair to others.",
    needs: &[
        fact::CGROUP_IO_MAX,
        fact::CGROUP_BLKIO,
        fact::BLOCK_SCHEDULER,
        fact::ASKED_BLKIO,
    ],
    size: "Exactly the limit: a throughput that hardly varies is its mark.",
    advice: "Raise or remove the limit where the work needs the disk; use no scheduler for fast devices.",
    price: "Neighbours on the same disk.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let limit =
        io_limit(&case.arm.facts).filter(|limit| io_limit(&case.baseline.facts) != Some(*limit));
    let part = |facts| of_work_mount(facts, fact::BLOCK_SCHEDULER).and_then(chosen);
    let scheduler = part(&case.baseline.facts)
        .zip(part(&case.arm.facts))
        .filter(|(there, here)| there != here);
    if limit.is_none() && scheduler.is_none() {
        return None;
    }
    let cells = case.costs(&[Kind::Disk]);
    let strength = if limit.is_some() { 0.88 } else { 0.3 };
    let claim = match limit {
        Some((_, value)) => format!("A limit of `{value}` holds the arm's disk back"),
        None => "Another scheduler orders the arm's requests".to_owned(),
    };
    Some(
        case.found(
            &cells,
            strength * case.fit(&cells, FAMILIES).max(0.6),
            claim,
        )
        .also_seen(
            limit.map(|(name, value)| {
                format!("`{}` is `{value}`", name.trim_start_matches("cgroup."))
            }),
        )
        .seen_differing("the scheduler is", scheduler)
        .because(FAMILIES)
        .with_counterfactual(switch::not_here(
            "the limit comes from outside of the arm's settings",
        )),
    )
}

/// Returns the active scheduler, which the kernel marks with brackets.
fn chosen(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_limit_or_scheduler_of_arm_alone_is_suspected() {
        let limit = |there: &str, here: &str| {
            Composed::new("docker")
                .differing("cgroup.io.max", there, here)
                .cost("disk.sequential-read.rate", 4.0)
        };
        let scheduler = |here: &str| {
            Composed::new("vm")
                .both("mount./.fstype", "ext4")
                .differing("mount./.block.scheduler", "[none] mq-deadline", here)
                .cost("disk.random-read-qd1.time", 1.3)
        };
        check(
            &CAUSE,
            &[limit("", "254:0 rbps=1048576"), scheduler("none [bfq]")],
            &[
                limit("", ""),
                limit("254:0 rbps=1048576", "254:0 rbps=1048576"),
                scheduler("[none] mq-deadline kyber"),
                Composed::new("docker")
                    .fact("cgroup.io.max", "254:0 rbps=1")
                    .cost("fs.stat.time", 2.0),
            ],
        );
    }
}
