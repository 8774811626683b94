//! `tare clean`: removes what a killed run left behind.

use std::path::Path;

use clap::Args;
use tare_model::RunId;

use super::home::Place;
use super::session::Session;
use super::{Exit, Failed, output};
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
        let result = sweep(&session, &state, &dead);
        session.end()?;
        result
    }
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
