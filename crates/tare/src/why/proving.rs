//! After `tare run`: what is suspected is switched off, as far as the time goes.

use tare_model::{RunId, StoppedBy, Study};

use crate::output;
use crate::recount;
use crate::report;
use crate::run::AllBlocks;
use crate::session::Session;
use crate::session::home::Place;
use crate::session::progress::{Progress, WithoutDifferences};
use crate::store::Store;
use crate::why::{self, proof};

/// What became of it.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// What could not be removed.
    pub(crate) left_behind: Vec<String>,
    /// Whether something was started that did not end in order.
    pub(crate) is_unclean: bool,
    pub(crate) is_interrupted: bool,
}

/// Tries what is suspected after `run`, which was `study` and is complete, for the time `wanted`, else for what the
/// run left of its budget. What goes wrong is told: the run itself stands.
pub(crate) fn tried(
    place: &Place,
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
    if let Err(failed) = session.renew(place) {
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

/// The study, if there is something to try and time for it. A stored run that cannot be read is told by the report.
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
