//! Lines that travel through a pipe, a daemon and a log file, or through a terminal.
//!
//! What it cannot see: how much a program writes where nothing was counted; and what the agent's own pipes carry
//! does not pass the engine's log at all.

use super::entry::{Entry, Found};
use super::kind::Kind;
use super::triage::Family;
use super::{Case, switch};

const FAMILIES: &[Family] = &[Family::Waiting, Family::CostlierCalls, Family::MoreCalls];

/// The registered cause.
pub(super) static CAUSE: Entry = Entry {
    id: "stdio.log-driver",
    title: "Every line of output passes a pipe, a daemon and a log, or a terminal",
    mechanism: "What a container prints goes through a pipe to a helper, from there to the daemon, is wrapped and written \
                to a file; when the reader falls behind, the pipe of 64 KiB fills and the program sleeps in its write. \
                A terminal adds work for every line and character.",
    needs: &[
        "fd.1",
        "engine.log_driver",
        "asked.LogConfig",
        "asked.Tty",
        "wchar",
    ],
    size: "A line of 100 bytes: 0.2 µs to nothing, 0.4–0.8 µs to a file, 2–3 µs to the default log, 5.2–5.8 µs to a \
           terminal; 0.5–1.2 µs with the log switched off.",
    advice: "Print less and in larger pieces; use a compact local log; leave the terminal out of what is measured.",
    price: "A log that does not block drops lines when it is full, and no log at all is no audit trail.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<Found> {
    let cells = case.costs(&[Kind::Output]);
    let kind = |target: &str| -> &'static str {
        match target {
            "/dev/null" => "nothing",
            text if text.starts_with("/dev/pts/")
                || text.starts_with("/dev/tty")
                || text.starts_with("/dev/console") =>
            {
                "a terminal"
            }
            text if text.starts_with("pipe:") || text.starts_with("socket:") => "a pipe",
            _ => "a file",
        }
    };
    let (there, here) = (
        case.baseline.fact("fd.1").map(kind),
        case.fact("fd.1").map(kind),
    );
    let terminal =
        case.setting("tty").as_deref() == Some("true") || case.fact("asked.Tty") == Some("true");
    let is_costlier = match (there, here) {
        (Some(there), Some(here)) => rank(here) > rank(there),
        _ => false,
    };
    let own = case.costs_only(&[Kind::Output]);
    if !is_costlier && own.is_empty() && !(terminal && cells_write(case, &cells)) {
        return None;
    }
    let fit = case.fit(&cells, FAMILIES);
    let likelihood = if own.is_empty() { 0.5 * fit } else { 0.85 };
    let way = match here {
        Some("a terminal") => "a terminal",
        _ if terminal => "a terminal",
        _ => "a pipe and the engine's log",
    };
    Some(
        Found::new(
            cells.clone(),
            likelihood,
            format!("Output passes {way}, and {}.", case.told(&cells)),
        )
        .seen(format!(
            "standard output is {}, in the baseline {}",
            here.unwrap_or("not recorded"),
            there.unwrap_or("not recorded")
        ))
        .seen_if(
            case.fact("engine.log_driver")
                .map(|driver| format!("the engine's log driver is `{driver}`")),
        )
        .seen_all(case.because(&cells, FAMILIES))
        .by(if terminal {
            switch::engine(case, "tty", false)
        } else {
            switch::no_log(case)
        }),
    )
}

fn rank(kind: &str) -> u8 {
    match kind {
        "nothing" => 0,
        "a file" => 1,
        "a pipe" => 2,
        _ => 3,
    }
}

/// Whether the command writes at least a hundred kilobytes.
fn cells_write(case: &Case<'_>, cells: &[usize]) -> bool {
    case.counter(cells, "wchar")
        .is_none_or(|(_, written)| written > 1e5)
}

#[cfg(test)]
mod tests {
    use super::super::composed::{Composed, check};

    #[test]
    fn a_longer_way_for_each_line_is_suspected() {
        let to = |there: &str, here: &str| {
            Composed::of("docker")
                .base("fd.1", there)
                .fact("fd.1", here)
                .cost("command.wall.time", 2.0)
        };
        check(
            &super::CAUSE,
            &[
                to("/dev/null", "pipe:[1]"),
                to("/tmp/out", "/dev/pts/0"),
                Composed::of("docker")
                    .setting("tty", true)
                    .cost("python.loop.time", 1.1)
                    .cost("command.wall.time", 1.5),
            ],
            &[
                to("pipe:[1]", "pipe:[2]"),
                to("/dev/pts/3", "pipe:[2]"),
                Composed::of("docker")
                    .base("fd.1", "/dev/null")
                    .fact("fd.1", "pipe:[1]")
                    .cost("cpu.integer.time", 2.0),
            ],
        );
    }
}
