//! Runs every side once before measuring: does it work, how long does it take, what does it print, can it be sliced?

use tare_model::command::InSlices;

use super::commits::Commits;
use super::copies::Copies;
use super::options::Options;
use super::{Kind, copies, counted, once, sides};
use crate::compare::Row;
use crate::compare::study::{ObservedSides, Side};
use crate::cx::Context;
use crate::failed::Failed;
use crate::output;
use crate::report;
use crate::why::observed::{Observed, SideLook, common as common_of_two};
use crate::why::{Ask, calibrate, error};
use crate::workload::stoppable;

/// From this size on, output is not kept of every run.
const CHATTY_BYTES: usize = 16 << 10;
/// Minimum total time of the runs in a trial of short commands, nanoseconds: as much as a trial takes in addition to
/// them.
const TRIAL_NS: u64 = 20_000_000;
/// The same where the runs of all sides are interleaved: the preparation of a block is a small part of it.
const INTERLEAVED_NS: u64 = 100_000_000;
/// Fewest interleaved runs in a trial.
const RUNS_LEAST: u64 = 2;
/// Most runs in a trial.
const RUNS_MOST: u64 = 16;
/// Most characters shown of a line that differs.
const SHOWN_MOST: usize = 60;
/// Words that only a shell understands.
const OF_SHELLS: [&str; 10] = ["|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1"];

/// Results of the first runs.
pub(crate) struct Looked {
    pub(crate) sides: Vec<Side>,
    pub(crate) copies: Option<Copies>,
    pub(crate) seen: ObservedSides,
    /// Whether the sides are the same program.
    pub(crate) is_same: bool,
    /// Exact counts, taken outside the blocks.
    pub(crate) counted: Vec<Row>,
    pub(crate) notes: Vec<String>,
}

/// Runs every side once; prints each first time as soon as it is known.
pub(crate) fn looked(
    options: &Options,
    kind: Kind,
    commits: Option<&Commits>,
    cx: &Context<'_>,
) -> Result<Looked, Failed> {
    let is_control_only = kind == Kind::ControlOnly;
    let mut sides = sides::from_options(options, commits, is_control_only)?;
    if sides.len() < 2 {
        return Err(Failed::usage("one command alone is compared with nothing")
            .hint("name another: tare compare 'CMD A' 'CMD B'; `tare gate --aa` compares one with itself"));
    }
    for word in sides.iter().filter_map(|side| of_shell(&side.command)) {
        output::tell(&format!(
            "note: `{word}` is a word of the command, because there is no shell; `--shell` runs each command through one"
        ));
    }
    let has_hooks = options.has_hooks();
    let mut looks: Vec<SideLook> = Vec::new();
    for side in &sides {
        looks.push(looked_at(options, side, cx)?);
    }
    let in_slices = if has_hooks {
        Err("has a command before or after each run".to_owned())
    } else {
        common(&looks)
    };
    let can_repeat = !has_hooks && sides[0].call.pick.is_none();
    let by_run = run_by_run(&looks).filter(|_| can_repeat && in_slices.is_err());
    let mut notes = Vec::new();
    let prints_same = looks.iter().all(|look| look.prints_same != Some(false));
    let looks: Vec<Observed> = looks.into_iter().map(|look| look.observed).collect();
    let pairs = sides.iter().zip(&looks);
    notes.extend(pairs.filter_map(|(side, look)| error::left_running(&side.arm, &look.report)));
    let base = (&sides[0], &looks[0]);
    let mut others = sides.iter().zip(&looks).skip(1);
    notes.extend(others.find_map(|other| complaint(base, other)));
    if !prints_same {
        notes.push("what a command prints is another text in each run, so the sides' outputs were not compared".to_owned());
    } else if !is_control_only {
        same_output(options, &sides, &looks)?;
    }
    let is_same = !is_control_only && sides::are_same_program(&sides, &looks);
    if is_same {
        notes.push("all sides are the same program with the same arguments, by SHA-256: nothing was measured (`tare gate --aa` measures one against itself)".to_owned());
    }
    // Tracing a command, or trying a copy, would need the hooks.
    let (counted, copies) = if is_same || has_hooks {
        (Vec::new(), None)
    } else {
        let counted = counted::rows(cx, &sides, &looks, options.budget);
        (counted, copies::made(cx, &mut sides, &looks, prints_same))
    };
    let longest_ns = looks.iter().map(|look| look.wall_ns).max().unwrap_or(0);
    let runs_in = |ns: u64, least| (ns / longest_ns.max(1)).clamp(least, RUNS_MOST);
    let runs = if by_run.is_some() {
        runs_in(INTERLEAVED_NS, RUNS_LEAST)
    } else if in_slices.is_err() && can_repeat {
        runs_in(TRIAL_NS, 1)
    } else {
        1
    };
    let is_chatty = looks
        .iter()
        .any(|look| look.report.stdout.0.len() > CHATTY_BYTES);
    Ok(Looked {
        sides,
        copies,
        seen: ObservedSides {
            longest_ns,
            runs: u32::try_from(runs).unwrap_or(1),
            in_slices: by_run.map_or(in_slices, Ok),
            is_chatty,
        },
        is_same,
        counted,
        notes,
    })
}

