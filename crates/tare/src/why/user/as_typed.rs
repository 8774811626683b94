//! What a plain run of the user's container takes, from its line to the prompt, with its input and output over the way that
//! their client has.
//!
//! The command's own numbers have none of that: its agent starts it, reads what it prints, and gives it its input.
//! What it cannot see: a difference of a few hundredths of a second between two runs.

use std::fmt::Write as _;
use std::time::Duration;

use tare_model::ArmId;

use crate::cx::Context;
use crate::env::{self, AsTyped, own};
use crate::output;
use crate::report::terminal::time;
use crate::why::own::Asks;
use crate::why::{Ask, First, Trouble};

/// Two runs may take this part of the time that is left.
const PART: u64 = 12;
/// What a run may take, and so many times what the command took.
const LIMIT: Duration = Duration::from_secs(10);
const LIMIT_TIMES: u32 = 4;
/// What the command takes more than it did is not noise from here on: nanoseconds, and a part of what it took.
const PLAIN_NS: u64 = 50_000_000;
const PLAIN_PART: f64 = 0.2;

/// What two runs took, in one line; `None` where its driver has no such runs, the command does something else in them, or
/// they would take too much of the time that is left.
///
/// # Errors
/// Ctrl-C, or something may be left.
pub(super) fn described(
    cx: &Context<'_>,
    ask: &Ask,
    asks: &Asks,
    first: &First,
    left_ns: u64,
) -> Result<Option<String>, Trouble> {
    let is_typed = asks.copy.is_none() && asks.undo.is_empty() && ask.call.client.is_none();
    let both_ns = 2 * (first.life_ns + first.env.wall_ns);
    let is_short = first.cut_ns.is_none() && both_ns <= left_ns / PART;
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
        .map_err(|source| Trouble::NotRemoved {
            env: ask.driver.clone(),
            source,
        });
    removed?;
    match runs {
        Ok((Some(one), Some(again))) => Ok(line([one, again], first.env.wall_ns)),
        Ok(_) => Ok(None),
        Err(_) if cx.cancel.is_requested() => Err(Trouble::Cancelled),
        Err(error) => {
            let why = output::printable(&error.to_string());
            Ok(Some(format!("{}: not known: {why}", own::AS_TYPED)))
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
        own::AS_TYPED,
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
    fn parts_of_a_run_are_named_and_what_the_streams_take_if_it_is_plain() {
        let run = |run_ms: u64, status| AsTyped {
            start_ns: 400_000_000,
            run_ns: run_ms * 1_000_000,
            end_ns: 80_000_000,
            status,
            printed: 0,
        };
        let said = line([run(900, 0), run(800, 0)], 300_000_000).unwrap();
        assert!(
            said.contains("400 ms until its command begins, 900 ms in it, 80.0 ms after it"),
            "{said}"
        );
        assert!(
            said.contains("took 300 ms at the first look, the rest is"),
            "{said}"
        );
        for (runs, wall_ms) in [([340, 390], 300), ([900, 310], 300), ([200, 200], 300)] {
            let said = line(runs.map(|ms| run(ms, 0)), wall_ms * 1_000_000).unwrap();
            assert!(!said.contains("the rest"), "{said}");
        }
        assert_eq!(line([run(900, 0), run(900, 1)], 300_000_000), None);
    }
}
