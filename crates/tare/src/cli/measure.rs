//! Shared by `run`, `resume` and `repeat`: measures a study or a stored run, tests suspected causes and reports the
//! result.

use clap::Args;
use tare_model::dossier::Dossier;
use tare_model::{RunId, StoppedBy, Study};

use super::compared::Compared;
use super::{Exit, Failed, output, recount, session};
use crate::analyze::PrecisionRule;
use crate::config::units;
use crate::output::DossierFiles;
use crate::report;
use crate::report::terminal::Called;
use crate::run::{self, Precision, Registry, RunError, RunSummary};
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::session::progress::Progress;
use crate::store::Store;
use crate::why::proving::{self, Proof};
use crate::{selfcheck, why, workload};

/// The options for what follows the last block.
#[derive(Debug, Args)]
pub(super) struct Ends {
    /// Test suspected causes for this time after the comparison, such as `60s`; `0s` for none (default: the rest of
    /// the budget of a new run without `--blocks`).
    #[arg(long, value_parser = units::duration_ns, value_name = "TIME")]
    prove: Option<u64>,
    #[command(flatten)]
    pub(super) compared: Compared,
    #[command(flatten)]
    pub(super) files: DossierFiles,
    /// Print all values, as `tare show` does.
    #[arg(long)]
    full: bool,
}

/// What is measured.
pub(super) enum Work<'a> {
    /// A study, from its first block on.
    Study {
        study: &'a Study,
        /// Whether all of its blocks are measured, whatever the precision.
        by_blocks: bool,
        /// Of a study that was run elsewhere, what was found there.
        there: Option<&'a Dossier>,
    },
    /// A stored run, for so long from now on.
    Stored {
        run: RunId,
        /// Whether it was begun with this state folder.
        is_own: bool,
        budget_ns: Option<u64>,
    },
}

/// The stopping rule of a study: that of the analysis, or none.
fn precision(study: &Study, by_blocks: bool) -> Box<dyn Precision> {
    if by_blocks {
        Box::new(run::AllBlocks)
    } else {
        Box::new(PrecisionRule::new(study, &workload::find))
    }
}

/// Warns of a budget that is too short for the blocks that an interval needs.
fn too_short(study: &Study, budget_ns: u64) -> Option<String> {
    let enough = u64::from(why::FEWEST.min(study.blocks_max));
    let block_ns = study.block_ns().max(1);
    let blocks = budget_ns / block_ns;
    let needed_ns = block_ns.saturating_mul(enough);
    (blocks < enough).then(|| {
        format!(
            "warning: {} hold about {blocks} of the {} blocks that an interval takes, so little can be decided; `--budget {}` holds them, `--workload` chooses fewer rows",
            report::terminal::time(budget_ns as f64),
            why::FEWEST,
            // Starting and removing the arms takes time too.
            units::at_least(needed_ns + needed_ns / 5)
        )
    })
}

impl Work<'_> {
    /// Measures and stores the result under this run's name.
    fn measured(
        &self,
        session: &Session,
        progress: &Progress,
        store: &mut Store,
        run: &RunId,
    ) -> Result<RunSummary, RunError> {
        let cx = session.context(progress);
        let (study, by_blocks) = match self {
            Self::Study {
                study, by_blocks, ..
            } => (*study, *by_blocks),
            Self::Stored { budget_ns, .. } => {
                let registry = Registry::built_in();
                let study = store.run_without_records(run)?.study;
                let mut precision = precision(&study, why::is_own_study(&study));
                return run::resume(&cx, run, &registry, store, &mut *precision, *budget_ns);
            }
        };
        let (study, resolved) = run::without_shims(&cx, study);
        for (shim, real) in resolved {
            output::tell(&format!(
                "`{shim}` is a script that starts `{real}`, which is measured"
            ));
        }
        if let (Some(budget_ns), false) = (study.budget_ns, by_blocks)
            && let Some(warning) = too_short(&study, budget_ns)
        {
            output::tell(&warning);
        }
        if let Some(text) = crate::analyze::other_scale(&study) {
            output::tell(&format!("not at the published scale: {text}"));
        }
        let mut precision = precision(&study, by_blocks);
        session.carry_out(&study, progress, store, &mut *precision)
    }
}

