//! A clock source that needs a syscall to read.
//!
//! Limits: does not know how often a program reads the time.

use super::prelude::*;

/// Clock sources that user space cannot read directly.
const SLOW: &[&str] = &tare_model::rows! {
    "hpet", "acpi_pm", "xen", "refined-jiffies", "jiffies", "pit",
};
/// A reading without a syscall is faster than this everywhere.
const READABLE_NS: f64 = 60.0;

pub(super) static CAUSE: Entry = Entry {
    id: "time.clocksource",
    title: "Reading the time takes a system call",
    mechanism: "With a clock that user space cannot read, or one that the kernel has found unstable, every time stamp \
                becomes a system call. Databases, tracers and profilers take millions of them.",
    needs: &[
        fact::CLOCKSOURCE_CURRENT,
        fact::CLOCKSOURCE_AVAILABLE,
        fact::TIMER_COST,
        "clock.vdso.time",
    ],
    size: "21 ns from user space and 130 ns through a system call, 145–150 ns with a filter; a change from `xen` to \
           `tsc` took 30 % off a slow percentile (a report).",
    advice: "Where the processor's time stamp counter is invariant, let the kernel use it (`clocksource=tsc`); take \
             fewer time stamps.",
    price: "A counter that is not invariant gives wrong times, for example after a guest has moved.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    let vdso: Vec<usize> = case.pick(|cell| is_cost(cell) && cell.metric.starts_with("clock.vdso"));
    let rest = case.costs(&[Kind::Output]);
    let cells = if vdso.is_empty() { rest } else { vdso.clone() };
    let slow = case
        .differs(fact::CLOCKSOURCE_CURRENT)
        .filter(|(there, here)| SLOW.contains(here) && !SLOW.contains(there));
    let cost = |facts: &Facts| number(facts, fact::TIMER_COST);
    let readings = cost(&case.baseline.facts).zip(cost(&case.arm.facts));
    let lost = readings.filter(|(there, here)| *here > READABLE_NS && *here > 3.0 * there);
    if slow.is_none() && lost.is_none() {
        return None;
    }
    let likelihood = if vdso.is_empty() {
        0.3 * case.fit(&cells, &[Family::CostlierCalls, Family::MoreCalls])
    } else {
        0.95
    };
    Some(
        case.found(
            &cells,
            likelihood,
            "Reading the time takes a system call in the arm",
        )
        .seen_differing("the kernel's clock is", slow)
        .also_seen(lost.map(|(there, here)| {
            format!("a reading costs {here:.0} ns, in the baseline {there:.0} ns")
        }))
        .with_counterfactual(switch::not_here(
            "the clock is the machine's, and changing it would change it for everybody",
        )),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_user_space_cannot_read_is_suspected() {
        let clock = |there: &str, here: &str, metric: &str| {
            Composed::new("vm")
                .differing("clocksource.current", there, here)
                .cost(metric, 5.0)
        };
        let cost = |here: &str| {
            Composed::new("vm")
                .differing("timer.cost_ns", "21", here)
                .cost("clock.vdso.time", 6.0)
        };
        check(
            &CAUSE,
            &[
                clock("tsc", "hpet", "clock.vdso.time"),
                clock("tsc", "xen", "command.wall.time"),
                cost("130"),
            ],
            &[
                clock("tsc", "kvm-clock", "clock.vdso.time"),
                clock("hpet", "hpet", "clock.vdso.time"),
                cost("25"),
                clock("tsc", "hpet", "cpu.integer.time"),
            ],
        );
    }
}
