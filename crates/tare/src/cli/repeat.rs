//! `tare repeat BUNDLE`: measures the study of a published run here and prints its overhead next to the published
//! one.
//!
//! A study is a program: its workloads and settings name commands. One that this user did not start with exactly this
//! plan runs only with `--trust`.
//! Limits: cannot check that the bundle's numbers were measured as it says; `tare replay` checks that they follow
//! from its raw output.

use std::path::{Path, PathBuf};

use clap::Args;
use tare_model::Study;
use tare_model::dossier::Dossier;

use super::bundle::Bundle;
use super::measure::{Ends, Work};
use super::{Exit, Failed, recount, trusted};
use crate::config::units;
use crate::cx::started_runs;
use crate::plan::Plan;
use crate::session::home::GivenPaths;
use crate::store::Store;
use crate::why;

#[derive(Debug, Args)]
pub(crate) struct Repeat {
    /// Bundle of a run (`tare report RUN --bundle FILE` writes one).
    bundle: PathBuf,
    /// Limit the time of the run, such as `90s` (default: the bundle's).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    #[command(flatten)]
    ends: Ends,
    /// Run the commands of a study that was not started here.
    #[arg(long)]
    trust: bool,
}

impl Repeat {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        self.ends.check_files()?;
        let Published { study, there } = Published::read(&self.bundle, self.budget, self.trust)?;
        self.ends.check(&study)?;
        let mut store = Store::open(&place.store_file()?)?;
        let work = Work::Study {
            study: &study,
            by_blocks: false,
            there: Some(&there),
        };
        self.ends.carried_out(place, &mut store, &work)
    }
}

/// What is repeated.
struct Published {
    /// The study as it was run there: the same arms, workloads, order and margins.
    study: Study,
    /// What was found there.
    there: Dossier,
}

impl Published {
    /// Reads the study and numbers of a bundle, if it may be executed here.
    fn read(path: &Path, budget_ns: Option<u64>, is_trusted: bool) -> Result<Self, Failed> {
        let bundle = Bundle::read(path)?;
        let there = bundle.dossier()?;
        let store = bundle.store()?;
        let run = recount::resolve(&store, &there.run)?;
        let mut study = store.run_without_records(&run)?.study;
        bundle.check_study(&study)?;
        if why::is_own_study(&study) {
            return Err(Failed::new(
                Exit::Usage,
                format!(
                    "`{}` holds an answer of `tare why`, which depends on what it found on the way",
                    path.display()
                ),
            )
            .hint(
                "ask `tare why` the same here; `tare replay` derives the bundle's numbers again",
            ));
        }
        trusted::check_size(&study)?;
        // From the study that would run, not from the bundle's claim about it.
        let plan = Plan::new(&study);
        let state = GivenPaths::state_folder()?;
        if !is_trusted && !started_runs::is_noted(&state, &run, plan.sha256())? {
            let what = format!(
                "the run in `{}` was not begun here, and to repeat it",
                path.display()
            );
            return Err(trusted::refusal(&what, &study).hint(
                "`study.json` in the bundle is that study; `--trust` repeats it all the same",
            ));
        }
        study.budget_ns = budget_ns.or(study.budget_ns);
        Ok(Self { study, there })
    }
}
