//! Measures a plain run of the user's container, from the command line to the prompt, with input and output through
//! the engine's client.
//!
//! The command's times exclude all of that: the agent starts it, reads its output and writes its input. Limits:
//! differences of a few hundredths of a second between two runs mean nothing.

use std::fmt::Write as _;
use std::time::Duration;

use tare_model::ArmId;

use crate::cx::Context;
use crate::env::{self, AsTyped, user_container};
use crate::output;
use crate::report::terminal::time;
use crate::why::user_container::ContainerQuestion;
use crate::why::{Ask, First, WhyError};

/// Two runs may take this fraction (1/N) of the remaining time.
const PART: u64 = 12;
/// Time limit of a run, plus a multiple of the command's time.
const LIMIT: Duration = Duration::from_secs(10);
const LIMIT_TIMES: u32 = 4;
/// From these values on, additional time of the command is not noise: nanoseconds, and as a fraction of its time.
const PLAIN_NS: u64 = 50_000_000;
const PLAIN_PART: f64 = 0.2;

/// The times of two runs, in one line; `None` if the driver has no such runs, the command fails in them, or they
/// would take too much of the remaining time.
///
/// # Errors
/// Ctrl-C, or something may be left.
pub(super) fn described(
    cx: &Context<'_>,
    ask: &Ask,
    asks: &ContainerQuestion,
    first: &First,
    left_ns: u64,
) -> Result<Option<String>, WhyError> {
    let is_typed = asks.copy.is_none() && asks.undo.is_empty() && ask.call.client.is_none();
    let both_ns = 2 * (first.life_ns + first.env.wall_ns);
    let is_whole = first.cut_ns.is_none() && !first.env.report.is_ended_early;
    let is_short = is_whole && both_ns <= left_ns / PART;
    if !is_typed || !is_short || ask.call.argv.is_empty() {
        return Ok(None);
    }
    let Some(driver) = env::find(&ask.driver) else {
        return Ok(None);
    };
    let name = ArmId::new("as-typed").expect("the constant is a name");
    let Ok(mut environment) = driver.configure(name, &ask.settings) else {
        return Ok(None);
    };
    let input = ask.call.stdin.as_deref().unwrap_or_default().as_bytes();
    let limit = LIMIT + LIMIT_TIMES * Duration::from_nanos(first.env.wall_ns);
    let mut run = || environment.as_typed(cx, &ask.call.argv, input, limit);
    let runs = run().and_then(|one| Ok((one, run()?)));
    let removed = environment
        .remove(cx)
        .map_err(|source| WhyError::NotRemoved {
            env: ask.driver.clone(),
            source,
        });
    removed?;
    match runs {
        Ok((Some(one), Some(again))) => Ok(line([one, again], first.env.wall_ns)),
        Ok(_) => Ok(None),
        Err(_) if cx.cancel.is_requested() => Err(WhyError::Cancelled),
        Err(error) => {
            let why = output::printable(&error.to_string());
            Ok(Some(format!(
                "{}: not known: {why}",
                user_container::AS_TYPED
            )))
        }
    }
}

fn line(runs: [AsTyped; 2], wall_ns: u64) -> Option<String> {
    if runs.iter().any(|run| run.status != 0) {
        return None;
    }
    let time = |ns: u64| time(ns as f64);
    let [one, again] = runs;
    let mut line = format!(
        "{}: {} until its command begins, {} in it, {} after it (again: {}, {}, {})",
        user_container::AS_TYPED,
        time(one.start_ns),
        time(one.run_ns),
        time(one.end_ns),
        time(again.start_ns),
        time(again.run_ns),
        time(again.end_ns),
    );
    let more_ns = one.run_ns.min(again.run_ns).saturating_sub(wall_ns);
    if more_ns >= PLAIN_NS && more_ns as f64 >= PLAIN_PART * wall_ns as f64 {
        let _ = write!(
            line,
            "; the command took {} at the first look, the rest is its input and output through client and engine",
            time(wall_ns)
        );
    }
    line.push_str("; only the command is in these numbers");
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_parts_listed_with_stream_cost_if_clear() {
        let run = |run_ms: u64, status| AsTyped {
            start_ns: 400_000_000,
            run_ns: run_ms * 1_000_000,
            end_ns: 80_000_000,
            status,
            printed: 0,
        };
        let shown = line([run(900, 0), run(800, 0)], 300_000_000).unwrap();
        assert!(
            shown.contains("400 ms until its command begins, 900 ms in it, 80.0 ms after it"),
            "{shown}"
        );
        assert!(
            shown.contains("took 300 ms at the first look, the rest is"),
            "{shown}"
        );
        for (runs, wall_ms) in [([340, 390], 300), ([900, 310], 300), ([200, 200], 300)] {
            let shown = line(runs.map(|ms| run(ms, 0)), wall_ms * 1_000_000).unwrap();
            assert!(!shown.contains("the rest"), "{shown}");
        }
        assert_eq!(line([run(900, 0), run(900, 1)], 300_000_000), None);
    }
}
