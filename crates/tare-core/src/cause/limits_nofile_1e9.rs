//! Programs that close or watch every possible file descriptor, under a huge limit.
//!
//! Limits: does not see the calls themselves, only the time that a program spends in the kernel.

use super::prelude::*;

/// From this limit on a single loop is noticeable.
const MANY: f64 = 1_048_576.0;
/// A lower limit must be this many times the baseline's, and supported by the counters.
const SEVERAL: f64 = 4.0;
/// The soft limit recommended for containers.
const ORDINARY_SOFT: u32 = 1024;
/// The recommended hard limit.
const ORDINARY_HARD: f64 = 524_288.0;
const FAMILIES: &[Family] = &[Family::MoreCalls, Family::CostlierCalls];
/// Time to close a descriptor that is not open, in nanoseconds.
const CLOSE_NS: f64 = 115.0;

pub(super) static CAUSE: Entry = Entry {
    id: "limits.nofile-1e9",
    title: "Programs loop over every descriptor that the limit allows",
    mechanism: "Where the engine's service has no limit on open files, its containers get a thousand million. Programs \
                that close all descriptors before they start another, or that allocate a table of them, take the limit \
                by its word.",
    needs: &[fact::RLIMIT_NOFILE, counter::SYS, counter::CHILDREN_SYS],
    size: "107–121 ns for each close of a descriptor that is not open: 0.1 s for a million, 115–130 s for 2^30 \
           (extrapolated).",
    advice: "Give containers an ordinary limit, by default for the whole engine (soft 1024, hard 524288).",
    price: "Servers that want more sockets must raise the soft limit themselves.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let (there, _) = limits(&case.baseline.facts)?;
    let (here, hard) = limits(&case.arm.facts)?;
    if there >= here {
        return None;
    }
    let cells = case.costs(&[]);
    // Contention on the machine hides what the counters would show.
    let fits =
        case.shows(&cells, FAMILIES) || case.shows(&cells, &[Family::Contention, Family::Steal]);
    // From this many descriptors on a single loop is noticeable. Fewer must be supported by the counters: time in the
    // kernel grew by at least what closing the additional descriptors takes, once.
    let loop_ns = (here - there) * CLOSE_NS;
    let in_kernel = |name: &str| case.counter(&cells, name).map(|(base, arm)| arm - base);
    let grown_ns =
        in_kernel(counter::SYS).map(|own| own + in_kernel(counter::CHILDREN_SYS).unwrap_or(0.0));
    let is_felt = here >= SEVERAL * there && fits && grown_ns.is_some_and(|ns| ns >= loop_ns);
    if (here < MANY && !is_felt) || (!fits && !case.leads(&cells).is_empty()) {
        return None;
    }
    let likelihood = if here >= 1e8 { 0.6 } else { 0.3 };
    Some(
        case.fitting(
            FAMILIES,
            &cells,
            likelihood,
            format!(
                "A loop over all {here:.0} descriptors would take {} each time",
                seconds(here * CLOSE_NS)
            ),
        )
        .seen(format!(
            "a process may have {here:.0} descriptors, in the baseline {there:.0}"
        ))
        .with_counterfactual(switch::engine(
            case,
            "ulimits",
            // Never above the arm's hard limit.
            format!("nofile={ORDINARY_SOFT}:{:.0}", hard.min(ORDINARY_HARD)),
        )),
    )
}

/// Returns the soft and the hard limit on file descriptors.
fn limits(facts: &Facts) -> Option<(f64, f64)> {
    let mut words = facts.get(fact::RLIMIT_NOFILE)?.split_whitespace();
    let mut next = || -> Option<f64> {
        match words.next()? {
            "unlimited" => Some(f64::from(1u32 << 30)),
            text => text.parse().ok(),
        }
    };
    let soft = next()?;
    Some((soft, next().unwrap_or(soft)))
}

fn seconds(ns: f64) -> String {
    if ns >= 1e8 {
        format!("{:.1} s", ns / 1e9)
    } else {
        format!("{:.1} ms", ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_without_bounds_is_suspected_of_commands() {
        let limit = |there: &str, here: &str, metric: &str| {
            Composed::new("docker")
                .differing("rlimit.nofile", there, here)
                .cost(metric, 5.0)
        };
        let few = |there: &str, ms: f64| {
            let (wall, sys) = ((100e6, (100.0 + ms) * 1e6), (20e6, (20.0 + ms) * 1e6));
            let few = limit(there, "20000 20000", "command.wall.time");
            few.took("command", wall, (50e6, 50e6), sys)
        };
        check(
            &CAUSE,
            &[
                few("1024 4096", 40.0),
                limit("1024 1048576", "1073741816 1073741816", "command.wall.time"),
                limit("1024 4096", "unlimited unlimited", "command.wall.time"),
            ],
            &[
                limit("1024 4096", "1024 524288", "command.wall.time"),
                // A loop cannot be faster than that, twice the limit is no difference, and without counters there is
                // no evidence.
                few("1024 4096", 1.5).cost("command.wall.time", 1.1),
                few("10000 20000", 40.0),
                limit("1024 4096", "20000 20000", "command.wall.time"),
                limit("1048576 1048576", "1048576 1048576", "command.wall.time"),
                limit("1024 4096", "1073741816 1073741816", "cpu.integer.time"),
                limit("1024 4096", "1073741816 1073741816", "command.wall.time").took(
                    "command",
                    (1e9, 5e9),
                    (0.1e9, 0.1e9),
                    (0.1e9, 0.1e9),
                ),
            ],
        );
    }

    #[test]
    fn nofile_counterfactual_stays_within_hard_limit() {
        for (here, expected) in [
            ("1048576 1048576", "nofile=1024:524288"),
            ("1048576 30000", "nofile=1024:30000"),
        ] {
            let shown = Composed::new("docker")
                .differing("rlimit.nofile", "1024 4096", here)
                .cost("command.wall.time", 5.0)
                .counterfactual(&CAUSE);
            assert!(shown.contains(expected), "{shown}");
        }
    }
}
