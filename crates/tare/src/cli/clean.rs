//! `tare clean`: removes what a killed run left behind.

use std::path::Path;

use clap::Args;
use tare_model::RunId;

use super::{Exit, Failed, output};
use crate::cx::observer::Silent;
use crate::cx::owner;
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::session::leftovers::sweep;

#[derive(Debug, Args)]
pub(crate) struct Clean {}

impl Clean {
    #[allow(clippy::unused_self, reason = "every command is executed the same way")]
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        // Does not create a state folder if there is none.
        let state = GivenPaths::existing_state_folder()?;
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
    Err(Failed::failure(format!(
        "something could not be removed:\n{}",
        problems.join("\n")
    )))
}
