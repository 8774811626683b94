//! `tare repeat BUNDLE`: measures the study of a published run here and prints its overhead next to the published
//! one.
//!
//! A study is a program: its workloads and settings name commands. One that this user did not start with exactly this
//! plan runs only with `--trust`.
//! Limits: cannot check that the bundle's numbers were measured as it says; `tare replay` checks that they follow
//! from its raw output.

use std::path::PathBuf;

use clap::Args;

use super::measure::{Ends, Work};
use super::{Exit, Failed, bundle};
use crate::config::units;
use crate::session::home::GivenPaths;

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
        self.ends.files.check()?;
        let (mut study, there) = bundle::to_repeat(&self.bundle, self.trust)?;
        study.budget_ns = self.budget.or(study.budget_ns);
        self.ends.check(&study)?;
        let mut store = place.store()?;
        let work = Work::Study {
            study: &study,
            by_blocks: false,
            there: Some(&there),
        };
        self.ends.carried_out(place, &mut store, &work)
    }
}
