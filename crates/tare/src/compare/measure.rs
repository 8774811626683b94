//! Measures a comparison in rounds. Each round is a stored run with freshly started arms; all rounds give one answer.
//!
//! A gate has two halves, planned before the first trial; more rounds follow while a gated row is inconclusive and
//! time is left. A comparison starts with a short round, so that clear results appear early. It has at most as many
//! rounds as there are looks that share its false-positive rate.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tare_model::dossier::Dossier;
use tare_model::{ArmId, Facts, RunId, StoppedBy, Study};
use tare_stats::Needed;

use super::commits::{in_folder, last_words};
use super::copies::Copies;
use crate::analyze::{self, PrecisionRule, RunData};
use crate::compare::limits::Limits;
use crate::compare::study::{ObservedSides, Round, Side, of_round};
use crate::compare::{Decision, Row, Word, gate};
use crate::cx::exec::{Exec, SystemExec};
use crate::cx::{Cancel, Event, Observer};
use crate::failed::Failed;
use crate::output;
use crate::recount;
use crate::run::Precision;
use crate::session::Session;
use crate::session::home::GivenPaths;
use crate::session::progress::{Progress, WithoutDifferences};
use crate::store::{Store, TrialRecord};
use crate::why;
use crate::workload::{self, Workload, compared_command};

/// Most rounds.
const ROUNDS_MOST: usize = gate::LOOKS;
/// Each round of a comparison takes this fraction (1/N) of the time that is left.
const PARTS: [u64; ROUNDS_MOST] = [16, 4, 2, 1, 1];
/// Minimum time of such a round.
const ROUND_LEAST_NS: u64 = 8_000_000_000;
/// Minimum blocks of such a round. Arms that start slowly use up the time of some of them.
const ROUND_LEAST_BLOCKS: u64 = 12;
/// A further round starts only if this fraction (1/N) of the budget is left.
const WORTHWHILE_PART: u64 = 8;
/// Time reserved for cleanup.
const ENDING_NS: u64 = 500_000_000;
/// Time limit of a command before or after each run.
const HOOK_LIMIT: Duration = Duration::from_secs(600);

/// What to measure, and how.
pub(crate) struct Question<'a> {
    pub(crate) sides: &'a [Side],
    pub(crate) copies: Option<&'a Copies>,
    pub(crate) seen: &'a ObservedSides,
    pub(crate) limits: &'a Limits,
    pub(crate) gate: bool,
    pub(crate) seed: u64,
    pub(crate) budget_ns: u64,
    pub(crate) begun_ns: u64,
    pub(crate) hooks: Hooks<'a>,
    /// Whether the session measured something before.
    pub(crate) is_later: bool,
}

impl Question<'_> {
    fn left_ns(&self, session: &Session) -> u64 {
        let spent_ns = session.now_ns().saturating_sub(self.begun_ns) + ENDING_NS;
        self.budget_ns.saturating_sub(spent_ns)
    }

    fn is_worthwhile(&self, left_ns: u64) -> bool {
        left_ns >= self.budget_ns / WORTHWHILE_PART
    }
}

/// Result of all rounds.
#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) runs: Vec<RunId>,
    pub(crate) rows: Vec<Row>,
    pub(crate) decision: Decision,
    pub(crate) whole_trials: Vec<String>,
    pub(crate) left_behind: Vec<String>,
    pub(crate) is_interrupted: bool,
}

fn judged_workload(id: &str) -> Option<&'static dyn Workload> {
    (id == compared_command::Judged.id()).then_some(&compared_command::Judged)
}

/// Ends a round as soon as every metric with a verdict is precise enough. Checks less and less often, because each
/// check takes longer with more blocks.
struct Rule {
    inner: PrecisionRule<'static>,
    latest: Vec<Needed>,
    next: u32,
}

impl Precision for Rule {
    fn add(&mut self, record: &TrialRecord) {
        self.inner.add(recount::trial_ref(record));
    }

