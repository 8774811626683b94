//! `tare show RUN`: a stored run, derived again from its raw data.

use super::home::Place;
use super::{Exit, Failed, output, recount};
use crate::report::{self, terminal};
use crate::store::Store;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The run: its name, the beginning of it, or `latest`.
    #[arg(default_value = "latest")]
    run: String,
    /// Compare with this arm instead of the study's baseline: a volume with a layer, one engine with another. The second
    /// copy of the baseline is left out then.
    #[arg(long, value_name = "ARM")]
    against: Option<String>,
    /// The dossier as JSON instead of the table.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        let store = Store::open_to_read(&place.store_file()?)?;
        let run = recount::resolve(&store, &self.run)?;
        let dossier = match &self.against {
            Some(arm) => recount::against(&store, &run, arm)?,
            None => recount::dossier(&store, &run)?,
        };
        if self.json {
            output::data(&report::json::to_string(&dossier))?;
        } else {
            let text = terminal::told(&dossier, output::style(), terminal::table);
            output::data(&text)?;
        }
        Ok(Exit::Done)
    }
}
