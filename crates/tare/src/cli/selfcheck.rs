//! `tare selfcheck`: counts the errors of this Tare on this machine where the truth is known.
//!
//! Three parts: golden numbers of another implementation, simulated runs through the whole analysis, and a run of
//! three equal arms on this machine, judged in windows. The run is stored like any other; the result is a line of a
//! file next to the store, which later runs read.

use clap::Args;

use super::{Exit, Failed, output, recount};
use crate::config::units;
use crate::selfcheck::{Checked, equal_arms, keep, measure, planted_text};
use crate::session::home::GivenPaths;

/// The number of simulated runs, in a short and in a long check.
const SIMULATED: (u32, u32) = (400, 4_000);
/// The time for which equal arms are measured, in a short and in a long check, nanoseconds.
const MEASURED_NS: (u64, u64) = (120_000_000_000, 8 * 3_600_000_000_000);
#[derive(Debug, Args)]
pub(crate) struct Selfcheck {
    /// Measure equal arms for this time (default: 2m).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    /// Check for a night: 8 hours of equal arms, 4000 made-up runs.
    #[arg(long)]
    long: bool,
    /// Judge a stored selfcheck run instead of measuring one.
    #[arg(long, value_name = "RUN", conflicts_with = "budget")]
    recording: Option<String>,
    /// Say how often a stored run's last arm is found slower, and keep nothing: it does so much more work.
    #[arg(long, value_parser = units::fraction, value_name = "PERCENT", requires = "recording")]
    planted: Option<f64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

impl Selfcheck {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let mut store = place.store()?;
        let recording = if let Some(text) = &self.recording {
            let run = recount::resolve(&store, text)?;
            Some(recount::run_data(store.run(&run)?))
        } else {
            let default_ns = if self.long {
                MEASURED_NS.1
            } else {
                MEASURED_NS.0
            };
            let study = equal_arms(self.budget.unwrap_or(default_ns))?;
            measure(&study, place, &mut store)?
        };
        let Some(recording) = recording else {
            output::tell("interrupted: nothing of this selfcheck is kept but its run");
            return Ok(Exit::Interrupted);
        };
        if let Some(planted) = self.planted {
            output::text(&planted_text(&recording, planted))?;
            return Ok(Exit::Done);
        }
        let n_simulated = if self.long { SIMULATED.1 } else { SIMULATED.0 };
        let checked = Checked::judge(&recording, n_simulated)?;
        keep(&GivenPaths::state_folder()?, &checked)?;
        if self.json {
            let text = serde_json::to_string_pretty(&checked);
            let text = text.map_err(Failed::failure)?;
            output::data(&format!("{text}\n"))?;
        } else {
            output::text(&checked.page())?;
        }
        Ok(if checked.passed {
            Exit::Done
        } else {
            Exit::Failure
        })
    }
}
