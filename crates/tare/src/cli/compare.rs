//! `tare compare`: which of two or more commands, environments or revisions is faster.
//!
//! In order: find the sides, look at each once, compare what they print, copy their programs, measure in rounds, answer.
//! `tare gate` is the same with proof and an exit status.

use std::path::Path;

use clap::Args;
use tare_model::command::InSlices;

use super::home::Place;
use super::progress::Progress;
use super::session::Session;
use super::{Exit, Failed, output};
use crate::compare::study::{Seen, Side};
use crate::compare::{self, Comparison, Decision, SideNote, forms};
use crate::cx::{Context, files};
use crate::report;
use crate::store::Store;
use crate::why::observed::Observed;
use crate::why::{Ask, calibrate};
use commits::{Commits, in_folder, last_words};
use measure::{Hooks, Measured, Question};
use options::Options;

mod commits;
mod copies;
mod measure;
pub(super) mod options;
mod sides;
mod stored;

/// How long `--setup` and `--cleanup` may take.
const SETUP_LIMIT: std::time::Duration = std::time::Duration::from_secs(3_600);

/// Output from which on it is not kept of every run.
const CHATTY_BYTES: usize = 16 << 10;

#[derive(Debug, Args)]
pub(crate) struct Compare {
    #[command(flatten)]
    options: Options,
}

impl Compare {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let answer = answer(&self.options, Kind::Compare, place)?;
        Ok(if answer.is_interrupted {
            Exit::Interrupted
        } else {
            Exit::Done
        })
    }
}

/// Which command asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Compare,
    Gate,
    /// The base against itself.
    ControlOnly,
}

/// What was answered.
pub(super) struct Answer {
    pub(super) comparison: Comparison,
    pub(super) is_interrupted: bool,
}

/// What came before the first round.
struct Looked {
    sides: Vec<Side>,
    control: Vec<String>,
    seen: Seen,
    /// Whether the sides are one program.
    is_same: bool,
    notes: Vec<String>,
}

/// Compares, and writes the answer wherever it was asked for.
pub(super) fn answer(options: &Options, kind: Kind, place: &Place) -> Result<Answer, Failed> {
    let files = [
        &options.json,
        &options.junit,
        &options.sarif,
        &options.summary,
    ];
    for file in files.into_iter().flatten() {
        output::check_files(None, Some(file))?;
    }
    let limits = options.limits()?;
    if let Some(comparison) = stored::asked(options, &limits, place)? {
        write(options, &comparison)?;
        return Ok(Answer {
            comparison,
            is_interrupted: false,
        });
    }
    check(options)?;
    let mut store = Store::open(&place.store_file()?)?;
    let mut session = Session::begin(place, None)?;
    let progress = Progress::new();
    let commits = match revisions(options, &session.context(&progress)) {
        Ok(commits) => commits,
        Err(failed) => {
            session.end()?;
            return Err(failed);
        }
    };
    let begun_ns = session.now_ns();
    let result = measured(
        options,
        kind,
        commits.as_ref(),
        (place, &mut session, &mut store),
        &progress,
        begun_ns,
    );
    progress.finish();
    let cx = session.context(&progress);
    if let Some(command) = &options.cleanup
        && let Err(failed) = once(&cx, "--cleanup", command)
    {
        output::tell(&format!("note: {failed}"));
    }
    if let Some(commits) = &commits {
        commits.remove(&cx);
    }
    let (comparison, measured) = match result {
        Ok(found) => found,
        Err(failed) => {
            if !failed.may_have_left {
                session.end()?;
            }
            return Err(failed);
        }
    };
    let written = write(options, &comparison);
    for line in &measured.left_behind {
        output::tell(&format!("left behind: {line}; `tare clean` tries again"));
    }
    if measured.left_behind.is_empty() {
        session.end()?;
    }
    written?;
    Ok(Answer {
        comparison,
        is_interrupted: measured.is_interrupted,
    })
}

/// Whether the command line names something to compare.
fn check(options: &Options) -> Result<(), Failed> {
    let wrong = |problem: &str, hint: &str| Err(Failed::new(Exit::Usage, problem).hint(hint));
    let example = "tare compare 'gzip -6 big' 'zstd -3 big', or tare compare --base main --build 'make' -- ./program";
    if !options.command.is_empty() && !options.sides.is_empty() {
        return wrong("commands before and behind `--`", example);
    }
    if options.sides.is_empty() && options.command.is_empty() {
        return wrong("there is nothing to compare", example);
    }
    if !options.sides.is_empty() && options.a.is_some() {
        return wrong(
            "environments are compared by one command",
            "write it behind `--`",
        );
    }
    if options.command.is_empty()
        && (options.base.is_some() || options.head.is_some() || options.build.is_some())
    {
        return wrong(
            "revisions are compared by one command",
            "write it behind `--`",
        );
    }
    let has_host_only = options.prepare.is_some() || options.conclude.is_some();
    if has_host_only && (options.env.is_some() || options.a.is_some()) {
        return wrong(
            "`--prepare` and `--conclude` run on the host, and the commands do not",
            "put what belongs to each run into the command",
        );
    }
    Ok(())
}

