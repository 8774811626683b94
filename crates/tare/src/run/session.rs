//! Runs one session of a run: blocks and trials in order, and the rules that end it.
//!
//! A run has one session, plus one for each resume. All decisions are made between blocks (precision, budget) or
//! between trials (Ctrl-C, a lost arm), without reading what a trial measured.

use std::collections::BTreeMap;

use tare_model::outcome::Exit;
use tare_model::tool::ToolQuestion;
use tare_model::{
    ArmId, End, Facts, Outcome, Recipe, RunId, Spread, StoppedBy, Study, Trial, WorkloadSpec,
    whole_count,
};
use tare_stats::Needed;

use super::charges;
use super::exchange::{Cancelled, Dispatcher, Measured};
use super::pace::Pace;
use super::suspended::Awake;
use super::testbed::{Needs, Testbed};
use super::turn_state::TurnState;
use super::{BLOCKS_BETWEEN_LOOKS, Precision, Registry, RunError, RunSummary, TELLING_BLOCKS};
use crate::cx::{Context, Event, turn_page};
use crate::env::{Charged, FileRequest};
use crate::plan::Plan;
use crate::store::{Remark, SessionEnd, Store, StoreError, TrialRecord, WorkloadEnd};
use crate::workload::{Tool, Workload};

/// One session of a run.
pub(super) struct Session<'a> {
    pub(super) cx: Context<'a>,
    /// The run's name in the store.
    pub(super) run: RunId,
    pub(super) plan: &'a Plan,
    pub(super) store: &'a mut Store,
    pub(super) precision: &'a mut dyn Precision,
    pub(super) dispatcher: Dispatcher<'a>,
    pub(super) testbed: Testbed<'a>,
    /// The recipe of each workload.
    pub(super) recipes: Vec<Recipe>,
    pub(super) workloads: Vec<&'static dyn Workload>,
    /// The programs that each workload runs.
    pub(super) programs: Vec<Vec<String>>,
    /// The facts of each arm from its last start.
    pub(super) inside: BTreeMap<ArmId, Facts>,
    /// After how many blocks each workload ended, if it did.
    pub(super) ended: Vec<Option<u32>>,
    /// Whether each workload pauses in the current block, so that others can be decided within the budget.
    pub(super) resting: Vec<bool>,
    pub(super) pace: Pace,
    pub(super) turns: TurnState,
    /// The launch that the instances belong to, if any.
    pub(super) launched: Option<u32>,
    /// Number of launches beyond the plan, because the run was resumed within one.
    pub(super) more_launches: u32,
    started_ns: u64,
    /// Duration of earlier sessions.
    pub(super) earlier_ns: u64,
    /// Time given to this session instead of the rest of the study's budget, if any; it gets as many blocks as fit.
    pub(super) more_ns: Option<u64>,
    /// The first trial that is not stored.
    pub(super) next_sequence: u32,
    pub(super) n_trials: u32,
    n_without_value: u32,
    n_blocks: u32,
}

/// How a session ends early.
pub(super) enum Break {
    Cancelled,
    Failed(RunError),
}

impl From<Cancelled> for Break {
    fn from(_: Cancelled) -> Self {
        Self::Cancelled
    }
}

impl From<StoreError> for Break {
    fn from(error: StoreError) -> Self {
        Self::Failed(error.into())
    }
}

/// Returns what an environment must provide for these tools.
fn wanted<'t>(tools: impl Iterator<Item = &'t Tool>) -> FileRequest {
    let mut wanted = FileRequest::default();
    for tool in tools {
        // The command that prints the files that the tool opens by name, if it has one.
        let command = std::iter::once(&tool.program).chain(&tool.files_told_by);
        let has_command = !tool.files_told_by.is_empty();
        wanted.add(&FileRequest {
            programs: vec![tool.program.clone()],
            packages: tool.packages.clone(),
            files: Vec::new(),
            told_by: has_command
                .then(|| command.cloned().collect())
                .into_iter()
                .collect(),
        });
    }
    wanted
}

/// The questions to an agent about these tools: each program once, in the version of the first workload.
fn questions<'t>(tools: impl Iterator<Item = &'t Tool>) -> Vec<ToolQuestion> {
    let mut questions: Vec<ToolQuestion> = Vec::new();
    for tool in tools {
        if questions.iter().all(|known| known.program != tool.program) {
            questions.push(ToolQuestion {
                program: tool.program.clone(),
                version: tool.version.clone(),
            });
        }
    }
    questions
}

