//! `tare clean`: removes what a killed run left behind.

use std::path::Path;

use clap::Args;
use tare_model::RunId;

use super::home::Place;
use super::kept_readings::remove_useless;
use super::session::Session;
use super::{Exit, Failed, output};
use crate::cx::observer::Silent;
use crate::cx::owner::{self, Owner};
use crate::env;
use crate::store::Store;

#[derive(Debug, Args)]
pub(crate) struct Clean {}

impl Clean {
    #[allow(clippy::unused_self, reason = "every command is executed the same way")]
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        // Where there is nothing to remove, nothing is made either.
        let state = Place::existing_state_folder()?;
        if let Some(state) = &state {
            remove_readings(place, state)?;
        }
        let dead = state.as_deref().map(owner::dead_runs).transpose()?;
        let (Some(state), Some(dead)) = (state, dead.filter(|dead| !dead.is_empty())) else {
            output::tell(NOTHING);
            return Ok(Exit::Done);
        };
        let session = Session::begin_to_clean(place, None)?;
        let result = sweep(&session, &state, &dead);
        session.end()?;
        result
    }
}

/// Removes what was kept of runs for their next reports, and is read no more.
fn remove_readings(place: &Place, state: &Path) -> Result<(), Failed> {
    // A store that cannot be read says nothing of its runs.
    let Ok(runs) = Store::open_to_read(&place.store_file()?).and_then(|store| store.runs()) else {
        return Ok(());
    };
    let known: Vec<RunId> = runs.into_iter().map(|line| line.id).collect();
    let n_removed = remove_useless(state, &known)?;
    if n_removed > 0 {
        output::text(&format!(
            "readings that were kept of {n_removed} runs, and are read no more\n"
        ))?;
    }
    Ok(())
}

const NOTHING: &str = "nothing was left behind";

/// Every driver is asked about every dead run, whatever the others answered; a run's folder goes last and
/// only if nothing of it is left, so that another `tare clean` can try again. Meanwhile the run is owned here, so
/// that nobody goes on with what is being removed.
fn sweep(session: &Session, state: &Path, dead: &[RunId]) -> Result<Exit, Failed> {
    let cx = session.context(&Silent);
    let mut n_removed = 0;
    let mut problems = Vec::new();
    for run in dead {
        // Somebody else may have taken it up by now, or removed it.
        let Some(owner) = Owner::take_dead(state, run)? else {
            continue;
        };
        let n_problems = problems.len();
        for driver in env::DRIVERS {
            match driver.sweep(&cx, run.as_str()) {
                Ok(removed) => {
                    n_removed += removed.len();
                    for line in removed {
                        output::text(&format!(
                            "{run}: {}: {}\n",
                            driver.id(),
                            output::printable(&line)
                        ))?;
                    }
                }
                Err(error) => problems.push(format!("{run}: {}: {error}", driver.id())),
            }
        }
        if problems.len() > n_problems {
            continue;
        }
        match owner.remove() {
            Ok(()) => {
                n_removed += 1;
                output::text(&format!("{run}: its folder\n"))?;
            }
            Err(error) => problems.push(format!("{run}: {error}")),
        }
    }
    if !problems.is_empty() {
        return Err(Failed::new(
            Exit::Failure,
            format!(
                "something could not be removed:\n{}",
                output::printable(&problems.join("\n"))
            ),
        ));
    }
    if n_removed == 0 {
        output::tell(NOTHING);
    }
    Ok(Exit::Done)
}
