//! Runs the studies of one question one after the other, each as a separate run.

use tare_model::dossier::Dossier;
use tare_model::{RunId, StoppedBy, Study};

use crate::analyze::RunData;
use crate::failed::Failed;
use crate::output;
use crate::recount;
use crate::report;
use crate::run::{AllBlocks, RunError};
use crate::session::Session;
use crate::session::progress::{Progress, WithoutDifferences};
use crate::store::Store;
use crate::why::{self, Ask, First};

/// The last measurement, and how it ended.
pub(crate) struct Measured {
    pub(crate) data: RunData,
    pub(crate) dossier: Dossier,
    /// Leftovers that could not be removed.
    pub(crate) left_behind: Vec<String>,
    pub(crate) ending: Ending,
}

/// Whether more can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// More can be measured.
    Whole,
    /// The user asked to stop.
    Interrupted,
    /// The next study failed; that has been reported.
    CutShort,
}

impl Measured {
    /// Whether nothing more is measured.
    pub(crate) fn is_over(&self) -> bool {
        self.ending != Ending::Whole
    }
}

/// Runs studies one after the other, each as a separate run.
pub(crate) struct Runner<'a> {
    session: &'a mut Session,
    store: &'a mut Store,
    progress: &'a Progress,
    begun_ns: u64,
    /// The last run that was measured, if any.
    before: Option<RunId>,
    /// Leftovers of all runs.
    left_behind: Vec<String>,
}

impl<'a> Runner<'a> {
    /// A runner whose budget counts from `begun_ns`.
    pub(crate) fn new(
        session: &'a mut Session,
        store: &'a mut Store,
        progress: &'a Progress,
        begun_ns: u64,
    ) -> Self {
        Self {
            session,
            store,
            progress,
            begun_ns,
            before: None,
            left_behind: Vec::new(),
        }
    }

    /// The session of its runs.
    pub(crate) fn session(&self) -> &Session {
        self.session
    }

    fn spent_ns(&self) -> u64 {
        self.session.now_ns().saturating_sub(self.begun_ns)
    }

    /// The rest of the budget, nanoseconds.
    pub(crate) fn left_ns(&self, ask: &Ask) -> u64 {
        ask.budget_ns.saturating_sub(self.spent_ns())
    }

    /// Context for actions between two studies.
    pub(crate) fn context(&self) -> crate::cx::Context<'_> {
        self.session.context(self.progress)
    }

    /// Measures a study.
    ///
    /// # Errors
    /// Whatever ended the run early; no result is lost.
    pub(crate) fn measure(&mut self, study: &Study) -> Result<Measured, Failed> {
        self.session.renew_if_used()?;
        let quiet = WithoutDifferences(self.progress);
        // The stored run names the one before it, so that reading it later gives the same answer as now.
        let study = match &self.before {
            Some(before) => why::after(study.clone(), before),
            None => study.clone(),
        };
        let summary = self
            .session
            .carry_out(&study, &quiet, self.store, &mut AllBlocks)
            .map_err(|error: RunError| {
                if error.may_have_left() {
                    self.left_behind.push(error.to_string());
                }
                Failed::from(error)
            })?;
        let run = self.session.run();
        let data = recount::answered(self.store, run)?;
        let dossier = why::conclude(&data);
        self.before = Some(run.clone());
        self.left_behind.extend(summary.left_behind);
        Ok(Measured {
            data,
            dossier,
            left_behind: self.left_behind.clone(),
            ending: match summary.stopped_by {
                StoppedBy::Interrupted => Ending::Interrupted,
                _ => Ending::Whole,
            },
        })
    }

    /// Measures a study after `before`. A failure is only reported, and `before` remains valid.
    pub(crate) fn more(&mut self, study: &Study, before: Measured) -> Measured {
        self.measure(study).unwrap_or_else(|failed| {
            output::tell(&format!(
                "what was to come next could not be measured: {failed}"
            ));
            Measured {
                left_behind: self.left_behind.clone(),
                ending: Ending::CutShort,
                ..before
            }
        })
    }

    /// Prints the first suspect to stderr, before the proof.
    pub(crate) fn tell_first(&self, ask: &Ask, measured: &Measured) {
        let Some(why) = &measured.dossier.why else {
            return;
        };
        output::tell(&format!(
            "after {}: {}",
            report::terminal::time(self.spent_ns() as f64),
            why.answer
        ));
        // Differences of a user's container are searched, not guessed.
        let finding = measured.dossier.findings.first();
        if let Some(finding) = finding.filter(|_| ask.own.is_none()) {
            self.tell_suspicion(&finding.cause, &finding.claim);
        }
    }

    /// Prints the suspect after one run on each side, because the comparison takes a while.
    pub(crate) fn tell_early(&self, ask: &Ask, first: &First) {
        if let Some(asks) = &ask.own {
            self.tell_likeliest(asks);
        }
        // A single run inside may take a third longer by chance.
        let is_slower =
            ask.own.is_none() && first.env.wall_ns as f64 > 1.5 * first.host.wall_ns as f64;
        let trials = why::suspects_of_one(ask, first);
        if let (true, Some(trial)) = (is_slower, trials.first()) {
            self.tell_suspicion(&trial.suspect.cause, &trial.suspect.claim);
        }
    }

    /// Prints which differences are tried first.
    fn tell_likeliest(&self, asks: &why::user_container::ContainerQuestion) {
        /// Most differences that are named.
        const MOST: usize = 3;
        let mut all: Vec<_> = asks.differences.iter().collect();
        all.sort_by(|a, b| b.likelihood.total_cmp(&a.likelihood));
        let first: Vec<&str> = all.iter().take(MOST).map(|it| it.what.as_str()).collect();
        if !first.is_empty() {
            output::tell(&format!(
                "first lead after {}: {} difference{}, not tested yet; most likely: {}",
                report::terminal::time(self.spent_ns() as f64),
                all.len(),
                if all.len() == 1 { "" } else { "s" },
                first.join(", ")
            ));
        }
    }

    fn tell_suspicion(&self, cause: &str, claim: &str) {
        output::tell(&format!(
            "lead after {}, not tested yet: {cause}: {}",
            report::terminal::time(self.spent_ns() as f64),
            claim
        ));
    }
}
