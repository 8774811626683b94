//! `tare show RUN`: prints a stored run, computed again from its raw output.

use super::compared::Compared;
use super::{Exit, Failed, output, recount};
use crate::report;
use crate::report::terminal::{self, Called};
use crate::session::home::GivenPaths;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Run: its name, a prefix of it, or `latest`.
    #[arg(default_value = "latest")]
    run: String,
    #[command(flatten)]
    compared: Compared,
    /// Compare this run (B) with RUN (A).
    #[arg(long, value_name = "RUN", conflicts_with_all = ["against", "pairs", "json"])]
    beside: Option<String>,
    /// Print the dossier as JSON.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn execute(&self, place: &GivenPaths) -> Result<Exit, Failed> {
        let store = place.store_to_read()?;
        let run = recount::resolve(&store, &self.run)?;
        let dossier = self.compared.dossier(&store, &run)?;
        if let Some(other) = &self.beside {
            let other = recount::dossier(&store, &recount::resolve(&store, other)?)?;
            let text = terminal::two_runs(&other, &dossier, Called::A_AND_B, output::style());
            output::text(&text)?;
        } else if self.json {
            output::data(&report::json::to_string(&dossier))?;
        } else {
            let text = terminal::draw(&dossier, output::style(), terminal::table);
            output::text(&text)?;
        }
        Ok(Exit::Done)
    }
}
