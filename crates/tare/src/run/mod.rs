//! Runs a plan: the only module where things happen in time.
//!
//! It starts the arms, runs the trials block by block, stores each before the next begins, and finally removes
//! everything, however the run ends. It does not interpret raw output, not even to decide when to stop: for that it
//! asks a [`Precision`], between blocks only.
//!
//! One thread and no polling, because any host activity during a trial is measured with it. Events, writes and
//! questions happen between trials.
//! Limits: other processes of the machine are not detected here; `tare doctor` and the A/A control (A′) report those.

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

/// Blocks between two checks of the precision (METHOD 1.4: checks at 10, 15, 20, …).
pub const BLOCKS_BETWEEN_LOOKS: u32 = 5;

/// From this number of blocks on, interval widths predict how many more are needed.
const TELLING_BLOCKS: u32 = 8;

/// Lookup of drivers and workloads by name.
#[derive(Clone, Copy)]
pub struct Registry<'a> {
    /// Finds a driver by name.
    pub driver: &'a dyn Fn(&str) -> Option<&'static dyn Driver>,
    /// Finds a workload by name.
    pub workload: &'a dyn Fn(&str) -> Option<&'static dyn Workload>,
}

impl Registry<'static> {
    /// The built-in drivers and workloads.
    pub fn built_in() -> Self {
        Self {
            driver: &crate::env::find,
            workload: &crate::workload::find,
        }
    }
}

/// Decides how many more blocks each workload needs. It must use the width of intervals, never significance; then
/// checking adds no bias (METHOD 1.4).
pub trait Precision {
    /// Adds a trial after it was stored; on resume first every stored trial, in the plan's order.
    fn add(&mut self, record: &TrialRecord);
    /// For each workload of the study, in its order, how many blocks it still needs after `n_blocks`: 0 if each of
    /// its cells is precise enough, or not worth more time. `inside` holds the facts from the last start of the arms,
    /// which may void a trial.
    fn needed(
        &mut self,
        study: &Study,
        inside: &BTreeMap<ArmId, Facts>,
        n_blocks: u32,
    ) -> Vec<Needed>;
    /// A one-line preliminary answer for the waiting user; informational only.
    fn so_far(&self) -> Option<String> {
        None
    }
}

/// Runs every block of the plan, regardless of the precision.
#[derive(Debug, Default, Clone, Copy)]
pub struct AllBlocks;

impl Precision for AllBlocks {
    fn add(&mut self, _record: &TrialRecord) {}

    fn needed(&mut self, study: &Study, _: &BTreeMap<ArmId, Facts>, _: u32) -> Vec<Needed> {
        vec![Needed::UNKNOWN; study.workloads.len()]
    }
}

/// Result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    /// The run.
    pub run: RunId,
    /// Why it stopped; [`StoppedBy::Interrupted`] after Ctrl-C.
    pub stopped_by: StoppedBy,
    /// Trials in the store, including earlier sessions.
    pub n_trials: u32,
    /// Trials of this session without a value.
    pub n_without_value: u32,
    /// Completed blocks.
    pub n_blocks: u32,
    /// Time of this session, nanoseconds.
    pub wall_ns: u64,
    /// Arms that could not be measured, or not until the end, with the reason.
    pub absent: Vec<(ArmId, String)>,
    /// Leftovers that could not be removed, one line each; `tare clean` tries again.
    pub left_behind: Vec<String>,
}

/// Runs a plan as the run `cx.run`. `host` holds the facts about the machine.
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

/// Resumes the stored run `run`: same plan, after the last stored trial. Everything created is labelled `cx.run`,
/// which differs from `run` if the run was started elsewhere. `more_ns` replaces the rest of the study's budget, and
/// also extends a run that had ended by its budget or after its last block. The added blocks are those that the same
/// seed gives.
///
/// Trials before the last one are never filled in, not even those of an arm that has become available since: they
/// would not run close to the others of their block. Such an arm joins from here on.
///
/// A user who extends an ended run may have seen its results and may stop when they please; that cannot be prevented,
/// so it is stored with the run.
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
    if ended.is_some() && !(has_more && more_ns.is_some()) {
        return Err(RunError::Complete {
            run: stored.id,
            has_more,
        });
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
    // A restart is a new launch, even within the blocks of an old one: its number is not reused.
    let launches = stored.launches.iter().map(|launch| launch.launch + 1);
    let unused = launches.max().unwrap_or(0);
    // The stored trials were measured with these tools.
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
