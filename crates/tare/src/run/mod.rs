//! The engine: the only place where things happen in time.
//!
//! It takes a plan, starts the arms, runs the trials block by block, stores each before the next begins,
//! and removes everything in the end, however the end comes about. It does not interpret what a trial
//! left, not even to decide when to stop: that is asked of a [`Precision`], between blocks only.
//! Why one thread and no polling: whatever the host does while a trial runs is measured with it. Events,
//! writes and questions happen between trials.
//! What it cannot see: other processes of the machine; `tare doctor` and the A′ arm speak about those.

use std::collections::BTreeMap;

use tare_model::{ArmId, Facts, RunId, StoppedBy, Study};
use tare_stats::Needed;

use crate::cx::Context;
use crate::env::Driver;
use crate::plan::Plan;
use crate::store::{RunStart, Store, TrialRecord};
use crate::workload::Workload;

mod alternate;
mod budget;
pub(crate) mod charges;
mod cluster;
mod dispatch;
mod error;
mod exchange;
mod extra;
mod group;
mod inspect;
mod instances;
mod interpreter;
mod launch;
mod pace;
mod pair;
mod parity;
pub mod resident;
mod served;
#[cfg(target_os = "linux")]
mod services;
#[cfg(not(target_os = "linux"))]
mod services_elsewhere;
mod session;
mod suspended;
mod testbed;
mod turn_state;
mod turns;

pub use error::RunError;
pub use interpreter::without_shims;
#[cfg(not(target_os = "linux"))]
use services_elsewhere as services;

pub use services::own_cost;

use session::Session;

/// Blocks between two looks at the precision (METHOD 1.4: looks at 10, 15, 20, …).
pub const BLOCKS_BETWEEN_LOOKS: u32 = 5;

/// From so many blocks on widths say how many more are needed.
const TELLING_BLOCKS: u32 = 8;

/// Where drivers and workloads are looked up.
#[derive(Clone, Copy)]
pub struct Registry<'a> {
    /// Drivers by name.
    pub driver: &'a dyn Fn(&str) -> Option<&'static dyn Driver>,
    /// Workloads by name.
    pub workload: &'a dyn Fn(&str) -> Option<&'static dyn Workload>,
}

impl Registry<'static> {
    /// Those that Tare is built with.
    pub fn built_in() -> Self {
        Self {
            driver: &crate::env::find,
            workload: &crate::workload::find,
        }
    }
}

/// Says how far each workload is from being measured well enough. Must look at the width of intervals, never at
/// significance: then looking does not bias (METHOD 1.4).
pub trait Precision {
    /// Takes in a trial, after it was stored; on resume first every stored one, in the plan's order.
    fn add(&mut self, record: &TrialRecord);
    /// For each workload of the study, in its order, how many blocks it still needs after `n_blocks` of them: 0 where
    /// every cell of it is precise enough, or as precise as is worth any time. `inside` is what was found in
    /// the arms when they were last started, by which a trial may be void.
    fn needed(
        &mut self,
        study: &Study,
        inside: &BTreeMap<ArmId, Facts>,
        n_blocks: u32,
    ) -> Vec<Needed>;
    /// The answer so far in a line, for whoever waits; nothing hangs on it.
    fn so_far(&self) -> Option<String> {
        None
    }
}

/// Runs every block of the plan, whatever the precision.
#[derive(Debug, Default, Clone, Copy)]
pub struct AllBlocks;

impl Precision for AllBlocks {
    fn add(&mut self, _record: &TrialRecord) {}

    fn needed(&mut self, study: &Study, _: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        vec![Needed::UNKNOWN; study.workloads.len()]
    }
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Why it stopped; [`StoppedBy::Interrupted`] after Ctrl-C.
    pub stopped_by: StoppedBy,
    /// Trials in the store, those of earlier sessions included.
    pub n_trials: u32,
    /// How many of this session's trials gave no value.
    pub n_without_value: u32,
    /// Blocks that were done to their end.
    pub n_blocks: u32,
    /// Time of this session, nanoseconds.
    pub wall_ns: u64,
    /// Arms that could not be measured, or not to the end, with the reason.
    pub absent: Vec<(ArmId, String)>,
    /// What could not be removed, one line each; `tare clean` tries again.
    pub left_behind: Vec<String>,
}