impl<'a> Session<'a> {
    /// Looks up and configures everything; has no effect outside this process.
    pub(super) fn new(
        cx: &Context<'a>,
        plan: &'a Plan,
        registry: &Registry<'_>,
        store: &'a mut Store,
        precision: &'a mut dyn Precision,
    ) -> Result<Self, RunError> {
        let started_ns = cx.clock.now_ns();
        let study = plan.study();
        let workloads = workloads(study, registry)?;
        let both = || study.workloads.iter().zip(&workloads);
        let recipes = both().map(|(spec, workload)| recipe(study, spec, *workload));
        let recipes = recipes.collect::<Result<Vec<_>, _>>()?;
        let tools = both().map(|(spec, workload)| workload.tools(&spec.params));
        let tools: Vec<Vec<Tool>> = tools.collect();
        let may_be_stopped = workloads.iter().map(|workload| workload.may_be_stopped());
        let dispatcher = Dispatcher::new(cx, study);
        let needs = needs(study, &recipes, dispatcher.is_cold);
        let all = tools.iter().flatten();
        Ok(Self {
            cx: *cx,
            run: cx.run.clone(),
            plan,
            store,
            precision,
            dispatcher,
            testbed: Testbed::new(
                cx,
                &study.arms,
                needs,
                registry.driver,
                &wanted(all.clone()),
                &questions(all),
            )?,
            recipes,
            programs: tools
                .into_iter()
                .map(|tools| tools.into_iter().map(|tool| tool.program).collect())
                .collect(),
            inside: BTreeMap::new(),
            ended: vec![None; study.workloads.len()],
            resting: vec![false; study.workloads.len()],
            pace: Pace::new(study.workloads.len(), study.trial_ns + study.settle_ns),
            turns: TurnState::new(may_be_stopped.collect()),
            workloads,
            launched: None,
            more_launches: 0,
            started_ns,
            earlier_ns: 0,
            more_ns: None,
            next_sequence: 0,
            n_trials: 0,
            n_without_value: 0,
            n_blocks: 0,
        })
    }

    /// Runs the session, cleans up, and stores how it ended.
    pub(super) fn carry_out(mut self) -> Result<RunSummary, RunError> {
        let ended = self.blocks();
        self.cx.observer.event(&Event::Removing);
        let absent = self
            .testbed
            .arms
            .iter()
            .filter_map(|arm| Some((arm.spec.id.clone(), arm.out.as_ref()?.why.clone())))
            .collect();
        let mut left_behind = self.testbed.close();
        if let Err(error) = turn_page::remove(self.cx.scratch) {
            left_behind.push(error.to_string());
        }
        let (stopped_by, error) = match ended {
            Ok(stopped_by) => (stopped_by, None),
            Err(Break::Cancelled) => (StoppedBy::Interrupted, None),
            Err(Break::Failed(error)) => (StoppedBy::Failed, Some(error)),
        };
        let wall_ns = self.elapsed_ns();
        let stored = left_behind
            .iter()
            .try_for_each(|line| self.remark(&format!("not removed: {line}")))
            .and(self.store.finish(&SessionEnd {
                ended_unix_ns: self.cx.clock.unix_ns(),
                wall_ns,
                stopped_by,
                reason: error.as_ref().map(RunError::with_hint),
            }));
        // If the store failed before, its second failure says nothing new.
        let error = error.or_else(|| stored.err().map(RunError::from));
        match error {
            None => Ok(RunSummary {
                run: self.run,
                stopped_by,
                n_trials: self.n_trials,
                n_without_value: self.n_without_value,
                n_blocks: self.n_blocks,
                wall_ns,
                absent,
                left_behind,
            }),
            Some(first) if left_behind.is_empty() => Err(first),
            Some(first) => Err(RunError::AndCleanup {
                first: Box::new(first),
                then: left_behind,
            }),
        }
    }

