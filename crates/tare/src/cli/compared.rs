//! The options that choose what the arms of a stored run are compared with: the baseline, another arm, or each other.

use clap::Args;
use tare_model::RunId;
use tare_model::dossier::Dossier;

use super::{Failed, recount};
use crate::store::Store;

/// The options of commands that tell a run.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Compared {
    /// Compare with this arm instead of the study's baseline; there is no A/A control then.
    #[arg(long, value_name = "ARM")]
    pub(super) against: Option<String>,
    /// Compare arms pairwise too, from the same blocks (in a study: `pairs = true` under `[design]`).
    #[arg(long, conflicts_with = "against")]
    pub(super) pairs: bool,
}

impl Compared {
    /// Returns the dossier of a stored run with these comparisons.
    pub(super) fn dossier(&self, store: &Store, run: &RunId) -> Result<Dossier, Failed> {
        match &self.against {
            Some(arm) => recount::against(store, run, arm),
            None if self.pairs => recount::with_pairs(store, run),
            None => recount::dossier(store, run),
        }
    }
}
