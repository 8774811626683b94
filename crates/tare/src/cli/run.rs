//! `tare run`: a study from its file to the table.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use tare_model::dossier::Dossier;
use tare_model::{ArmId, Facts, RunId, Spread, StoppedBy, Study};
use tare_stats::Needed;

use super::again::Again;
use super::compared::Compared;
use super::{Exit, Failed, dry_run, output, recount, session, trusted};
use crate::analyze::PrecisionRule;
use crate::config::{self, Adjustments, given, units};
use crate::cx::{begun, files};
use crate::report;
use crate::run::{self, Precision, Registry, RunError, RunSummary};
use crate::session::Session;
use crate::session::home::Place;
use crate::session::progress::{self, Progress};
use crate::store::{Store, TrialRecord};
use crate::why::asked::RUNNING;
use crate::why::proving::{self, Proof};
use crate::{selfcheck, why, workload};

#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Built-in study, or a study file.
    #[arg(default_value = "quick", value_name = "STUDY | FILE.toml")]
    study: String,
    /// Run these environments and the baseline only, settings behind a colon: `container,docker:cpus=0.5,memory=64m`;
    /// fails if one cannot be started.
    #[arg(long, value_name = "A,B")]
    env: Vec<String>,
    /// Set a setting of one arm: `docker.cpus=0.5` (all: `tare list environments`).
    #[arg(long = "set", value_name = "ARM.NAME=VALUE")]
    settings: Vec<String>,
    /// Run these workloads only.
    #[arg(long, value_name = "W,…", value_delimiter = ',')]
    workload: Vec<String>,
    /// Run so many instances at once, one number after another.
    #[arg(long, value_name = "1,2,3", value_delimiter = ',')]
    instances: Vec<u32>,
    /// Run instances as `processes` of one environment, or in `environments` of their own (default: the study's).
    #[arg(long, value_parser = config::spread, value_name = "WHERE")]
    spread: Option<Spread>,
    /// Limit the time of the run, such as `90s`; with `--resume` from now on, also to add blocks to a finished run
    /// (default: the study's).
    #[arg(long, value_parser = units::some_duration_ns, value_name = "TIME")]
    budget: Option<u64>,
    /// Stop when every ratio has this half-width, such as `2%` (default: half of its margin).
    #[arg(long, value_parser = units::fraction, value_name = "PERCENT")]
    precision: Option<f64>,
    /// Run exactly so many blocks, whatever the precision.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    blocks: Option<u32>,
    /// Seed for the trial order (default: the study's, else random; recorded with the run).
    #[arg(long)]
    seed: Option<u64>,
    /// Allow another version of a tool than the baseline's; its cells are labelled `different-tool` and say nothing
    /// about the environment.
    #[arg(long)]
    allow_different_tools: bool,
    /// Test suspected causes for this time after the comparison, such as `60s`; `0s` for none (default: the rest of
    /// the budget; none with `--blocks` or `--resume`).
    #[arg(long, value_parser = units::duration_ns, value_name = "TIME")]
    prove: Option<u64>,
    #[command(flatten)]
    compared: Compared,
    /// Write the dossier to FILE; `-` prints only it on stdout.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the page to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print all values, as `tare show` does.
    #[arg(long)]
    full: bool,
    /// Resume an interrupted run; with `--budget` add blocks to a finished one (default: the newest).
    #[arg(long, value_name = "RUN", num_args = 0..=1, default_missing_value = "", group = "stored", conflicts_with_all = ["env", "settings", "workload", "instances", "spread", "precision", "blocks", "seed", "allow_different_tools"])]
    resume: Option<String>,
    /// Repeat the study of a bundle here, in the same order, and compare the results.
    #[arg(long, value_name = "BUNDLE", group = "stored", conflicts_with_all = ["study", "env", "settings", "workload", "instances", "spread", "precision", "blocks", "seed", "allow_different_tools"])]
    again: Option<PathBuf>,
    /// Print what would be measured, how often at most and what it reaches, and run nothing.
    #[arg(long = "dry-run", conflicts_with = "stored")]
    is_dry: bool,
    /// Run the commands of a study that was not started here.
    #[arg(long, requires = "stored")]
    trust: bool,
}

