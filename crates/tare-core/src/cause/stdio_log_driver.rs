//! Output lines that pass through a pipe, a daemon and a log file, or through a terminal.
//!
//! A user's command writes to the console of its container; the agent's pipes do not pass Docker's log driver at all.
//! Limits: does not know how much a program writes if nothing was counted.

use super::prelude::*;

const FAMILIES: &[Family] = &[Family::Waiting, Family::CostlierCalls, Family::MoreCalls];
/// Upper bound per line, in nanoseconds: twice the measured value of a terminal.
const LINE_NS: f64 = 12_000.0;
/// Upper bound per byte, in nanoseconds: a log of 20 MB per second.
const BYTE_NS: f64 = 50.0;
/// The share of the extra time that the lines must be able to explain.
const PART: f64 = 0.3;

pub(super) static CAUSE: Entry = Entry {
    id: "stdio.log-driver",
    title: "Every line of output passes a pipe, a daemon and a log, or a terminal",
    mechanism: "What a container prints goes through a pipe to a helper, from there to the daemon, is wrapped and written \
                to a file; when the reader falls behind, the pipe of 64 KiB fills and the program sleeps in its write. \
                A terminal adds work for every line and character.",
    needs: &[
        fact::FD_1,
        fact::ENGINE_LOG_DRIVER,
        fact::ASKED_LOG,
        fact::ASKED_TTY,
        fact::COMMAND_STDOUT,
        fact::COMMAND_STDOUT_LINES,
        counter::WCHAR,
    ],
    size: "A line of 100 bytes: 0.2 µs to nothing, 0.4–0.8 µs to a file, 2–3 µs to the default log, 5.2–5.8 µs to a \
           terminal; 0.5–1.2 µs with the log switched off.",
    advice: "Print less and in larger pieces; use a compact local log; leave the terminal out of what is measured.",
    price: "A log that does not block drops lines when it is full, and no log at all is no audit trail.",
    suspect,
};

fn suspect(case: &Case<'_>) -> Option<CauseMatch> {
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
        case.baseline.fact(fact::FD_1).map(kind),
        case.fact(fact::FD_1).map(kind),
    );
    let terminal = case.is_set("tty", "true") || case.fact(fact::ASKED_TTY) == Some("true");
    let is_costlier = match (there, here) {
        (Some(there), Some(here)) => rank(here) > rank(there),
        _ => false,
    };
    let own = case.costs_only(&[Kind::Output]);
    let logged = logged(case, &cells);
    let is_suspect = is_costlier
        || !own.is_empty()
        || logged.is_some()
        || (terminal && cells_write(case, &cells));
    if !is_suspect {
        return None;
    }
    let fit = case.fit(&cells, FAMILIES);
    let likelihood = match &logged {
        _ if !own.is_empty() => 0.85,
        // Something else may still be slower: the bound per line is counted, not its actual time.
        Some(_) => 0.7 * fit,
        None => 0.5 * fit,
    };
    let way = match here {
        Some("a terminal") => "a terminal",
        _ if terminal => "a terminal",
        _ => "a pipe and the engine's log",
    };
    Some(
        case.found(&cells, likelihood, format!("Output passes {way}"))
            .seen(logged.unwrap_or_else(|| {
                format!(
                    "standard output is {}, in the baseline {}",
                    here.unwrap_or("not recorded"),
                    there.unwrap_or("not recorded")
                )
            }))
            .also_seen(
                case.fact(fact::ENGINE_LOG_DRIVER)
                    .map(|driver| format!("the engine's log driver is `{driver}`")),
            )
            .because(FAMILIES)
            .with_counterfactual(if terminal {
                switch::engine(case, "tty", false)
            } else {
                switch::no_log(case)
            }),
    )
}

/// Describes what a user's command writes to the console of its container, if that may explain the slowdown: the
/// upper bound for its lines and bytes is at least a part of the extra time.
fn logged(case: &Case<'_>, cells: &[usize]) -> Option<String> {
    if case.fact(fact::COMMAND_STDOUT) != Some("console")
        || case.is_set("log_driver", "none")
        || case.fact(fact::ENGINE_LOG_DRIVER) == Some("none")
            && case.setting("log_driver").is_none()
    {
        return None;
    }
    let (lines, bytes) = (
        case.number(fact::COMMAND_STDOUT_LINES)?,
        case.number(fact::COMMAND_STDOUT_BYTES)?,
    );
    let cell = cells
        .iter()
        .filter_map(|index| case.cells.get(*index))
        .find(|cell| Kind::for_cell(cell) == Kind::Any && cell.unit == "ns")?;
    let extra_ns = cell.env?.point - cell.base?.point;
    let most_ns = lines * LINE_NS + bytes * BYTE_NS;
    (most_ns >= PART * extra_ns).then(|| {
        format!("it writes {lines:.0} lines, {bytes:.0} bytes in all, to the engine's log; in the baseline to a pipe")
    })
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
    case.counter(cells, counter::WCHAR)
        .is_none_or(|(_, written)| written > 1e5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_way_for_each_line_is_suspected() {
        let to = |there: &str, here: &str| {
            Composed::new("docker")
                .differing("fd.1", there, here)
                .cost("command.wall.time", 2.0)
        };
        // A command that takes 100 ns more in these cases; one line may explain that.
        let prints = |lines: &str, place: &str| {
            Composed::new("docker")
                .fact("command.stdout", place)
                .fact("command.stdout_lines", lines)
                .fact("command.stdout_bytes", "0")
                .cost("command.wall.time", 2.0)
        };
        check(
            &CAUSE,
            &[
                prints("30000", "console"),
                to("/dev/null", "pipe:[1]"),
                to("/tmp/out", "/dev/pts/0"),
                Composed::new("docker")
                    .setting("tty", true)
                    .cost("python.pi-loop.time", 1.1)
                    .cost("command.wall.time", 1.5),
            ],
            &[
                prints("0", "console"),
                prints("30000", "kept"),
                prints("30000", "console").setting("log_driver", "none"),
                to("pipe:[1]", "pipe:[2]"),
                to("/dev/pts/3", "pipe:[2]"),
                Composed::new("docker")
                    .differing("fd.1", "/dev/null", "pipe:[1]")
                    .cost("cpu.integer.time", 2.0),
            ],
        );
    }
}
