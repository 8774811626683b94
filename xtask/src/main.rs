//! Development commands: `cargo xtask COMMAND`. One file each.
//!
//! They are programs, not scripts, so that they run wherever the rest does.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "development commands speak to the developer"
)]

use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

mod aa;
mod agree;
mod bench;
mod contracts;
mod deny;
mod faults;
mod flags;
mod fuzz;
mod gate;
mod ladder;
mod lanes;
mod notes;
mod peers;
mod planted;
mod provision;
mod repeats;
mod reproduce;
mod resolution;
mod size;
mod skips;
mod slower;
mod tally;
mod test;
mod web;
mod why_matrix;

#[cfg(test)]
use tare_testkit::skip;
use tare_testkit::traces;
use xtask_build::{dist, run};

/// A command: name, description, function.
type Command = (
    &'static str,
    &'static str,
    fn(&[String]) -> anyhow::Result<ExitCode>,
);

const COMMANDS: &[Command] = &tare_model::rows! {
    ("dist", "build the agent, and `tare` with the agent in it", dist::main),
    ("run", "build a `tare` that is not optimized and lacks two forms of reports, then `tare run` with the further arguments", run::main),
    ("test", "every check and test; `--provision` installs what they need and starts an own Docker engine", test::main),
    ("reproduce", "`dist` here and in another folder; the bytes must be the same", reproduce::main),
    ("bench", "what SPECIFICATION.md promises, measured beside the tools of the field", bench::main),
    ("fuzz", "a long search for output that a decoder cannot take; `--seconds N`, one workload", fuzz::main),
    ("faults", "runs that are killed at random moments everywhere, and what is left of them; `-n N`, `--only NAME`", faults::main),
    ("aa", "live comparisons of the host with itself and of a container with its clone; `-n N` of them", aa::main),
    ("agree", "whether a ratio depends on the other arms: four compositions in one table; `-n N --budget T --env X`", agree::main),
    ("peers", "one question to `tare compare`, hyperfine and two ways by hand: false alarms, finds; `-n N --seconds S`", peers::main),
    ("repeats", "whether fresh runs of `quick` give the same answers, by class of metric; `-n N --env A,…`", repeats::main),
    ("gate", "how often `tare gate` is red for nothing, and which planted slowdowns it finds; `-n N --budget T --planted 0,1 --ask compare --load 1`", gate::main),
    ("slower", "how often work that is a little longer in one arm is found out; `--percent P --budget T -n N`", slower::main),
    (
        "resolution",
        "how narrow answers get in a minute: whole trials, slices, hyperfine and `docker exec` in turn; `--seconds N`",
        resolution::main,
    ),
    (
        "planted",
        "environments that are made worse in one known way: does `tare why` find and confirm it? `--only NAME`, `--small`",
        planted::main,
    ),
    ("web", "`tare run web`, and the same question put to `wrk` in sequence for as long; `--seconds S`", web::main),
    ("size", "words of code, lines and share of comments, by package and room, next to their budgets", size::main),
    ("ladder", "five programs whose ladder must add up to what is measured directly; `--env NAME` chooses where", ladder::main),
    ("why-matrix", "`tare why` in every environment that works here, of four kinds of commands: always an answer; `--env NAME`", why_matrix::main),
};

/// Locks a mutex, even if another thread panicked while holding it.
fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("", String::as_str);
    let Some((_, _, command)) = COMMANDS.iter().find(|(known, ..)| *known == name) else {
        eprintln!("usage: cargo xtask COMMAND");
        for (name, about, _) in COMMANDS {
            eprintln!("  {name:<9} {about}");
        }
        return ExitCode::from(2);
    };
    match command(&arguments[1..]) {
        Ok(status) => status,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