impl Ends {
    /// Checks that the arm to compare with exists; names settings by their new words.
    ///
    /// # Errors
    /// There is no such arm.
    pub(super) fn check(&self, study: &Study) -> Result<(), Failed> {
        if let Some(arm) = &self.compared.against {
            recount::place_of(&study.arms, arm, "the study")?;
        }
        for arm in &study.arms {
            session::tell_old_words(&arm.driver, &arm.settings);
        }
        Ok(())
    }

    /// Measures, tests suspected causes and reports.
    ///
    /// # Errors
    /// The reason why the run ended early; its results are kept.
    pub(super) fn carried_out(
        &self,
        place: &GivenPaths,
        store: &mut Store,
        work: &Work<'_>,
    ) -> Result<Exit, Failed> {
        // Where the run was begun with another state folder its label is looked after from there: what is left of it
        // may be ended at any time.
        let label = match work {
            Work::Stored {
                run, is_own: true, ..
            } => Some(run.clone()),
            _ => None,
        };
        let mut session = Session::begin(place, label)?;
        let run = match work {
            Work::Stored { run, .. } => run.clone(),
            Work::Study { .. } => session.run().clone(),
        };
        let progress = Progress::new();
        let result = work.measured(&session, &progress, store, &run);
        let proof = match &result {
            Ok(summary) if summary.stopped_by.is_complete() => {
                let is_open = matches!(
                    work,
                    Work::Study {
                        by_blocks: false,
                        there: None,
                        ..
                    }
                );
                let wanted_ns = self.prove.or_else(|| (!is_open).then_some(0));
                proving::tried(&mut session, store, &progress, &run, wanted_ns)
            }
            _ => Proof::default(),
        };
        progress.finish();
        // The folder marks the run as one that `tare clean` has to look after.
        let is_clean = match &result {
            Ok(summary) => summary.left_behind.is_empty() && !proof.is_unclean,
            Err(error) => !error.may_have_left(),
        };
        let outcome = self.report(store, &run, result, &proof, work);
        let ended = if is_clean { session.end() } else { Ok(()) };
        let exit = outcome?;
        ended?;
        Ok(exit)
    }

    /// Prints the result, also if the run ended early.
    fn report(
        &self,
        store: &Store,
        run: &RunId,
        result: Result<RunSummary, RunError>,
        proof: &Proof,
        work: &Work<'_>,
    ) -> Result<Exit, Failed> {
        let summary = match result {
            Ok(summary) => summary,
            Err(error) => {
                let n_trials = store
                    .run_without_records(run)
                    .map_or(0, |stored| stored.n_trials);
                if n_trials > 0 {
                    output::tell(&format!(
                        "{n_trials} trials are stored as run {run}; `tare show {run}` draws them"
                    ));
                }
                return Err(error.into());
            }
        };
        let answering = recount::answering(store, run.clone())?;
        let dossier = self.compared.dossier(store, &answering)?;
        self.write(&dossier, work)?;
        output::left_behind(summary.left_behind.iter().chain(&proof.left_behind));
        if summary.stopped_by == StoppedBy::Interrupted {
            output::tell(&format!(
                "interrupted; {} trials are stored, `tare resume {run}` goes on",
                summary.n_trials
            ));
            return Ok(Exit::Interrupted);
        }
        if proof.is_interrupted {
            output::tell(&format!(
                "interrupted while suspects were tried; run {run} itself is complete"
            ));
            return Ok(Exit::Interrupted);
        }
        if let Work::Stored { .. } = work {
            output::tell(&format!("run {run} was resumed and is complete"));
        }
        Ok(Exit::Done)
    }

    fn write(&self, dossier: &Dossier, work: &Work<'_>) -> Result<(), Failed> {
        if self.files.write(dossier)? {
            return Ok(());
        }
        let form = if self.full {
            report::terminal::table
        } else {
            report::terminal::brief
        };
        let mut text = report::terminal::draw(dossier, output::style(), form);
        if let Work::Study {
            there: Some(there), ..
        } = work
        {
            text.push('\n');
            let beside = report::terminal::two_runs(there, dossier, Called::HERE, output::style());
            text.push_str(&beside);
        }
        output::text(&text)?;
        if let Some(line) = selfcheck::last_here(dossier) {
            output::tell(&line);
        }
        Ok(())
    }
}