/// The stopping rule of the analysis, as the engine asks for it.
struct Rule(PrecisionRule<'static>);

impl Precision for Rule {
    fn add(&mut self, record: &TrialRecord) {
        self.0.add(recount::trial_ref(record));
    }

    fn needed(&mut self, _: &Study, inside: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        self.0.needed(inside)
    }

    fn so_far(&self) -> Option<String> {
        progress::so_far(&self.0.so_far())
    }
}

/// A budget that by the plan does not hold the blocks that an interval takes.
struct Hopeless {
    budget_ns: u64,
    blocks: u64,
    needed_ns: u64,
}

impl Hopeless {
    fn of(study: &Study, budget_ns: u64) -> Option<Self> {
        let enough = u64::from(why::FEWEST.min(study.blocks_max));
        let block_ns = study.block_ns().max(1);
        let blocks = budget_ns / block_ns;
        (blocks < enough).then(|| Self {
            budget_ns,
            blocks,
            needed_ns: block_ns.saturating_mul(enough),
        })
    }
}

impl std::fmt::Display for Hopeless {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "warning: {} hold about {} of the {} blocks that an interval takes, so little can be decided; `--budget {}` holds them, `--workload` chooses fewer rows",
            report::terminal::time(self.budget_ns as f64),
            self.blocks,
            why::FEWEST,
            // Starting and removing the arms comes beside the trials.
            units::at_least(self.needed_ns + self.needed_ns / 5)
        )
    }
}

impl Run {
    pub(crate) fn execute(&self, place: &Place) -> Result<Exit, Failed> {
        output::check_files(self.html.as_deref(), self.json.as_deref())?;
        // A study with a mistake must not make a store, and a missing store must not hide the mistake.
        let again = match &self.again {
            Some(bundle) => Some(Again::read(bundle, self.budget, self.trust)?),
            None => None,
        };
        let study = match &again {
            Some(again) => Some(again.study.clone()),
            None if self.resume.is_none() => Some(self.study()?),
            None => None,
        };
        if let (Some(arm), Some(study)) = (&self.compared.against, &study) {
            recount::place_of(&study.arms, arm, "the study")?;
        }
        for arm in study.iter().flat_map(|study| &study.arms) {
            session::tell_old_words(&arm.driver, &arm.settings);
        }
        if let (true, Some(study)) = (self.is_dry, &study) {
            output::text(&dry_run::of_study(study))?;
            return Ok(Exit::Done);
        }
        let mut store = Store::open(&place.store_file()?)?;
        let resumed = match &self.resume {
            None => None,
            Some(text) => Some(resumed(&store, text, self.trust)?),
        };
        // Where the run was begun with another state folder its label is looked after from there: what is left of it
        // may be ended at any time.
        let label = resumed.as_ref().filter(|resumed| resumed.is_own);
        let mut session = Session::begin(place, label.map(|resumed| resumed.run.clone()))?;
        let run = resumed.map_or_else(|| session.run().clone(), |resumed| resumed.run);
        let progress = Progress::new();
        let result = self.measure(&session, &progress, study.as_ref(), &mut store, &run);
        let proof = match &result {
            Ok(summary) if summary.stopped_by.is_complete() => {
                let is_open = self.blocks.is_none() && study.is_some() && again.is_none();
                let wanted_ns = self.prove.or_else(|| (!is_open).then_some(0));
                proving::tried(place, &mut session, &mut store, &progress, &run, wanted_ns)
            }
            _ => Proof::default(),
        };
        progress.finish();
        // The folder marks the run as one that `tare clean` has to look after.
        let is_clean = match &result {
            Ok(summary) => summary.left_behind.is_empty() && !proof.is_unclean,
            Err(error) => !error.may_have_left(),
        };
        let outcome = self.report(&store, &run, result, &proof, again.as_ref());
        let ended = if is_clean { session.end() } else { Ok(()) };
        let exit = outcome?;
        ended?;
        Ok(exit)
    }