    fn needed(&mut self, _: &Study, inside: &BTreeMap<ArmId, Facts>, n_blocks: u32) -> Vec<Needed> {
        if n_blocks >= self.next {
            self.latest = self.inner.needed(inside);
            self.next = n_blocks + (n_blocks / 10).max(1);
        }
        self.latest.clone()
    }
}

/// Shell commands before and after each measured run.
#[derive(Default, Clone, Copy)]
pub(crate) struct Hooks<'a> {
    pub(crate) prepare: Option<&'a str>,
    pub(crate) conclude: Option<&'a str>,
}

impl Hooks<'_> {
    pub(crate) fn are_none(&self) -> bool {
        self.prepare.is_none() && self.conclude.is_none()
    }
}

/// Runs the hooks between trials, and renews the copies between blocks.
struct Hooked<'a> {
    inner: WithoutDifferences<'a>,
    hooks: Hooks<'a>,
    /// The copies, and how many blocks are expected.
    copies: Option<(&'a Copies, u64)>,
    /// Trials in a block.
    arms: u64,
    cancel: &'a Cancel,
    failed: Mutex<Option<String>>,
}

impl Hooked<'_> {
    fn run(&self, command: Option<&str>) {
        let Some(command) = command else {
            return;
        };
        let failure = match SystemExec.run(&in_folder(".", command), &[], HOOK_LIMIT) {
            Ok(finished) if finished.status == Some(0) => return,
            Ok(finished) => last_words(&finished),
            Err(error) => error.to_string(),
        };
        if let Ok(mut failed) = self.failed.lock() {
            failed.get_or_insert(format!("`{command}` failed: {failure}"));
        }
        self.cancel.request();
    }
}

impl Observer for Hooked<'_> {
    fn event(&self, event: &Event) {
        self.inner.event(event);
        let Event::TrialDone { done, .. } = event else {
            return;
        };
        let done = u64::from(*done);
        if let Some((copies, expected)) = self.copies
            && done.is_multiple_of(self.arms)
        {
            copies.renew(done / self.arms, expected);
        }
        self.run(self.hooks.conclude);
        self.run(self.hooks.prepare);
    }
}

/// Measures rounds until every gated row is decided or the time is used up.
///
/// # Errors
/// Whatever ended the first round early. Later failures are only reported, and the rounds before them count.
pub(crate) fn all(
    question: &Question<'_>,
    place: &GivenPaths,
    session: &mut Session,
    store: &mut Store,
    progress: &Progress,
) -> Result<Measured, Failed> {
    let planned = if question.gate { 2 } else { 1 };
    let mut data: Vec<RunData> = Vec::new();
    let mut measured = Measured::default();
    for (number, part) in PARTS.into_iter().enumerate() {
        let left_ns = question.left_ns(session);
        let is_planned = number < planned;
        if !is_planned && !question.is_worthwhile(left_ns) {
            break;
        }
        let time_ns = if question.gate {
            left_ns / if is_planned { 2 - number as u64 } else { 1 }
        } else {
            let block_ns = question.seen.block_ns(question.sides.len());
            let least_ns = ROUND_LEAST_NS.max(block_ns.saturating_mul(ROUND_LEAST_BLOCKS));
            (left_ns / part).max(least_ns.min(left_ns))
        };
        let round = Round {
            time_ns: time_ns.max(1),
            seed: question.seed.wrapping_add(number as u64),
            before: measured.runs.last(),
            margin: question.limits.margin,
        };
        let control = question.copies.map(|copies| copies.control.as_slice());
        let study = of_round(question.sides, control, question.seen, round);
        if number > 0 || question.is_later {
            session.renew(place)?;
        }
        let done = match one(question, &study, session, store, progress) {
            Ok(done) => done,
            Err(failed) if data.is_empty() => return Err(failed),
            Err(failed) => {
                output::tell(&format!("a further round could not be measured: {failed}"));
                break;
            }
        };
        measured.runs.push(done.data.head.run.clone());
        measured.left_behind.extend(done.left_behind);
        measured
            .whole_trials
            .clone_from(&done.data.head.whole_trials);
        data.push(done.data);
        let is_last =
            number + 1 == ROUNDS_MOST || !question.is_worthwhile(question.left_ns(session));
        (measured.rows, measured.decision) = judged(&data, question, is_last);
        measured.is_interrupted = done.is_interrupted;
        if measured.is_interrupted || is_over(&measured.rows, question, number + 1, planned) {
            break;
        }
        so_far(&measured);
    }
    Ok(measured)
}

