//! A stop that takes ten seconds, because process 1 ignores SIGTERM.
//!
//! Visible if an environment's whole life takes seconds longer than its time to the first answer: the rest is its
//! end. Limits: does not know why a program that handles the signal takes long to exit.

use super::prelude::*;

/// How long engines wait before they kill, unless the arm sets it, in nanoseconds.
const PATIENCE_NS: f64 = 10e9;
/// A stop that takes this share of the timeout was a kill.
const SPENT: f64 = 0.8;
/// Nothing else takes as long: below this, process 1 must be known to ignore the signal.
const SLOW_STOP_NS: f64 = 5e9;

pub(super) static CAUSE: Entry = Entry {
    id: "startup.pid1-sigterm",
    title: "Process 1 ignores the request to stop and is killed after a delay",
    mechanism: "Process 1 of a pid namespace does not receive signals for which it has no handler, so that the engine's \
                request to stop is lost and the engine kills it when its patience ends. A shell as entry point does not \
                pass the signal on either.",
    needs: &[
        fact::INIT_SIGTERM,
        fact::INIT_NAME,
        "start-up.total.time",
        "start-up.ready.time",
    ],
    size: "A stop took 10.1 s without and 0.13 s with a small init as process 1.",
    advice: "Start the container with an init of its own, or let the program handle SIGTERM and be its own entry point, \
             without a shell around it.",
    price: "One small process more; nothing else.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
    if case.fact(fact::INIT_SIGTERM) == Some("true") {
        return None;
    }
    let find = |metric: &str| {
        let mut cells = case
            .pick(|cell| is_cost(cell) && cell.metric == metric)
            .into_iter();
        let index = cells.next()?;
        Some((index, case.cells[index].difference?.point))
    };
    let (index, total) = find("start-up.total.time")?;
    let ready = find("start-up.ready.time").map_or(0.0, |(_, extra)| extra);
    let stop = total - ready;
    let asked = case
        .setting("stop_after")
        .and_then(|text| text.parse::<f64>().ok());
    let patience = asked.map_or(PATIENCE_NS, |seconds| seconds * 1e9);
    let is_known = case.fact(fact::INIT_SIGTERM) == Some("false");
    let least = if is_known {
        SPENT * patience
    } else {
        (SPENT * patience).max(SLOW_STOP_NS)
    };
    (stop > least).then(|| {
        CauseMatch::new(
            vec![index],
            if is_known { 0.97 } else { 0.6 },
            format!(
                "Stopping the arm takes {:.1} s, of {:.0} s that its engine waits before it kills.",
                stop / 1e9,
                patience / 1e9
            ),
        )
        .seen(format!(
            "{:.1} s pass between the first answer and the end",
            stop / 1e9
        ))
        .also_seen(case.fact(fact::INIT_NAME).map(|name| {
            format!(
                "process 1 is `{name}`, and it {} SIGTERM",
                if case.fact(fact::INIT_SIGTERM).is_some() {
                    "does not handle"
                } else {
                    "may not handle"
                }
            )
        }))
        .with_counterfactual(switch::init(case))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_stop_is_suspected_and_slow_start_is_not() {
        let life = |ready_s: f64, total_s: f64| {
            let mut composed = Composed::new("docker").fact("init.name", "sh");
            for (metric, seconds) in [
                ("start-up.ready.time", ready_s),
                ("start-up.total.time", total_s),
            ] {
                let mut cell = cell(metric, 50.0);
                if let Some(difference) = &mut cell.difference {
                    difference.point = seconds * 1e9;
                }
                composed = composed.cell(cell);
            }
            composed
        };
        check(
            &CAUSE,
            &[
                life(0.3, 10.4),
                life(0.3, 10.4).fact("init.handles_sigterm", "false"),
                life(0.3, 2.4)
                    .setting("stop_after", 2)
                    .fact("init.handles_sigterm", "false"),
            ],
            &[
                life(0.3, 0.5),
                life(9.0, 9.5),
                // A busy disk may take as long: suspected only if process 1 is known to ignore the signal.
                life(0.3, 2.2).setting("stop_after", 2),
                life(0.3, 2.2).fact("init.handles_sigterm", "false"),
                life(0.3, 0.9)
                    .setting("stop_after", 2)
                    .fact("init.handles_sigterm", "false"),
                life(0.3, 10.4).fact("init.handles_sigterm", "true"),
            ],
        );
    }
}