    pub(super) fn study(&self) -> &'a Study {
        self.plan.study()
    }

    /// The budget of all sessions up to this one.
    pub(super) fn budget_ns(&self) -> Option<u64> {
        match self.more_ns {
            Some(more_ns) => Some(self.earlier_ns.saturating_add(more_ns)),
            None => self.study().budget_ns,
        }
    }

    /// Maximum number of blocks.
    fn blocks_max(&self) -> u32 {
        // An extended run has no last block; trial numbers have 32 bits.
        let countable = u32::MAX / self.plan.trials_per_block().max(1);
        self.more_ns.map_or(self.study().blocks_max, |_| countable)
    }

    pub(super) fn elapsed_ns(&self) -> u64 {
        self.cx.clock.now_ns().saturating_sub(self.started_ns)
    }

    fn remark(&mut self, text: &str) -> Result<(), StoreError> {
        self.store.remark(&Remark {
            unix_ns: self.cx.clock.unix_ns(),
            text: text.to_owned(),
        })
    }

    /// Stores and prints a remark.
    pub(super) fn say(&mut self, text: String) -> Result<(), StoreError> {
        self.remark(&text)?;
        self.cx.observer.event(&Event::Remark(text));
        Ok(())
    }

    /// Starts the arms and runs blocks until a rule ends the session.
    fn blocks(&mut self) -> Result<StoppedBy, Break> {
        let per_block = self.plan.trials_per_block().max(1);
        let first_block = self.next_sequence / per_block;
        self.testbed.detect();
        self.require_essential_arms()?;
        if !self.testbed.prepare() {
            return Err(Break::Cancelled);
        }
        self.require_essential_arms()?;
        self.make_a_page()?;
        self.launch(self.launch_of(first_block), first_block)?;
        self.refuse_turns_under_limits()?;
        self.compare_arms()?;
        self.inspect_commands(first_block)?;
        for block in first_block..self.blocks_max() {
            self.n_blocks = block;
            let needed = self.check_precision(block)?;
            self.ration(block)?;
            if !self.ended.is_empty() && self.live_workloads(block).next().is_none() {
                return Ok(StoppedBy::Precision);
            }
            self.spend_where_it_decides(block, needed.as_deref());
            let trials = self.trials_of(block);
            if !self.fits(&trials, block) {
                self.say_what_the_budget_left_out(block, &[])?;
                return Ok(StoppedBy::Budget);
            }
            let launch = self.launch_of(block);
            if self.launched != Some(launch) {
                self.launch(launch, block)?;
            }
            let mut index = 0;
            while index < trials.len() {
                if !self.fits_still(&trials, index) {
                    self.say_what_the_budget_left_out(block, &trials[index..])?;
                    return Ok(StoppedBy::Budget);
                }
                let workload = trials[index].workload_index;
                let same = trials[index..]
                    .iter()
                    .take_while(|trial| trial.workload_index == workload)
                    .count();
                let next = if self.takes_turns(workload as usize) {
                    index + same
                } else {
                    index + 1
                };
                if next > index + 1 {
                    let usable: Vec<Trial> = self.usable(&trials[index..next]).cloned().collect();
                    self.turns(&usable, &trials[next..])?;
                } else {
                    self.trial(&trials[index], &trials[next..])?;
                }
                index = next;
            }
            self.n_blocks = block + 1;
        }
        Ok(StoppedBy::Blocks)
    }

    /// Workloads that are still measured in this block.
    pub(super) fn live_workloads(&self, block: u32) -> impl Iterator<Item = usize> {
        self.ended
            .iter()
            .enumerate()
            .filter(move |(_, ended)| ended.is_none_or(|after| block < after))
            .map(|(workload, _)| workload)
    }

    /// The launch that a block belongs to.
    pub(super) fn launch_of(&self, block: u32) -> u32 {
        self.plan.launch(block) + self.more_launches
    }

    /// The remaining trials of a block, including those of absent arms.
    fn trials_of(&self, block: u32) -> Vec<Trial> {
        let live: Vec<usize> = self.live_workloads(block).collect();
        let mut trials = self.plan.block(block);
        trials.retain(|trial| {
            let workload = trial.workload_index as usize;
            trial.sequence >= self.next_sequence
                && live.contains(&workload)
                && !self.resting[workload]
        });
        for trial in &mut trials {
            trial.launch = self.launch_of(block);
        }
        trials
    }

    /// Checks, if it is due, whether workloads are precise enough, and returns what they need. With a budget, a
    /// precise workload only pauses while others are not, and ends when it is not worth any more time.
    fn check_precision(&mut self, block: u32) -> Result<Option<Vec<Needed>>, Break> {
        let study = self.study();
        let has_budget = self.budget_ns().is_some();
        let is_due = block >= study.blocks_min.max(1)
            && ((block - study.blocks_min).is_multiple_of(BLOCKS_BETWEEN_LOOKS)
                || (has_budget && block >= TELLING_BLOCKS));
        // The earlier session checked before it began this block.
        let has_begun = self.next_sequence > block * self.plan.trials_per_block();
        if !is_due || has_begun {
            return Ok(None);
        }
        let needed = self.precision.needed(study, &self.inside, block);
        if let Some(text) = self.precision.so_far() {
            self.cx.observer.event(&Event::SoFar(text));
        }
        let is_done = |needed: &Needed| {
            let left = if has_budget {
                needed.most
            } else {
                needed.enough
            };
            left <= 0.0
        };
        for (workload, _) in needed.iter().enumerate().filter(|(_, it)| is_done(it)) {
            if self.ended.get(workload) != Some(&None) {
                continue;
            }
            self.end_workload(workload, block)?;
            self.say(format!(
                "`{}` needs no more than {block} blocks and is measured no longer",
                study.name_of(&study.workloads[workload])
            ))?;
        }
        Ok(Some(needed))
    }

    /// Stores that a workload is not measured from this block on.
    pub(super) fn end_workload(&mut self, workload: usize, block: u32) -> Result<(), StoreError> {
        self.ended[workload] = Some(block);
        self.store.end_workload(WorkloadEnd {
            workload_index: whole_count(workload),
            after_blocks: block,
        })
    }

    /// The trials whose arm is usable.
    pub(super) fn usable<'t>(
        &self,
        trials: impl IntoIterator<Item = &'t Trial>,
    ) -> impl Iterator<Item = &'t Trial> {
        let out: Vec<ArmId> = self
            .testbed
            .arms
            .iter()
            .filter(|arm| !arm.is_usable())
            .map(|arm| arm.spec.id.clone())
            .collect();
        trials
            .into_iter()
            .filter(move |trial| !out.contains(&trial.cell.arm))
    }

    /// Runs one trial, stores it, and handles an arm that was lost in it.
    fn trial(&mut self, trial: &Trial, rest_of_block: &[Trial]) -> Result<(), Break> {
        if self.cx.cancel.is_requested() {
            return Err(Break::Cancelled);
        }
        let workload = trial.workload_index as usize;
        let place = self.testbed.place_of(&trial.cell.arm);
        let Some(index) = place.filter(|index| self.testbed.arms[*index].is_usable()) else {
            return Ok(());
        };
        let slot_begun_ns = self.cx.clock.now_ns();
        if self.study().settle_ns > 0 {
            self.cx
                .clock
                .sleep(std::time::Duration::from_nanos(self.study().settle_ns));
        }
        // Trials with two ends, several instances or a new instance use resources elsewhere too.
        let is_all_inside = trial.cell.instances == 1
            && matches!(self.recipes[workload], Recipe::Probe(_))
            && !self.dispatcher.is_cold;
        let charged = if is_all_inside {
            self.testbed.arms[index].charged()
        } else {
            Charged::Nowhere
        };
        let before = charges::read(&charged);
        let awake = Awake::now(self.cx.clock);
        let measured = match self.missing_tool(&trial.cell.arm, workload) {
            Some(reason) => self.dispatcher.nothing(Outcome::Unavailable(reason), false),
            None => self.dispatcher.measure(
                trial,
                &self.recipes[workload],
                &mut self.testbed.arms[index],
                self.testbed.peer.as_mut(),
            )?,
        };
        let charged = charges::since(&before, &charges::read(&charged));
        let done = [(trial, index, measured, charged)];
        self.keep(&done, awake, slot_begun_ns, rest_of_block)
    }

    /// Stores trials that were measured together since `begun_ns`, and handles arms that were lost in them.
    pub(super) fn keep(
        &mut self,
        done: &[(&Trial, usize, Measured, charges::Charges)],
        awake: Awake,
        begun_ns: u64,
        rest_of_block: &[Trial],
    ) -> Result<(), Break> {
        let record =
            |(trial, _, measured, charged): &(&Trial, _, Measured, charges::Charges)| TrialRecord {
                trial: (*trial).clone(),
                started_unix_ns: measured.started_unix_ns,
                host_elapsed_ns: measured.elapsed_ns,
                outcome: measured.outcome.clone(),
                charged: charged.clone(),
            };
        let mut records: Vec<TrialRecord> = done.iter().map(record).collect();
        awake.or_void(self.cx.clock, &mut records);
        for record in &mut records {
            self.spare(record);
        }
        self.store.append_all(&records)?;
        let all_ns = self.cx.clock.now_ns().saturating_sub(begun_ns);
        let slot_ns = all_ns / done.len() as u64;
        for (record, (trial, index, measured, _)) in records.iter().zip(done) {
            self.precision.add(record);
            // If one of several instances failed, the others' output is kept, but the trial has no value.
            let is_completed =
                matches!(&record.outcome, Outcome::Completed(raw) if raw.exit == Exit::Code(0));
            // In an alternated block, unusable arms have no trial, so numbers are skipped.
            self.next_sequence = self.next_sequence.max(trial.sequence + 1);
            self.n_trials += 1;
            self.n_without_value += u32::from(!is_completed);
            self.pace.trial(trial.workload_index as usize, slot_ns);
            self.after(trial, *index, measured)?;
            self.tell_done(trial, rest_of_block, is_completed);
        }
        Ok(())
    }

    /// Removes from a trial what its workload does not want stored.
    fn spare(&self, record: &mut TrialRecord) {
        let index = record.trial.workload_index as usize;
        let params = &self.study().workloads[index].params;
        if let Outcome::Completed(raw) = &mut record.outcome
            && let Some(less) = self.workloads[index].stored(params, raw)
        {
            *raw = less;
        }
    }

    fn tell_done(&self, trial: &Trial, rest_of_block: &[Trial], is_completed: bool) {
        let expected = |workload: usize| self.pace.expected_trial_ns(workload);
        let mut left: u64 = 0;
        let mut left_ns: u64 = 0;
        for trial in self.usable(rest_of_block) {
            left += 1;
            left_ns += expected(trial.workload_index as usize);
        }
        let n_arms = self.testbed.n_usable();
        let n_blocks = u64::from(self.blocks_max().saturating_sub(trial.block + 1));
        for workload in self.live_workloads(trial.block + 1) {
            left += n_arms * n_blocks;
            left_ns =
                left_ns.saturating_add((n_arms * n_blocks).saturating_mul(expected(workload)));
        }
        if let Some(budget_ns) = self.budget_left_ns()
            && budget_ns < left_ns
        {
            let fit = u128::from(left) * u128::from(budget_ns) / u128::from(left_ns);
            left = u64::try_from(fit).unwrap_or(left);
            left_ns = budget_ns;
        }
        self.cx.observer.event(&Event::TrialDone {
            done: self.n_trials,
            left: u32::try_from(left).unwrap_or(u32::MAX),
            left_ns,
            workload: trial.cell.workload.to_string(),
            arm: trial.cell.arm.to_string(),
            completed: is_completed,
        });
    }
}