/// Runs a study from its plan as the run `cx.run`. `host` is what was found out about the machine.
pub fn execute(
    cx: &Context<'_>,
    plan: &Plan,
    host: &Facts,
    registry: &Registry<'_>,
    store: &mut Store,
    precision: &mut dyn Precision,
) -> Result<RunSummary, RunError> {
    let session = Session::new(cx, plan, registry, store, precision)?;
    session.store.begin(
        &RunStart {
            id: cx.run.clone(),
            started_unix_ns: cx.clock.unix_ns(),
            agent_sha256: cx.agent.sha256.clone(),
            agent_build: cx.agent.build.clone(),
            host: host.clone(),
        },
        plan,
    )?;
    session.carry_out()
}

/// Goes on with the stored run `run`: the same plan, after the last trial that is stored. What is created carries the
/// label `cx.run`, which is another one where the run was begun elsewhere. With `more_ns` it has so much time from now
/// on, in place of what is left of the study's budget: also where the run had ended, by its budget or after its last
/// block. The blocks that are added are those that the same seed gives.
///
/// Trials are never filled in behind the last one, not even those of an arm that has become available
/// since: they would not stand beside the others of their block. Such an arm joins from here on.
///
/// Who adds blocks to a run that had ended may have seen what it found, and stopped if it was to his liking; that
/// cannot be undone, so it is stored with the run.
pub fn resume(
    cx: &Context<'_>,
    run: &RunId,
    registry: &Registry<'_>,
    store: &mut Store,
    precision: &mut dyn Precision,
    more_ns: Option<u64>,
) -> Result<RunSummary, RunError> {
    let stored = store.run_without_records(run)?;
    let plan = Plan::new(&stored.study);
    if plan.sha256() != stored.plan_sha256 {
        return Err(RunError::OtherPlan {
            run: stored.id,
            tare: stored.tare,
        });
    }
    if cx.agent.sha256 != stored.agent_sha256 {
        return Err(RunError::OtherAgent {
            run: stored.id,
            stored: stored.agent_sha256,
            present: cx.agent.sha256.clone(),
        });
    }
    let ended = stored.stopped_by.filter(|end| end.is_complete());
    let has_more = ended.is_some_and(|end| end != StoppedBy::Precision);
    match ended {
        Some(_) if has_more && more_ns.is_some() => {}
        Some(_) => {
            return Err(RunError::Complete {
                run: stored.id,
                has_more,
            });
        }
        None => {}
    }
    let mut session = Session::new(cx, &plan, registry, store, precision)?;
    session.run = run.clone();
    session.earlier_ns = stored.wall_ns;
    session.more_ns = more_ns;
    for end in stored.workload_ends {
        if let Some(ended) = session.ended.get_mut(end.workload_index as usize) {
            *ended = Some(end.after_blocks);
        }
    }
    // What starts anew is another launch, also within the blocks of one: its number is not used twice.
    let launches = stored.launches.iter().map(|launch| launch.launch + 1);
    let unused = launches.max().unwrap_or(0);
    // What was measured before was measured with these tools.
    for launch in stored.launches {
        if let Some(arm) = plan
            .study()
            .arms
            .iter()
            .find(|arm| arm.id.as_str() == launch.arm)
        {
            session.inside.insert(arm.id.clone(), launch.facts);
        }
    }
    let (precision, mut next, mut count) = (&mut *session.precision, 0, 0);
    session.store.each_record(run, |record| {
        next = record.trial.sequence + 1;
        count += 1;
        precision.add(record);
    })?;
    (session.next_sequence, session.n_trials) = (next, count);
    let planned = plan.launch(next / plan.trials_per_block().max(1));
    session.more_launches = unused.saturating_sub(planned);
    session.store.resume(run, cx.clock.unix_ns())?;
    if let (Some(_), Some(more_ns)) = (ended, more_ns) {
        session.say(format!(
            "the run had ended and is extended by {:.1} s: blocks that are added after the result was seen make intervals and verdicts look surer than they are",
            more_ns as f64 / 1e9
        ))?;
    }
    session.carry_out()
}