/// Both revisions, built, where revisions are compared.
fn revisions(options: &Options, cx: &Context<'_>) -> Result<Option<Commits>, Failed> {
    if options.command.is_empty() || options.a.is_some() {
        return Ok(None);
    }
    let commits = Commits::checked_out(cx, options.base.as_deref(), options.head.as_deref())?;
    for commit in commits.all() {
        output::tell(&format!("{}: {}", commit.arm, commit.label()));
    }
    if let Some(build) = &options.build
        && let Err(failed) = commits.build(cx, build)
    {
        commits.remove(cx);
        return Err(failed);
    }
    Ok(Some(commits))
}

type Machine<'a> = (&'a Place, &'a mut Session, &'a mut Store);

fn measured(
    options: &Options,
    kind: Kind,
    commits: Option<&Commits>,
    (place, session, store): Machine<'_>,
    progress: &Progress,
    begun_ns: u64,
) -> Result<(Comparison, Measured), Failed> {
    let limits = options.limits()?;
    let cx = session.context(progress);
    if let Some(command) = &options.setup {
        once(&cx, "--setup", command)?;
    }
    let looked = looked(options, kind, commits, &cx)?;
    let seed = options.seed.unwrap_or_else(crate::cx::drawn_seed);
    let mut measured = Measured {
        runs: Vec::new(),
        rows: Vec::new(),
        decision: Decision::Same,
        whole_trials: Vec::new(),
        left_behind: Vec::new(),
        is_interrupted: false,
    };
    if !looked.is_same {
        let question = Question {
            sides: &looked.sides,
            control: &looked.control,
            seen: &looked.seen,
            limits: &limits,
            gate: kind != Kind::Compare,
            seed,
            budget_ns: options.budget,
            begun_ns,
            hooks: hooks(options),
        };
        measured = measure::all(&question, place, session, store, progress)?;
    }
    let sides = looked.sides.iter().map(|side| SideNote {
        arm: side.arm.clone(),
        label: side.label.clone(),
    });
    let how = match &looked.seen.in_slices {
        Ok(slices) if measured.whole_trials.is_empty() => {
            format!("interleaved in slices of {} ms", slices.ns / 1_000_000)
        }
        Ok(_) => format!(
            "whole runs in random order ({})",
            measured.whole_trials.join("; ")
        ),
        Err(why) => format!("whole runs in random order, because a command {why}"),
    };
    let comparison = Comparison {
        comparison: compare::VERSION,
        tare: env!("CARGO_PKG_VERSION").to_owned(),
        runs: measured.runs.iter().map(ToString::to_string).collect(),
        paired: true,
        gate: kind != Kind::Compare,
        seed,
        wall_s: session.now_ns().saturating_sub(begun_ns) as f64 / 1e9,
        how,
        sides: sides.collect(),
        rows: std::mem::take(&mut measured.rows),
        notes: looked.notes,
        decision: measured.decision,
    };
    Ok((comparison, measured))
}

fn hooks(options: &Options) -> Hooks<'_> {
    Hooks {
        prepare: options.prepare.as_deref(),
        conclude: options.conclude.as_deref(),
    }
}