/// Whether no further round is needed.
fn is_over(rows: &[Row], question: &Question<'_>, done: usize, planned: usize) -> bool {
    if done < planned {
        return gate::is_green(rows);
    }
    let is_open = |row: &&Row| row.gated && row.word == Word::Inconclusive;
    let open = rows.iter().filter(is_open).count();
    // The base differs from itself; more time does not change that.
    let is_hopeless = rows
        .iter()
        .filter(is_open)
        .all(|row| row.control.is_some_and(|it| it.point.abs() > row.margin));
    let has_gated = rows.iter().any(|row| row.gated);
    (open == 0 && has_gated) || (question.gate && is_hopeless && done >= 3)
}

fn so_far(measured: &Measured) {
    let texts = measured
        .rows
        .iter()
        .filter(|row| row.gated)
        .filter_map(|row| {
            let change = crate::report::compared::shown::change(row.change.as_ref()?);
            Some(format!("{} {change}", row.name))
        });
    let texts: Vec<String> = texts.take(4).collect();
    if texts.is_empty() {
        return;
    }
    output::tell(&format!("so far: {}", texts.join("; ")));
}

/// Judges all rounds together.
fn judged(data: &[RunData], question: &Question<'_>, is_last: bool) -> (Vec<Row>, Decision) {
    let all = joined(data);
    if !question.gate {
        return gate::compared(&all, question.limits, is_last);
    }
    let mut halves = vec![joined(&data[..1])];
    if data.len() > 1 {
        halves.push(joined(&data[1..]));
    }
    gate::judged(&all, &halves, question.limits)
}

/// Merges several rounds into one dossier.
fn joined(data: &[RunData]) -> Dossier {
    let (last, earlier) = data.split_last().expect("a round was measured");
    analyze::analyze(&why::joined(last.clone(), earlier), &workload::find)
}

struct Done {
    data: RunData,
    left_behind: Vec<String>,
    is_interrupted: bool,
}

fn one(
    question: &Question<'_>,
    study: &Study,
    session: &Session,
    store: &mut Store,
    progress: &Progress,
) -> Result<Done, Failed> {
    let hooked = Hooked {
        inner: WithoutDifferences(progress),
        hooks: question.hooks,
        copies: question.copies.map(|copies| {
            let block_ns = question.seen.block_ns(question.sides.len());
            (copies, question.budget_ns.div_ceil(block_ns.max(1)))
        }),
        arms: question.sides.len() as u64 + 1,
        cancel: session.cancel(),
        failed: Mutex::new(None),
    };
    hooked.run(question.hooks.prepare);
    let mut rule = Rule {
        inner: PrecisionRule::new(study, &judged_workload),
        latest: vec![Needed::UNKNOWN; study.workloads.len()],
        next: 0,
    };
    let summary = session.carry_out(study, &hooked, store, &mut rule)?;
    let failure = hooked
        .failed
        .lock()
        .ok()
        .and_then(|mut failed| failed.take());
    if let Some(failure) = failure {
        return Err(Failed::failure(failure)
            .hint("`--prepare` and `--conclude` must work before and after every run"));
    }
    let data = recount::run_data(store.run(session.run())?);
    Ok(Done {
        data,
        left_behind: summary.left_behind,
        is_interrupted: summary.stopped_by == StoppedBy::Interrupted,
    })
}