    /// Carries the study out, or goes on with the stored run where there is none.
    fn measure(
        &self,
        session: &Session,
        progress: &Progress,
        study: Option<&Study>,
        store: &mut Store,
        run: &RunId,
    ) -> Result<RunSummary, RunError> {
        let cx = session.context(progress);
        let Some(study) = study else {
            let registry = Registry::built_in();
            let stored = store.run_without_records(run)?;
            let mut go_on = |precision: &mut dyn Precision| {
                run::resume(&cx, run, &registry, store, precision, self.budget)
            };
            if why::is_own_study(&stored.study) {
                return go_on(&mut run::AllBlocks);
            }
            let mut rule = Rule(PrecisionRule::new(&stored.study, &workload::find));
            return go_on(&mut rule);
        };
        let (study, resolved) = run::without_shims(&cx, study);
        for (shim, real) in resolved {
            output::tell(&format!(
                "`{}` is a script that starts `{}`, which is measured",
                output::printable(&shim),
                output::printable(&real)
            ));
        }
        if let (Some(budget_ns), None) = (study.budget_ns, self.blocks)
            && let Some(hopeless) = Hopeless::of(&study, budget_ns)
        {
            output::tell(&hopeless.to_string());
        }
        if let Some(text) = crate::analyze::other_scale(&study) {
            output::tell(&format!("not at the published scale: {text}"));
        }
        let mut rule = Rule(PrecisionRule::new(&study, &workload::find));
        let precision: &mut dyn Precision = if self.blocks.is_some() {
            &mut run::AllBlocks
        } else {
            &mut rule
        };
        session.carry_out(&study, progress, store, precision)
    }

    fn study(&self) -> Result<Study, Failed> {
        let wrong = |problem: &str| Failed::new(Exit::Usage, output::printable(problem));
        let mut environments = Vec::new();
        for text in &self.env {
            let given = given::environments(text).map_err(|problem| {
                wrong(&problem).hint(format!("`--env docker:cpus=0.5`; {RUNNING}"))
            })?;
            environments.extend(given);
        }
        let mut settings = Vec::new();
        for text in &self.settings {
            let (arm, name, value) = given::setting_of(text).map_err(|problem| wrong(&problem))?;
            let arm = arm.ok_or_else(|| {
                wrong(&format!("`{text}` names no arm")).hint(format!(
                    "`--set ARM.{text}`, for example `--set docker.{text}`"
                ))
            })?;
            settings.push((arm.to_owned(), name.to_owned(), value));
        }
        let adjustments = Adjustments {
            environments,
            settings,
            workloads: self.workload.clone(),
            instances: self.instances.clone(),
            spread: self.spread,
            budget_ns: self.budget,
            precision: self.precision,
            blocks: self.blocks,
            seed: self.seed,
            drawn_seed: crate::cx::drawn_seed(),
            allow_different_tools: self.allow_different_tools,
            pairs: self.compared.pairs,
        };
        if let Some(study) = config::built_in(&self.study, &adjustments) {
            return Ok(study?);
        }
        let path = Path::new(&self.study);
        let looks_like_a_file = path
            .extension()
            .is_some_and(|extension| extension == "toml")
            || path.components().count() > 1;
        if !looks_like_a_file {
            let known: Vec<&str> = config::builtin::STUDIES
                .iter()
                .map(|study| study.id)
                .collect();
            let hint = match crate::suggest::nearest(&self.study, known.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!(
                    "known are: {}; a file of your own ends in `.toml`",
                    known.join(", ")
                ),
            };
            return Err(Failed::new(
                Exit::Usage,
                format!("there is no study `{}`", output::printable(&self.study)),
            )
            .hint(hint));
        }
        let text = files::read_text(path).map_err(|error| Failed::new(Exit::Usage, error))?;
        let mut study = config::parse(&self.study, &text, &adjustments)?;
        let beside = path.parent().unwrap_or(Path::new(""));
        config::read_recorded(&mut study, |file| {
            let text = files::read_text(&beside.join(file));
            text.map_err(|error| error.to_string())
        })
        .map_err(|problem| wrong(&problem).hint("`file` names what the tool printed"))?;
        Ok(study)
    }

