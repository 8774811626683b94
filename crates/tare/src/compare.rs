//! Runs `tare compare` and `tare gate` on the machine. Planning and judging are in [`tare_core::compare`].
//!
//! Steps: find the sides, run each once, compare their output, copy their programs, measure in rounds, answer.
//! `tare gate` does the same with stronger proof and an exit status.

use crate::cx::{Context, files};
use crate::failed::Failed;
use crate::output;
use crate::report::compared;
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::session::progress::Progress;
use crate::store::Store;
use commits::{Commits, shell};
use limits::Limits;
use look::looked;
use measure::{Measured, Question};
use options::Options;

pub use tare_core::compare::*;

mod commits;
mod copies;
mod counted;
mod look;
mod measure;
pub(crate) mod options;
pub(crate) mod points;
mod sides;
mod stored;
pub(crate) mod suite;

/// Time limit of `--setup` and `--cleanup`.
const SETUP_LIMIT: std::time::Duration = std::time::Duration::from_secs(3_600);

/// The calling command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Compare,
    Gate,
    /// Compares the base with itself.
    ControlOnly,
}

/// The comparison, and whether it was interrupted.
pub(crate) struct Answer {
    pub(crate) comparison: Comparison,
    pub(crate) is_interrupted: bool,
}

/// Runs the comparison and writes the answer to every requested output.
pub(crate) fn answer(options: &Options, kind: Kind, place: &GivenPaths) -> Result<Answer, Failed> {
    let files = [
        &options.json,
        &options.junit,
        &options.sarif,
        &options.summary,
    ];
    let files = files.into_iter().flatten();
    output::check_files(files.filter(|file| !output::is_dash(file)))?;
    let limits = options.limits()?;
    if let Some(run) = &options.against {
        return against(options, (run, &limits), place);
    }
    if let Some(comparison) = stored::asked(options, &limits, place)? {
        write(options, &comparison)?;
        return Ok(Answer {
            comparison,
            is_interrupted: false,
        });
    }
    check(options)?;
    let mut store = place.store()?;
    let (written, answer) = Session::within(place, |session, progress| {
        let commits = revisions(options, &session.context(progress))?;
        let machine = &mut (&mut *session, &mut store);
        let result = all_measured(options, kind, commits.as_ref(), machine, progress);
        progress.finish();
        let cx = session.context(progress);
        if let Some(command) = &options.cleanup
            && let Err(failed) = once(&cx, "--cleanup", command)
        {
            output::tell(&format!("note: {failed}"));
        }
        if let Some(commits) = &commits {
            commits.remove(&cx);
        }
        let (comparison, measured) = result?;
        let answer = Answer {
            comparison,
            is_interrupted: measured.is_interrupted,
        };
        let written = write(options, &answer.comparison);
        Ok(((written, answer), measured.left_behind))
    })?;
    written?;
    Ok(answer)
}

/// Compares one command with a stored run; measures the command first unless it is a stored run too.
fn against(
    options: &Options,
    (run, limits): (&str, &Limits),
    place: &GivenPaths,
) -> Result<Answer, Failed> {
    let [given] = options.sides.as_slice() else {
        return Err(Failed::usage(
            "`--against RUN` compares one command, or one stored run, with a stored run",
        )
        .hint("tare gate --against RUN './program input'"));
    };
    let mut pair = options.clone();
    pair.against = None;
    pair.sides = vec![run.to_owned(), given.clone()];
    let of_stored = |pair: &Options| {
        stored::asked(pair, limits, place)?.ok_or_else(|| {
            let problem = format!("`{run}` is no stored run");
            Failed::usage(problem).hint("`tare runs` lists them")
        })
    };
    let mut is_interrupted = false;
    if !stored::looks_like_a_run(given) {
        stored::check(run, place)?;
        let quiet = Options {
            json: None,
            junit: None,
            sarif: None,
            summary: None,
            annotations: compared::Annotations::None,
            sides: vec![given.clone()],
            is_quiet: true,
            ..pair.clone()
        };
        let own = answer(&quiet, Kind::ControlOnly, place)?;
        is_interrupted = own.is_interrupted;
        pair.sides[1] = own.comparison.runs.last().cloned().unwrap_or_default();
    }
    let comparison = of_stored(&pair)?;
    write(options, &comparison)?;
    Ok(Answer {
        comparison,
        is_interrupted,
    })
}