/// Looks at every side once: its first time is on the screen as soon as it is known.
fn looked(
    options: &Options,
    kind: Kind,
    commits: Option<&Commits>,
    cx: &Context<'_>,
) -> Result<Looked, Failed> {
    let is_control_only = kind == Kind::ControlOnly;
    let mut sides = sides::of(options, commits, is_control_only, cx)?;
    if sides.len() < 2 {
        return Err(Failed::new(Exit::Usage, "one command alone is compared with nothing")
            .hint("name another: tare compare 'CMD A' 'CMD B'; `tare gate --aa` compares one with itself"));
    }
    let mut looks: Vec<Observed> = Vec::new();
    let mut in_slices: Option<Result<InSlices, String>> = None;
    let hooks = hooks(options);
    if !hooks.are_none() {
        in_slices = Some(Err("has a command before or after each run".to_owned()));
    }
    let hooked = |option: &str, command: &Option<String>| match command {
        Some(command) => once(cx, option, command),
        None => Ok(()),
    };
    for side in &sides {
        hooked("--prepare", &options.prepare)?;
        let first_run = |ns: u64| {
            output::tell(&format!(
                "{}: {} in one run of `{}`",
                side.arm,
                report::terminal::time(ns as f64),
                sides::named(side)
            ));
        };
        let (look, cut) =
            calibrate::look_at_side(cx, &ask(options, side), options.warmup, &first_run)?;
        hooked("--conclude", &options.conclude)?;
        in_slices = Some(match (in_slices.take(), cut) {
            (None, cut) => cut,
            (Some(Ok(one)), Ok(other)) => Ok(InSlices {
                ns: one.ns.min(other.ns),
                one_processor: one.one_processor && other.one_processor,
            }),
            (Some(Err(why)), _) | (_, Err(why)) => Err(why),
        });
        looks.push(look);
    }
    let mut notes = Vec::new();
    if !is_control_only {
        same_output(options, &sides, &looks)?;
    }
    let is_same = !is_control_only && sides::are_same_program(&sides, &looks);
    if is_same {
        notes.push("all sides are the same program with the same arguments, by SHA-256: nothing was measured (`tare gate --aa` measures one against itself)".to_owned());
    }
    // A copy is tried, which needs what comes before and after a run.
    let control = if is_same || !hooks.are_none() {
        sides[0].call.argv.clone()
    } else {
        copies::made(cx, &mut sides, &looks)
    };
    let longest_ns = looks.iter().map(|look| look.wall_ns).max().unwrap_or(0);
    Ok(Looked {
        sides,
        control,
        seen: Seen {
            longest_ns,
            in_slices: in_slices.unwrap_or_else(|| Err("was not seen".to_owned())),
            is_chatty: looks
                .iter()
                .any(|look| look.report.stdout.0.len() > CHATTY_BYTES),
        },
        is_same,
        notes,
    })
}

/// A faster wrong answer is no gain.
fn same_output(options: &Options, sides: &[Side], looks: &[Observed]) -> Result<(), Failed> {
    if options.allow_different_output {
        return Ok(());
    }
    let base = &looks[0].report.stdout;
    let other = looks
        .iter()
        .zip(sides)
        .find(|(look, _)| look.report.stdout != *base);
    let Some((_, side)) = other else {
        return Ok(());
    };
    Err(Failed::new(
        Exit::Usage,
        format!(
            "{} and {} print different things",
            sides[0].arm, side.arm
        ),
    )
    .hint("`--allow-different-output` compares them nevertheless; or send the output elsewhere: `--shell 'CMD >/dev/null'`"))
}

/// A side as the first look takes it.
fn ask(options: &Options, side: &Side) -> Ask {
    Ask {
        command: side.command.clone(),
        driver: side.driver.clone(),
        settings: side.settings.clone(),
        program: side.program.clone(),
        metric: crate::workload::compared_command::WALL.id.to_owned(),
        budget_ns: options.budget,
        seed: 0,
        call: side.call.clone(),
        carried: Vec::new(),
        instead: Vec::new(),
        own: None,
    }
}

fn once(cx: &Context<'_>, option: &str, command: &str) -> Result<(), Failed> {
    let failed = |why: String| {
        Failed::new(
            Exit::Failure,
            format!("`{option} {}` failed: {why}", output::printable(command)),
        )
    };
    match cx.exec.run(&in_folder(".", command), &[], SETUP_LIMIT) {
        Ok(finished) if finished.status == Some(0) => Ok(()),
        Ok(finished) => Err(failed(last_words(&finished))),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Writes every form that was asked for; the table unless JSON has standard output.
fn write(options: &Options, comparison: &Comparison) -> Result<(), Failed> {
    let put = |file: &Option<std::path::PathBuf>, text: String| match file {
        Some(file) => files::write_output(file, text.as_bytes()),
        None => Ok(()),
    };
    put(&options.junit, forms::junit(comparison))?;
    put(&options.sarif, forms::sarif(comparison))?;
    put(&options.summary, forms::summary(comparison))?;
    let json = serde_json::to_string_pretty(comparison).expect("texts and numbers are JSON") + "\n";
    if options.json.as_deref() == Some(Path::new("-")) {
        output::data(&json)?;
        return Ok(());
    }
    put(&options.json, json)?;
    let width = output::width().min(100);
    output::text(&forms::terminal(comparison, width))?;
    output::data(&forms::annotations(comparison, options.annotations))?;
    Ok(())
}