    /// Draws what was measured, also when the run ended early: nothing measured is lost.
    fn report(
        &self,
        store: &Store,
        run: &RunId,
        result: Result<RunSummary, RunError>,
        proof: &Proof,
        again: Option<&Again>,
    ) -> Result<Exit, Failed> {
        let summary = match result {
            Ok(summary) => summary,
            Err(error) => {
                let n_trials = store
                    .run_without_records(run)
                    .ok()
                    .and(store.runs().ok())
                    .and_then(|runs| runs.into_iter().find(|line| line.id == *run))
                    .map_or(0, |line| line.n_trials);
                let failed = Failed::from(error);
                if n_trials > 0 {
                    output::tell(&format!(
                        "{n_trials} trials are stored as run {run}; `tare show {run}` draws them"
                    ));
                }
                return Err(failed);
            }
        };
        let answering = recount::answering(store, run.clone())?;
        let dossier = self.compared.dossier(store, &answering)?;
        self.write(&dossier, again)?;
        for line in summary.left_behind.iter().chain(&proof.left_behind) {
            output::tell(&format!(
                "left behind: {}; `tare clean` tries again",
                output::printable(line)
            ));
        }
        if summary.stopped_by == StoppedBy::Interrupted {
            output::tell(&format!(
                "interrupted; {} trials are stored, `tare run --resume {run}` goes on",
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
        if self.resume.is_some() {
            output::tell(&format!("run {run} was resumed and is complete"));
        }
        Ok(Exit::Done)
    }

    fn write(&self, dossier: &Dossier, again: Option<&Again>) -> Result<(), Failed> {
        if output::write_files(dossier, self.html.as_deref(), self.json.as_deref())? {
            return Ok(());
        }
        let form = if self.full {
            report::terminal::table
        } else {
            report::terminal::brief
        };
        let mut text = report::terminal::draw(dossier, output::style(), form);
        if let Some(again) = again {
            text.push('\n');
            text.push_str(&again.describe(dossier));
        }
        output::text(&text)?;
        if let Some(line) = selfcheck::last_here(dossier) {
            output::tell(&line);
        }
        Ok(())
    }
}

/// A stored run that is gone on with.
struct Resumed {
    run: RunId,
    /// Whether it was begun with this state folder.
    is_own: bool,
}

fn resumed(store: &Store, text: &str, is_trusted: bool) -> Result<Resumed, Failed> {
    let run = if text.is_empty() {
        store.latest_unfinished()?.ok_or_else(|| {
            Failed::new(Exit::Usage, "there is no interrupted run to resume")
                .hint("`tare runs` lists the runs")
        })?
    } else {
        store.resolve(text)?
    };
    let stored = store.run_without_records(&run)?;
    let state = Place::state_folder()?;
    let is_own = begun::is_noted(&state, &run, &stored.plan_sha256)?;
    if !is_own {
        trusted::check_size(&stored.study)?;
    }
    if !is_trusted && !is_own {
        let what = format!("run {run} was not begun here, and resuming it");
        return Err(trusted::refusal(&what, &stored.study).hint(format!(
            "`tare show {run} --json` shows the study; `--trust` resumes it all the same"
        )));
    }
    let study = stored.study;
    if let Some(file) = why::input_of(&study).filter(|file| !Path::new(file).is_file()) {
        return Err(Failed::new(
            Exit::Usage,
            format!(
                "the standard input of the command in run {run} is no longer there: `{}`",
                output::printable(&file)
            ),
        )
        .hint("ask `tare why` again, with the same input"));
    }
    Ok(Resumed { run, is_own })
}
