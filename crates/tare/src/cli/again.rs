//! `tare run --again BUNDLE`: a published run's study, measured here, and its costs beside the published ones.
//!
//! A study is a program: its workloads and settings name commands. So what was not begun by this user, with this very
//! plan, is carried out only when it is trusted in so many words.
//! What it cannot see: whether the bundle's numbers were measured as it says; `tare replay` says what follows from its
//! raw output.

use std::path::Path;

use tare_model::Study;
use tare_model::dossier::Dossier;

use super::bundle::Bundle;
use super::{Exit, Failed, output, recount, trusted};
use crate::cx::begun;
use crate::plan::Plan;
use crate::report::terminal::{self, Called};
use crate::session::home::Place;
use crate::why;

/// What is repeated.
pub(super) struct Again {
    /// The study as it was run there: the same arms, workloads, order and margins.
    pub(super) study: Study,
    /// What was found there.
    there: Dossier,
}

impl Again {
    /// The study and numbers of a bundle, if it may be carried out here.
    pub(super) fn read(
        path: &Path,
        budget_ns: Option<u64>,
        is_trusted: bool,
    ) -> Result<Self, Failed> {
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
        // Of the study that would be carried out, whatever the bundle says of it.
        let plan = Plan::new(&study);
        let state = Place::state_folder()?;
        if !is_trusted && !begun::is_noted(&state, &run, plan.sha256())? {
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

    /// The costs there and here.
    pub(super) fn describe(&self, here: &Dossier) -> String {
        terminal::beside(&self.there, here, Called::HERE, output::style())
    }
}
