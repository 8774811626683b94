//! Programs that close or watch every descriptor that they might have.
//!
//! What it cannot see: the calls themselves; that a program spends its time in the kernel is all that is counted.

use super::entry::{Entry, Found};
use super::triage::Family;
use super::{Case, switch};

/// From this limit on the loop is felt.
const MANY: f64 = 1_048_576.0;
const FAMILIES: &[Family] = &[Family::MoreCalls, Family::CostlierCalls];
/// What closing a descriptor that is not open takes, nanoseconds.
const CLOSE_NS: f64 = 115.0;

/// The registered cause.
pub(super) static CAUSE: Entry = Entry {
    id: "limits.nofile-1e9",
    title: "Programs loop over every descriptor that the limit allows",
    mechanism: "Where the engine's service has no limit on open files, its containers get a thousand million. Programs \
                that close all descriptors before they start another, or that allocate a table of them, take the limit \
                by its word.",
    needs: &["rlimit.nofile", "sys_ns"],
    size: "107–121 ns for each close of a descriptor that is not open: 0.1 s for a million, 115–130 s for 2^30 \
           (extrapolated).",
    advice: "Give containers an ordinary limit, by default for the whole engine (soft 1024, hard 524288).",
    price: "Servers that want more sockets must raise the soft limit themselves.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<Found> {
    let soft = |facts: &tare_model::Facts| {
        let text = facts.get("rlimit.nofile")?.split_whitespace().next()?;
        if text == "unlimited" {
            Some(f64::from(1u32 << 30))
        } else {
            text.parse().ok()
        }
    };
    let (there, here): (f64, f64) = (soft(&case.baseline.facts)?, soft(&case.arm.facts)?);
    if here < MANY || there >= here {
        return None;
    }
    let cells = case.costs(&[]);
    let leads = case.leads(&cells);
    if !leads.is_empty() && !leads.iter().any(|lead| FAMILIES.contains(&lead.family)) {
        return None;
    }
    Some(
        Found::new(
            cells.clone(),
            (if here >= 1e8 { 0.6 } else { 0.3 }) * case.fit(&cells, FAMILIES),
            format!(
                "A loop over all {here:.0} descriptors would take {:.1} s, and {}.",
                here * CLOSE_NS / 1e9,
                case.told(&cells)
            ),
        )
        .seen(format!(
            "a process may have {here:.0} descriptors, in the baseline {there:.0}"
        ))
        .seen_all(case.because(&cells, FAMILIES))
        .by(switch::engine(case, "ulimits", "nofile=1024:524288")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::composed::{Composed, check};

    #[test]
    fn a_limit_without_bounds_is_suspected_of_commands() {
        let limit = |there: &str, here: &str, metric: &str| {
            Composed::of("docker")
                .base("rlimit.nofile", there)
                .fact("rlimit.nofile", here)
                .cost(metric, 5.0)
        };
        let waits = [
            ("wall_ns", 1e9, 5e9),
            ("user_ns", 0.1e9, 0.1e9),
            ("sys_ns", 0.1e9, 0.1e9),
        ];
        check(
            &super::CAUSE,
            &[
                limit("1024 1048576", "1073741816 1073741816", "command.wall.time"),
                limit("1024 4096", "unlimited unlimited", "command.wall.time"),
            ],
            &[
                limit("1024 4096", "1024 524288", "command.wall.time"),
                limit("1048576 1048576", "1048576 1048576", "command.wall.time"),
                limit("1024 4096", "1073741816 1073741816", "cpu.integer.time"),
                limit("1024 4096", "1073741816 1073741816", "command.wall.time")
                    .counted("command", &waits),
            ],
        );
    }
}
