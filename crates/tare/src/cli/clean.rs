//! `tare clean`: removes what a killed run left behind.

use clap::Args;

use super::home::Place;
use super::session::{self, Session};
use super::{Exit, Failed, output};
use crate::cx::observer::Silent;
use crate::env;

#[derive(Debug, Args)]
pub(crate) struct Clean {}

impl Clean {
    #[allow(clippy::unused_self, reason = "every command is executed the same way")]
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let session = Session::begin(place, None)?;
        let result = sweep(&session);
        session.end()?;
        result
    }
}

/// Every driver is asked about every dead run, whatever the others answered; a run's folder goes last and
/// only if nothing of it is left, so that another `tare clean` can try again.
fn sweep(session: &Session) -> Result<Exit, Failed> {
    let cx = session.context(&Silent);
    let (state, dead) = session::dead_runs()?;
    let mut n_removed = 0;
    let mut problems = Vec::new();
    for run in &dead {
        let n_problems = problems.len();
        for driver in env::DRIVERS {
            match driver.sweep(&cx, Some(run.as_str())) {
                Ok(removed) => {
                    n_removed += removed.len();
                    for line in removed {
                        output::data(&format!(
                            "{run}: {}: {}\n",
                            driver.id(),
                            output::printable(&line)
                        ))?;
                    }
                }
                Err(env::EnvError::Absent { .. }) => {}
                Err(error) => problems.push(format!("{run}: {}: {error}", driver.id())),
            }
        }
        if problems.len() == n_problems && session::remove_dead(&state, run)? {
            n_removed += 1;
            output::data(&format!("{run}: its folder\n"))?;
        }
    }
    if !problems.is_empty() {
        return Err(Failed::new(
            Exit::Finding,
            format!(
                "something could not be removed:\n{}",
                output::printable(&problems.join("\n"))
            ),
        ));
    }
    if n_removed == 0 {
        output::tell("nothing was left behind");
    }
    Ok(Exit::Done)
}