/// Runs one side between its `--prepare` and `--conclude` commands.
fn looked_at(options: &Options, side: &Side, cx: &Context<'_>) -> Result<SideLook, Failed> {
    let hooked = |option: &str, command: &Option<String>| match command {
        Some(command) => once(cx, option, command),
        None => Ok(()),
    };
    hooked("--prepare", &options.prepare)?;
    let first_run = |ns: u64| {
        output::tell(&format!(
            "{}: {} in one run of `{}`",
            side.arm,
            report::terminal::time(ns as f64),
            sides::named(side)
        ));
    };
    let runs = (options.warmup, !options.has_hooks());
    let look = calibrate::look_at_side(cx, &ask(options, side), runs, &first_run)?;
    hooked("--conclude", &options.conclude)?;
    Ok(look)
}

/// A way to slice that works for all sides.
fn common(looks: &[SideLook]) -> Result<InSlices, String> {
    let mut all = looks.iter().map(|look| look.in_slices.clone());
    let first = all
        .next()
        .unwrap_or_else(|| Err("was not seen".to_owned()))?;
    stoppable::on_as_many_processors(looks.iter().map(|look| &look.observed.report))?;
    all.try_fold(first, |one, other| Ok(common_of_two(one, other?)))
}

/// The turns of commands whose runs are interleaved one by one, if all of them can be.
fn run_by_run(looks: &[SideLook]) -> Option<InSlices> {
    let observed = || looks.iter().map(|look| &look.observed);
    let turns: Option<Vec<InSlices>> = observed()
        .map(|look| stoppable::run_by_run(&look.report, &look.counters))
        .collect();
    let is_same = stoppable::on_as_many_processors(observed().map(|look| &look.report)).is_ok();
    let common = turns?.into_iter().reduce(common_of_two)?;
    Some(InSlices {
        one_processor: common.one_processor && is_same,
        ..common
    })
}

/// The first word that only a shell understands, if any.
fn of_shell(command: &[String]) -> Option<&str> {
    let mut words = command.iter().skip(1);
    words
        .find(|word| OF_SHELLS.contains(&word.as_str()))
        .map(String::as_str)
}

/// The complaint that one or both sides print to stderr if they may not be doing their work.
fn complaint(base: (&Side, &Observed), other: (&Side, &Observed)) -> Option<String> {
    let both = [base, other];
    let places = both.map(|(side, _)| format!("by {}", side.arm));
    error::complaint([&places[0], &places[1]], both.map(|(_, look)| &look.report))
}

/// Refuses sides that print different output: a faster wrong answer is not an improvement.
fn same_output(options: &Options, sides: &[Side], looks: &[Observed]) -> Result<(), Failed> {
    if options.allow_different_output {
        return Ok(());
    }
    let base = &looks[0].report.stdout;
    let other = looks
        .iter()
        .zip(sides)
        .find(|(look, _)| look.report.stdout != *base);
    let Some((look, side)) = other else {
        return Ok(());
    };
    Err(Failed::usage(format!(
            "{} and {} print different things: {}",
            sides[0].arm,
            side.arm,
            difference(&base.0, &look.report.stdout.0)
        ),
    )
    .hint("`--allow-different-output` compares them nevertheless; or send the output elsewhere: `--shell 'CMD >/dev/null'`"))
}

/// The first line in which two outputs differ.
fn difference(one: &[u8], other: &[u8]) -> String {
    let lines =
        |bytes| -> Vec<&[u8]> { <[u8]>::split_inclusive(bytes, |it| *it == b'\n').collect() };
    let (one, other) = (lines(one), lines(other));
    let place = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let shown = |lines: &[&[u8]]| match lines.get(place) {
        None => "nothing".to_owned(),
        Some(line) => {
            let text = String::from_utf8_lossy(line);
            let cut: String = text.chars().take(SHOWN_MOST).collect();
            format!("`{}`", cut.escape_debug())
        }
    };
    format!(
        "line {} is {} and {}",
        place + 1,
        shown(&one),
        shown(&other)
    )
}

/// The request for a first run of a side.
fn ask(options: &Options, side: &Side) -> Ask {
    Ask {
        command: side.command.clone(),
        driver: side.driver.clone(),
        settings: side.settings.clone(),
        program: side.program.clone(),
        metric: crate::workload::compared_command::WALL.id.to_owned(),
        budget_ns: options.budget,
        seed: 0,
        call: side.whole_call(),
        carried: Vec::new(),
        instead: Vec::new(),
        own: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_names_the_first_line_that_differs() {
        assert_eq!(
            difference(b"a\nb\nc", b"a\n\x1b[31m\nc"),
            "line 2 is `b\\n` and `\\u{1b}[31m\\n`"
        );
        assert_eq!(
            difference(b"a\n", b"a\nb\n"),
            "line 2 is nothing and `b\\n`"
        );
        assert_eq!(difference(b"", b"x"), "line 1 is nothing and `x`");
    }

    #[test]
    fn word_of_a_shell_is_noticed_behind_the_program() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        assert_eq!(of_shell(&words("cat f | wc")), Some("|"));
        assert_eq!(of_shell(&words("[ -f x ]")), None);
        assert_eq!(of_shell(&words("sh -c a|b")), None);
    }
}