/// Returns what the workloads need in addition to the arms.
fn needs(study: &Study, recipes: &[Recipe], is_cold: bool) -> Needs {
    let touches = |end: End| {
        study
            .workloads
            .iter()
            .zip(recipes)
            .filter(|(_, recipe)| matches!(recipe, Recipe::Pair { .. }))
            .filter_map(|(workload, _)| workload.path)
            .any(|path| path.touches(end))
    };
    let extra = study
        .workloads
        .iter()
        .filter(|workload| workload.spread == Some(Spread::Environments))
        .map(|workload| workload.instances.saturating_sub(1))
        .max();
    let nodes = study
        .workloads
        .iter()
        .zip(recipes)
        .map(|(workload, recipe)| recipe.nodes(workload.path));
    Needs {
        peer: touches(End::Host),
        nodes: nodes.max().unwrap_or(1),
        extra: extra.unwrap_or(0),
        is_cold,
    }
}

/// Returns the workloads of the study.
fn workloads(
    study: &Study,
    registry: &Registry<'_>,
) -> Result<Vec<&'static dyn Workload>, RunError> {
    let ids = study.workloads.iter().map(|spec| spec.id.as_str());
    ids.map(|id| (registry.workload)(id).ok_or_else(|| RunError::UnknownWorkload(id.to_owned())))
        .collect()
}

/// Returns the recipe of a workload of the study.
fn recipe(study: &Study, spec: &WorkloadSpec, workload: &dyn Workload) -> Result<Recipe, RunError> {
    let wrong = |source| RunError::Param {
        workload: spec.id.to_string(),
        source,
    };
    let mut recipe = workload.recipe(&spec.params, spec.path).map_err(wrong)?;
    crate::workload::instances::check(spec, &recipe).map_err(wrong)?;
    if study.usage {
        charges::record_usage(&mut recipe);
    }
    Ok(recipe)
}
