//! Tests the suspects after `tare run` by switching them off, as far as the time goes.

use tare_model::{RunId, StoppedBy, Study};

use crate::output;
use crate::recount;
use crate::report;
use crate::run::AllBlocks;
use crate::session::Session;
use crate::session::progress::{Progress, WithoutDifferences};
use crate::store::Store;
use crate::why::{self, proof};

/// Result of testing the suspects.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// Leftovers that could not be removed.
    pub(crate) left_behind: Vec<String>,
    /// Whether something that was started did not end properly.
    pub(crate) is_unclean: bool,
    pub(crate) is_interrupted: bool,
}

/// Tests the suspects of the completed `run`, for `wanted_ns` or else for the rest of its budget. Failures are only
/// reported, because the run itself is valid.
pub(crate) fn tried(
    session: &mut Session,
    store: &mut Store,
    progress: &Progress,
    run: &RunId,
    wanted_ns: Option<u64>,
) -> Proof {
    let Some(study) = wanted(store, run, wanted_ns) else {
        return Proof::default();
    };
    let n_suspects = proof::n_suspects(&study);
    output::tell(&format!(
        "trying {n_suspects} suspect{}: {} arms, at most {} more",
        if n_suspects == 1 { "" } else { "s" },
        study.arms.len(),
        report::terminal::time(study.budget_ns.unwrap_or(0) as f64)
    ));
    if let Err(failed) = session.renew() {
        output::tell(&format!("the suspects could not be tried: {failed}"));
        return Proof::default();
    }
    let quiet = WithoutDifferences(progress);
    match session.carry_out(&study, &quiet, store, &mut AllBlocks) {
        Ok(summary) => Proof {
            is_unclean: !summary.left_behind.is_empty(),
            is_interrupted: summary.stopped_by == StoppedBy::Interrupted,
            left_behind: summary.left_behind,
        },
        Err(error) => {
            output::tell(&format!(
                "the suspects could not be tried: {}",
                error.with_hint()
            ));
            Proof {
                is_unclean: error.may_have_left(),
                ..Proof::default()
            }
        }
    }
}

/// The study, if there is something to test and time for it. A stored run that cannot be read is reported elsewhere.
fn wanted(store: &Store, run: &RunId, wanted_ns: Option<u64>) -> Option<Study> {
    let stored = store.run_without_records(run).ok()?;
    let main = stored.study.clone();
    if why::is_own_study(&main) {
        return None;
    }
    let left_ns = wanted_ns.or_else(|| main.budget_ns?.checked_sub(stored.wall_ns))?;
    let (dossier, suspected) = recount::measured(store, stored).ok()?;
    proof::study(run, &main, &dossier, &suspected, left_ns)
}
