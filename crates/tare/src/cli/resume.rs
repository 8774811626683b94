//! `tare resume`: resumes an interrupted run, or adds blocks to a finished one.
//!
//! A study is a program: its workloads and settings name commands. A run that this user did not start with exactly
//! this plan is resumed only with `--trust`.

use std::path::Path;

use clap::Args;

use super::measure::{Ends, Work};
use super::{Exit, Failed, trusted};
use crate::config::units;
use crate::cx::started_runs;
use crate::session::home::GivenPaths;
use crate::store::Store;
use crate::why;

#[derive(Debug, Args)]
pub(crate) struct Resume {
    /// The run; a part of its name that no other has is enough (default: the newest interrupted one).
    run: Option<String>,
    /// Limit the time from now on, such as `60s`; a finished run gets further blocks (default: what is left of the run's).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    #[command(flatten)]
    ends: Ends,
    /// Run the commands of a study that was not started here.
    #[arg(long)]
    trust: bool,
}

impl Resume {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        self.ends.files.check()?;
        let mut store = place.store()?;
        let work = self.work(&store)?;
        self.ends.carried_out(place, &mut store, &work)
    }

    /// Returns the run if it may be executed here.
    fn work(&self, store: &Store) -> Result<Work<'static>, Failed> {
        let run = match &self.run {
            None => store.latest_unfinished()?.ok_or_else(|| {
                Failed::usage("there is no interrupted run to resume")
                    .hint("`tare runs` lists the runs")
            })?,
            Some(text) => store.resolve(text)?,
        };
        let stored = store.run_without_records(&run)?;
        let state = GivenPaths::state_folder()?;
        let is_own = started_runs::is_noted(&state, &run, &stored.plan_sha256)?;
        if !is_own {
            trusted::check_size(&stored.study)?;
        }
        if !self.trust && !is_own {
            let what = format!("run {run} was not begun here, and resuming it");
            return Err(trusted::refusal(&what, &stored.study).hint(format!(
                "`tare show {run} --json` shows the study; `--trust` resumes it all the same"
            )));
        }
        let study = stored.study;
        if let Some(file) = why::input_of(&study).filter(|file| !Path::new(file).is_file()) {
            return Err(Failed::usage(format!(
                "the standard input of the command in run {run} is no longer there: `{file}`"
            ))
            .hint("ask `tare why` again, with the same input"));
        }
        Ok(Work::Stored {
            run,
            is_own,
            budget_ns: self.budget,
        })
    }
}
