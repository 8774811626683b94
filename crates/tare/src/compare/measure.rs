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

use super::commits::shell;
use super::copies::Copies;
use super::look::Looked;
use super::options::Options;
use crate::analyze::{self, PrecisionRule, RunData};
use crate::compare::limits::Limits;
use crate::compare::study::{Round, of_round};
use crate::compare::{Decision, Row, Word, gate};
use crate::cx::exec::SystemExec;
use crate::cx::{Cancel, Event, Observer};
use crate::failed::Failed;
use crate::output;
use crate::recount;
use crate::run::{Precision, RunSummary};
use crate::session::Session;
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
    pub(crate) looked: &'a Looked,
    pub(crate) options: &'a Options,
    pub(crate) limits: &'a Limits,
    pub(crate) gate: bool,
    pub(crate) seed: u64,
    pub(crate) begun_ns: u64,
}

impl Question<'_> {
    fn left_ns(&self, session: &Session) -> u64 {
        let spent_ns = session.now_ns().saturating_sub(self.begun_ns) + ENDING_NS;
        self.options.budget.saturating_sub(spent_ns)
    }

    fn is_worthwhile(&self, left_ns: u64) -> bool {
        left_ns >= self.options.budget / WORTHWHILE_PART
    }

    /// Expected time of a block.
    fn block_ns(&self) -> u64 {
        self.looked.seen.block_ns(self.looked.sides.len())
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
        Precision::add(&mut self.inner, record);
    }

    fn needed(&mut self, _: &Study, inside: &BTreeMap<ArmId, Facts>, n_blocks: u32) -> Vec<Needed> {
        if n_blocks >= self.next {
            self.latest = self.inner.needed(inside);
            self.next = n_blocks + (n_blocks / 10).max(1);
        }
        self.latest.clone()
    }
}

/// Runs the hooks between trials, and renews the copies between blocks.
struct Hooked<'a> {
    inner: WithoutDifferences<'a>,
    options: &'a Options,
    /// The copies, and how many blocks are expected.
    copies: Option<(&'a Copies, u64)>,
    /// Trials in a block.
    arms: u64,
    cancel: &'a Cancel,
    failed: Mutex<Option<String>>,
}

impl Hooked<'_> {
    fn run(&self, command: Option<&String>) {
        let Some(command) = command else {
            return;
        };
        let Err(failure) = shell(&SystemExec, command, HOOK_LIMIT) else {
            return;
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
        self.run(self.options.conclude.as_ref());
        self.run(self.options.prepare.as_ref());
    }
}

/// Measures rounds until every gated row is decided or the time is used up.
///
/// # Errors
/// Whatever ended the first round early. Later failures are only reported, and the rounds before them count.
pub(crate) fn all(
    question: &Question<'_>,
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
            let blocks_ns = question.block_ns().saturating_mul(ROUND_LEAST_BLOCKS);
            let least_ns = ROUND_LEAST_NS.max(blocks_ns);
            (left_ns / part).max(least_ns.min(left_ns))
        };
        let round = Round {
            time_ns: time_ns.max(1),
            seed: question.seed.wrapping_add(number as u64),
            before: measured.runs.last(),
            margin: question.limits.margin,
        };
        let Looked {
            sides,
            copies,
            seen,
            ..
        } = question.looked;
        let control = copies.as_ref().map(|copies| copies.control.as_slice());
        let study = of_round(sides, control, seen, round);
        session.renew_if_used()?;
        let (done, summary) = match one(question, &study, session, store, progress) {
            Ok(done) => done,
            Err(failed) if data.is_empty() => return Err(failed),
            Err(failed) => {
                output::tell(&format!("a further round could not be measured: {failed}"));
                break;
            }
        };
        measured.runs.push(done.head.run.clone());
        measured.left_behind.extend(summary.left_behind);
        measured.whole_trials.clone_from(&done.head.whole_trials);
        data.push(done);
        let is_last =
            number + 1 == ROUNDS_MOST || !question.is_worthwhile(question.left_ns(session));
        (measured.rows, measured.decision) = judged(&data, question, is_last);
        measured.is_interrupted = summary.stopped_by == StoppedBy::Interrupted;
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

fn one(
    question: &Question<'_>,
    study: &Study,
    session: &Session,
    store: &mut Store,
    progress: &Progress,
) -> Result<(RunData, RunSummary), Failed> {
    let Question {
        looked, options, ..
    } = question;
    let expected = options.budget.div_ceil(question.block_ns().max(1));
    let hooked = Hooked {
        inner: WithoutDifferences(progress),
        options,
        copies: looked.copies.as_ref().map(|copies| (copies, expected)),
        arms: looked.sides.len() as u64 + 1,
        cancel: session.cancel(),
        failed: Mutex::new(None),
    };
    hooked.run(options.prepare.as_ref());
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
    Ok((data, summary))
}
