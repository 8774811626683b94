//! `tare clean`: removes what a killed run left behind. A command that measures does the same before it begins.

use std::path::Path;

use clap::Args;
use tare_model::RunId;

use super::home::Place;
use super::session::Session;
use super::{Exit, Failed, output};
use crate::cx::Context;
use crate::cx::files;
use crate::cx::observer::Silent;
use crate::cx::owner::{self, Owner};
use crate::env;

#[derive(Debug, Args)]
pub(crate) struct Clean {}

impl Clean {
    #[allow(clippy::unused_self, reason = "every command is executed the same way")]
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        // Where there is nothing to remove, nothing is made either.
        let state = Place::existing_state_folder()?;
        let dead = state.as_deref().map(owner::dead_runs).transpose()?;
        let (Some(state), Some(dead)) = (state, dead.filter(|dead| !dead.is_empty())) else {
            output::tell(NOTHING);
            return Ok(Exit::Done);
        };
        let session = Session::begin_to_clean(place, None)?;
        let result = sweep_and_say(&session, &state, &dead);
        session.end()?;
        result
    }
}

const NOTHING: &str = "nothing was left behind";

/// In the folder of a killed run that a command could not remove before it began: the next does not try again.
const TRIED: &str = "clean-tried";

/// Removes what killed runs left, before a run begins. What cannot be removed at once is left to `tare clean`.
pub(super) fn before_a_run(cx: &Context<'_>, state: &Path) -> Result<(), Failed> {
    let dead = owner::dead_runs(state)?;
    let is_tried = |run: &&RunId| owner::folder(state, run).join(TRIED).exists();
    let (tried, new): (Vec<_>, Vec<_>) = dead.iter().partition(is_tried);
    let swept = sweep(cx, state, new)?;
    if !swept.removed.is_empty() {
        output::tell(&format!(
            "note: removed what killed runs had left ({})",
            output::printable(&swept.removed.join(", "))
        ));
    }
    for (run, problem) in &swept.problems {
        files::write(&owner::folder(state, run).join(TRIED), b"")?;
        output::tell(&format!("note: {}", output::printable(problem)));
    }
    if !tried.is_empty() || !swept.problems.is_empty() {
        output::tell(LEFTOVERS);
    }
    Ok(())
}

/// What a killed run has done.
const LEFTOVERS: &str = "note: a killed run left files behind, maybe containers and copies of variables too: `tare clean` \
                         removes them";

/// What became of the leftovers of killed runs.
#[derive(Default)]
struct Swept {
    /// A line each.
    removed: Vec<String>,
    /// Why something of a run is still there.
    problems: Vec<(RunId, String)>,
}

fn sweep_and_say(session: &Session, state: &Path, dead: &[RunId]) -> Result<Exit, Failed> {
    let swept = sweep(&session.context(&Silent), state, dead)?;
    for line in &swept.removed {
        output::text(&format!("{}\n", output::printable(line)))?;
    }
    if swept.removed.is_empty() && swept.problems.is_empty() {
        output::tell(NOTHING);
    }
    if swept.problems.is_empty() {
        return Ok(Exit::Done);
    }
    let problems: Vec<String> = swept.problems.into_iter().map(|(_, line)| line).collect();
    Err(Failed::new(
        Exit::Failure,
        format!(
            "something could not be removed:\n{}",
            output::printable(&problems.join("\n"))
        ),
    ))
}

/// Every driver is asked about every dead run, whatever the others answered; a run's folder goes last and
/// only if nothing of it is left, so that another `tare clean` can try again. Meanwhile the run is owned here, so
/// that nobody goes on with what is being removed.
fn sweep<'a>(
    cx: &Context<'_>,
    state: &Path,
    dead: impl IntoIterator<Item = &'a RunId>,
) -> Result<Swept, Failed> {
    let mut swept = Swept::default();
    for run in dead {
        // Somebody else may have taken it up by now, or removed it.
        let Some(owner) = Owner::take_dead(state, run)? else {
            continue;
        };
        let n_problems = swept.problems.len();
        for driver in env::DRIVERS {
            let id = driver.id();
            match driver.sweep(cx, run.as_str()) {
                Ok(lines) => {
                    let lines = lines.iter().map(|line| format!("{run}: {id}: {line}"));
                    swept.removed.extend(lines);
                }
                Err(error) => swept
                    .problems
                    .push((run.clone(), format!("{run}: {id}: {error}"))),
            }
        }
        if swept.problems.len() > n_problems {
            continue;
        }
        match owner.remove() {
            Ok(()) => swept.removed.push(format!("{run}: its folder")),
            Err(error) => swept
                .problems
                .push((run.clone(), format!("{run}: {error}"))),
        }
    }
    Ok(swept)
}