/// Returns the two sides of a `tare why` question.
pub(crate) fn two_sides(options: &Options) -> Result<[crate::compare::study::Side; 2], Failed> {
    check(options)?;
    let sides = sides::from_options(options, None, false)?;
    sides.try_into().map_err(|_| {
        Failed::usage("two sides are wanted")
            .hint("tare why --a docker:image=app:1 --b docker:image=app:2 -- CMD")
    })
}

/// Checks that the command line names something to compare.
fn check(options: &Options) -> Result<(), Failed> {
    let wrong = |problem: &str, hint: &str| Err(Failed::usage(problem).hint(hint));
    let example = "tare compare 'gzip -6 big' 'zstd -3 big', or tare compare --base main --build 'make' -- ./program";
    if !options.command.is_empty() && !options.sides.is_empty() {
        return wrong("commands before and behind `--`", example);
    }
    if options.suite.is_some() {
        return Ok(());
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
    if options.has_hooks() && (options.env.is_some() || options.a.is_some()) {
        return wrong(
            "`--prepare` and `--conclude` run on the host, and the commands do not",
            "put what belongs to each run into the command",
        );
    }
    Ok(())
}

/// Checks out and builds both revisions if revisions are compared.
fn revisions(options: &Options, cx: &Context<'_>) -> Result<Option<Commits>, Failed> {
    let has_revisions = options.base.is_some() || options.head.is_some() || options.build.is_some();
    let is_wanted = !options.command.is_empty() || (options.suite.is_some() && has_revisions);
    if !is_wanted || options.a.is_some() {
        return Ok(None);
    }
    let commits = Commits::checked_out(cx, options.base.as_deref(), options.head.as_deref())?;
    for commit in commits.all() {
        output::tell(&format!("{}: {}", commit.arm, commit.label()));
    }
    if let Some(build) = &options.build
        && !commits.are_one()
        && let Err(failed) = commits.build(cx, build)
    {
        commits.remove(cx);
        return Err(failed);
    }
    Ok(Some(commits))
}

type Machine<'a> = (&'a mut Session, &'a mut Store);

/// Measures one comparison, or all those of a suite.
fn all_measured(
    options: &Options,
    kind: Kind,
    commits: Option<&Commits>,
    machine: &mut Machine<'_>,
    progress: &Progress,
) -> Result<(Comparison, Measured), Failed> {
    let begun_ns = machine.0.now_ns();
    if let Some(commits) = commits.filter(|it| it.are_one() && kind != Kind::ControlOnly) {
        return Ok((same_commit(commits, options, kind), Measured::default()));
    }
    if let Some(command) = &options.setup {
        once(&machine.0.context(progress), "--setup", command)?;
    }
    let limits = options.limits()?;
    let Some(file) = &options.suite else {
        return measured(options, kind, commits, &limits, machine, progress);
    };
    let entries = suite::entries(file)?;
    let (mut all, mut measured_all) = (None, Measured::default());
    for (place, entry) in entries.iter().enumerate() {
        let spent_ns = machine.0.now_ns().saturating_sub(begun_ns);
        let left_ns = options.budget.saturating_sub(spent_ns) / (entries.len() - place) as u64;
        let own = entry.options(options, left_ns.max(1_000_000_000))?;
        check(&own)?;
        let limits = Limits {
            entry: format!("{}.", entry.name),
            shares: entries.len(),
            ..own.limits()?
        };
        output::tell(&format!("{}:", entry.name));
        let (comparison, done) = measured(&own, kind, commits, &limits, machine, progress)?;
        all = Some(entry.joined(all, comparison));
        measured_all.runs.extend(done.runs);
        measured_all.left_behind.extend(done.left_behind);
        measured_all.is_interrupted = done.is_interrupted;
        if done.is_interrupted {
            break;
        }
    }
    let comparison = all.expect("a suite has an entry at least");
    Ok((comparison, measured_all))
}

/// The answer if base and head are the same commit: nothing is built or measured.
fn same_commit(commits: &Commits, options: &Options, kind: Kind) -> Comparison {
    let mut notes = vec![
        "head and base are the same program: one commit; nothing was built or measured".to_owned(),
    ];
    if options.base.is_none() {
        notes.push("the branch that head is merged into has it already; `--base HEAD~1` compares with the commit before".to_owned());
    }
    let commits = commits.all().iter();
    let sides = commits.map(|commit| side_note(commit.arm, commit.label()));
    unmeasured(sides.collect(), notes, kind != Kind::Compare)
}

fn side_note(arm: &str, label: String) -> SideNote {
    SideNote {
        arm: arm.to_owned(),
        label,
    }
}

/// A comparison in the same blocks of which nothing is known yet.
fn unmeasured(sides: Vec<SideNote>, notes: Vec<String>, gate: bool) -> Comparison {
    Comparison {
        comparison: VERSION,
        tare: env!("CARGO_PKG_VERSION").to_owned(),
        runs: Vec::new(),
        paired: true,
        gate,
        seed: 0,
        wall_s: 0.0,
        how: "not measured".to_owned(),
        sides,
        rows: Vec::new(),
        notes,
        decision: Decision::Same,
    }
}

fn measured(
    options: &Options,
    kind: Kind,
    commits: Option<&Commits>,
    limits: &Limits,
    (session, store): &mut Machine<'_>,
    progress: &Progress,
) -> Result<(Comparison, Measured), Failed> {
    let begun_ns = session.now_ns();
    let cx = session.context(progress);
    let looked = looked(options, kind, commits, &cx)?;
    let seed = options.seed.unwrap_or_else(crate::cx::drawn_seed);
    let mut measured = Measured {
        decision: Decision::Same,
        ..Measured::default()
    };
    if !looked.is_same {
        let question = Question {
            looked: &looked,
            options,
            limits,
            gate: kind != Kind::Compare,
            seed,
            begun_ns,
        };
        measured = measure::all(&question, session, store, progress)?;
    }
    measured
        .rows
        .extend(looked.counted.into_iter().map(|row| Row {
            name: format!("{}{}", limits.entry, row.name),
            ..row
        }));
    let sides = looked.sides.into_iter();
    let sides = sides.map(|side| side_note(&side.arm, side.label));
    let how = match &looked.seen.in_slices {
        Ok(_) if measured.whole_trials.is_empty() && looked.seen.runs > 1 => {
            format!(
                "{} whole runs of each side in a block, interleaved",
                looked.seen.runs
            )
        }
        Ok(slices) if measured.whole_trials.is_empty() => {
            format!("interleaved in slices of {} ms", slices.ns / 1_000_000)
        }
        Ok(_) => format!(
            "whole runs in random order ({})",
            measured.whole_trials.join("; ")
        ),
        Err(why) if looked.seen.runs > 1 => format!(
            "{} whole runs per trial, sides in random order, because a command {why}",
            looked.seen.runs
        ),
        Err(why) => format!("whole runs in random order, because a command {why}"),
    };
    let comparison = Comparison {
        runs: measured.runs.iter().map(ToString::to_string).collect(),
        seed,
        wall_s: session.now_ns().saturating_sub(begun_ns) as f64 / 1e9,
        how,
        rows: std::mem::take(&mut measured.rows),
        decision: measured.decision,
        ..unmeasured(sides.collect(), looked.notes, kind != Kind::Compare)
    };
    Ok((comparison, measured))
}

fn once(cx: &Context<'_>, option: &str, command: &str) -> Result<(), Failed> {
    let done = shell(cx.exec, command, SETUP_LIMIT);
    done.map_err(|why| Failed::failure(format!("`{option} {command}` failed: {why}")))
}

/// Writes every requested format; the table is printed unless JSON goes to stdout.
fn write(options: &Options, comparison: &Comparison) -> Result<(), Failed> {
    let put = |file: &Option<std::path::PathBuf>, text: String| match file {
        Some(file) => files::write_output(file, text.as_bytes()),
        None => Ok(()),
    };
    put(&options.junit, compared::junit(comparison))?;
    put(&options.sarif, compared::sarif(comparison))?;
    put(&options.summary, compared::summary(comparison))?;
    let json = serde_json::to_string_pretty(comparison).expect("texts and numbers are JSON") + "\n";
    if let Some(file) = &options.json
        && output::write_json(file, &json)?
    {
        return Ok(());
    }
    if options.is_quiet {
        return Ok(());
    }
    let width = output::width().min(100);
    output::text(&compared::terminal(comparison, width))?;
    output::data(&compared::annotations(comparison, options.annotations))?;
    Ok(())
}
