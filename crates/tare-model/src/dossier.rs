//! The dossier: all results of a run, as rendered by reports and printed by `--json`.
//!
//! Version 1. Fields may be added, never renamed. A ratio above 1 always means that the arm costs more, whatever the
//! direction of the metric. Missing numbers are `null` with a reason next to them, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::course::DossierCourse;
use crate::facts::Facts;
use crate::params::Params;
use crate::recipe::Path;
use crate::study::Spread;
use crate::unit::Better;
use crate::words::{
    Absence, AnswerLabel, CheckResult, Deviation, ScalingLaw, Status, StoppedBy, Summary, Verdict,
    WhyOutcome, WhyReason,
};

mod published;
mod span;

pub use published::{
    DossierClaim, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierMistake, DossierNote,
    DossierOwnNumbers, DossierPublication, DossierPublished,
};

/// Version of the dossier's format.
pub const DOSSIER_VERSION: u32 = 1;

/// An estimate with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Estimate.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level; absent if it is the run's 0.95.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
}

impl Span {
    /// Creates a span at the run's level.
    pub const fn new(low: f64, point: f64, high: f64) -> Self {
        Self {
            point,
            low,
            high,
            level: None,
        }
    }
}

/// The study as it was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierStudy {
    /// Its name.
    pub id: String,
    /// One-line title.
    pub title: String,
    /// Seed.
    pub seed: u64,
    /// Margins by resource class, as fractions.
    pub margin: BTreeMap<String, f64>,
    /// Hash of the plan, fixed before the first trial.
    pub plan_sha256: String,
}

/// One arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierArm {
    /// Its name.
    pub id: String,
    /// Its driver.
    pub driver: String,
    /// Whether it is the baseline.
    pub baseline: bool,
    /// Whether it could be measured.
    pub available: bool,
    /// Why it could not be measured.
    pub reason: Option<String>,
    /// The command or change that fixes this.
    pub fix: Option<String>,
    /// Settings as given.
    pub settings: Params,
    /// Facts collected about it.
    pub facts: Facts,
    /// Hash of the agent that ran in it.
    pub agent_sha256: Option<String>,
}

/// One metric of one arm compared with the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCell {
    /// The arm.
    pub arm: String,
    /// The arm that it is compared with.
    pub baseline: String,
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// Number of concurrent instances.
    pub instances: u32,
    /// Where the instances ran, `processes` or `environments`; absent for a single instance started directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// The metric.
    pub metric: String,
    /// Revision of the probe's kernel.
    pub revision: u32,
    /// Unit of `base`, `env` and `difference`.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// The in-trial summary used.
    pub summary: Summary,
    /// Number of blocks used.
    pub n_blocks: u32,
    /// Whether the arms were interleaved in slices in these blocks; otherwise they ran whole trials.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The baseline's value (pseudo-median over blocks).
    pub base: Option<Span>,
    /// The arm's value.
    pub env: Option<Span>,
    /// Overhead as a ratio; `null` if there are too few blocks.
    pub ratio: Option<Span>,
    /// The arm minus the baseline, in `unit`.
    pub difference: Option<Span>,
    /// The 90 % interval of the ratio, for equivalence.
    pub ratio90: Option<Span>,
    /// The ratio of the in-trial best values ("uncontended cost").
    pub floor: Option<Span>,
    /// Exact signed-rank p, two-sided.
    pub p: Option<f64>,
    /// Benjamini–Hochberg q over the report's family.
    pub q: Option<f64>,
    /// The margin used for the verdict.
    pub margin: f64,
    /// The verdict.
    pub verdict: Verdict,
    /// Minimum detectable effect as a fraction; given if the verdict is `inconclusive`.
    pub mde: Option<f64>,
    /// Number of further blocks needed for the requested precision, if it was missed.
    pub further_blocks: Option<u32>,
    /// Diagnostics that were raised, by id: `drifting-effect`, `fragile`, `autocorrelated`, …
    pub flags: Vec<Flag>,
    /// The blocks used, in order: the data behind every number above. Omitted if there are none, more than 5 000, or
    /// if an earlier version wrote the dossier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<DossierBlock>,
}

/// One block's values for a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DossierBlock {
    /// Its number, from 0.
    pub block: u32,
    /// The arm's position in the order of this block, from 0.
    pub position: u32,
    /// The launch of the arms, from 0.
    pub launch: u32,
    /// The baseline's value, in the cell's unit.
    pub base: f64,
    /// The arm's value, in the cell's unit.
    pub env: f64,
    /// The value of the baseline's first copy alone, if `base` is the middle of two copies, which scatters less.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_alone: Option<f64>,
    /// The arm's measured value, if `env` is the baseline's value times the ratio of interleaved arms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env_alone: Option<f64>,
    /// Distance between the two differences of the block, if the arm is compared with both copies of the baseline:
    /// ln(arm/first) − ln(arm/second), of values. Their middle is ln(env/base).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apart: Option<f64>,
}

impl DossierBlock {
    /// Returns the reading of a single copy on either side, baseline first; for uses in which the spread of values
    /// matters.
    pub fn alone(&self) -> [f64; 2] {
        [
            self.base_alone.unwrap_or(self.base),
            self.env_alone.unwrap_or(self.env),
        ]
    }

    /// Returns the arm's cost over the baseline's; `None` if a value is not above 0.
    pub fn ratio(&self, better: Better) -> Option<f64> {
        if !(self.base > 0.0 && self.env > 0.0) {
            return None;
        }
        Some(match better {
            Better::Lower => self.env / self.base,
            Better::Higher => self.base / self.env,
        })
    }
}

/// One metric of one workload with an increasing number of concurrent instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Concurrency {
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// Where the instances ran: `processes` of one environment, or each in one of several `environments`.
    pub spread: Spread,
    /// The metric.
    pub metric: String,
    /// Unit of `value` and `worst`.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Unit of `throughput`; `null` if the metric is neither a time nor a rate.
    pub throughput_unit: Option<String>,
    /// The arms, baseline first, including A′.
    pub arms: Vec<ConcurrencyArm>,
}

/// The series of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyArm {
    /// The arm.
    pub arm: String,
    /// Whether it is the baseline.
    pub baseline: bool,
    /// One point per number of instances, in ascending order.
    pub points: Vec<ConcurrencyPoint>,
    /// Whether the overhead depends on the number of instances; `null` for the baseline and if there is only one
    /// number.
    pub doubling: Option<Doubling>,
    /// A scaling law, as a summary; `null` below six different numbers.
    pub scaling: Option<Scaling>,
}

/// One arm with one number of instances. Each value is the pseudo-median over blocks, with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyPoint {
    /// Number of concurrent instances.
    pub instances: u32,
    /// Number of blocks used.
    pub n_blocks: u32,
    /// Mean over the instances: arithmetic for times, harmonic for rates.
    pub value: Option<Span>,
    /// The worst instance.
    pub worst: Option<Span>,
    /// Each instance, in numerical order; empty for a single one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Span>,
    /// Cost of an instance relative to a single one in the same arm and block; `null` without a series of 1.
    pub stretch: Option<Span>,
    /// Jain's index of the instances' rates: 1 if all are equal, 1/N if one has everything.
    pub fairness: Option<Span>,
    /// Sum of the instances' rates, in `throughput_unit`.
    pub throughput: Option<Span>,
    /// Throughput relative to that of the same number of instances if each ran alone.
    pub efficiency: Option<Span>,
    /// Time from the first start to the last end, nanoseconds.
    pub makespan_ns: Option<Span>,
    /// Makespan relative to that of a single instance in the same arm and block.
    pub makespan_stretch: Option<Span>,
    /// Time from the first start to the last start, nanoseconds; `null` if the instances share no clock.
    pub skew_ns: Option<Span>,
    /// Share of the makespan in which all instances were working; `null` if they share no clock.
    pub overlap: Option<Span>,
    /// Remarks on these trials.
    pub flags: Vec<Flag>,
}

/// Effect of each doubling of the number of instances on an arm's overhead: the slope of ln(ratio) on log2 of the
/// number, by block (Theil–Sen), over blocks (Hodges–Lehmann), as a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubling {
    /// Blocks that have every number of instances on both sides.
    pub n_blocks: u32,
    /// The factor: above 1, the overhead grows with the number of instances.
    pub ratio: Option<Span>,
    /// Its 90 % interval, for equivalence.
    pub ratio90: Option<Span>,
    /// Exact signed-rank p, two-sided.
    pub p: Option<f64>,
    /// Benjamini–Hochberg q over the doublings of the arm.
    pub q: Option<f64>,
    /// The margin used for the verdict.
    pub margin: f64,
    /// The verdict, as for a cell.
    pub verdict: Verdict,
}

/// X(N) = γN/(1 + α(N − 1) + βN(N − 1)) (Gunther 2007), or a simpler case of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The law with the smallest corrected Akaike criterion.
    pub law: ScalingLaw,
    /// Throughput of one instance, in `throughput_unit`.
    pub gamma: f64,
    /// The serialized share of the work.
    pub alpha: f64,
    /// Its bootstrap interval over blocks; `null` below ten blocks.
    pub alpha_interval: Option<Span>,
    /// The cost of agreement between every two instances.
    pub beta: f64,
    /// Its bootstrap interval over blocks; `null` below ten blocks.
    pub beta_interval: Option<Span>,
    /// Number of instances beyond which throughput falls, if it is within 1.5 times of what was measured.
    pub peak: Option<f64>,
}

/// A diagnostic's remark on a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// Id of the diagnostic.
    pub id: String,
    /// Its observation, with numbers.
    pub detail: String,
}

/// A cell or arm that could not be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierFailure {
    /// The arm.
    pub arm: String,
    /// The workload; `null` if the whole arm is affected.
    pub workload: Option<String>,
    /// Kind of absence.
    pub kind: Absence,
    /// The reason.
    pub reason: String,
    /// Number of trials affected.
    pub trials: u32,
    /// Suggestion for the reader.
    pub hint: Option<String>,
}

/// A finding of the diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierFinding {
    /// The cause.
    pub cause: String,
    /// The result of testing it.
    pub status: Status,
    /// Indices into `cells`.
    pub cells: Vec<u32>,
    /// The claim.
    pub claim: String,
    /// The evidence.
    pub evidence: Vec<String>,
    /// The measured effect of switching the cause off.
    pub effect: Option<Span>,
    /// Advice to the user.
    pub advice: String,
    /// What following it costs in security or money.
    pub price: String,
    /// Share of the overhead that goes away when the cause is switched off, or appears when it is switched on
    /// outside; 1 is all of it.
    pub share: Option<Span>,
    /// The arm that tested it.
    pub arm: Option<String>,
    /// The test in words, or why there was none.
    pub tried: Option<String>,
}

/// One step from the bare process to the whole environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierRung {
    /// The mechanism that it adds, in words.
    pub title: String,
    /// The arm that has everything up to this step.
    pub arm: String,
    /// Its addition to the command's value, in the ladder's unit; `null` if it could not be measured.
    pub adds: Option<Span>,
    /// Why it could not be measured, or what cannot be distinguished.
    pub note: Option<String>,
}

/// Contribution of each mechanism to the command's value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLadder {
    /// The arm at its top.
    pub arm: String,
    /// The metric.
    pub metric: String,
    /// Unit of all values here.
    pub unit: String,
    /// Value of the bare process.
    pub base: Option<Span>,
    /// Value of the whole environment.
    pub env: Option<Span>,
    /// The whole environment minus the bare process, paired by block.
    pub total: Option<Span>,
    /// The steps, bottom first.
    pub rungs: Vec<DossierRung>,
    /// The sum of the steps' estimates.
    pub sum: Option<f64>,
    /// The sum with its bootstrap interval over blocks; needs ten blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum_span: Option<Span>,
    /// Whether the sum is within the interval of the total.
    pub agrees: Option<bool>,
    /// Mechanisms that no step separates, and why, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
}

/// A counter of the command on both sides, as the median over trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCounter {
    /// Its name.
    pub name: String,
    /// On the host.
    pub base: Option<f64>,
    /// In the environment.
    pub env: Option<f64>,
}

/// The question asked with `tare why`, and its answer in one sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierWhy {
    /// The command.
    pub command: Vec<String>,
    /// The arm in question.
    pub arm: String,
    /// The requested metric.
    pub metric: String,
    /// How the command was carried into the arm, one line each.
    pub carried: Vec<String>,
    /// The answer as a word.
    pub outcome: WhyOutcome,
    /// The headline, one sentence.
    pub answer: String,
    /// How far the reason is known; `None` if there is nothing to explain.
    pub reason: Option<WhyReason>,
    /// The lines below the headline, in order.
    #[serde(default)]
    pub lines: Vec<AnswerLine>,
    /// The part of the slowdown or speed-up that confirmed causes explain.
    pub explained: Option<Span>,
    /// If no slowdown was found: the smallest one that four of five runs would have detected, as a fraction.
    pub could_see: Option<f64>,
    /// Time to create and remove the environment, nanoseconds; not included in any other number here.
    pub start_up_ns: Option<Span>,
    /// Result of applying the fix once: whether the overhead is gone. Absent if not requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied: Option<DossierApplied>,
    /// Counters per run of the command.
    pub counters: Vec<DossierCounter>,
}

/// A line below the headline of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLine {
    /// Its subject.
    pub label: AnswerLabel,
    /// The text.
    pub text: String,
}

/// A change applied as the user would apply it, and its result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierApplied {
    /// The change, in words.
    pub change: String,
    /// What the change gives up.
    pub price: String,
    /// The changed arm.
    pub arm: String,
    /// The command's cost there, as a multiple of the baseline.
    pub ratio: Option<Span>,
    /// Share of the overhead that is left.
    pub left: Option<Span>,
    /// Whether the overhead is gone; `None` if undecided.
    pub is_gone: Option<bool>,
}

/// A deviation of the run from the plan fixed before its first trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierDeviation {
    /// Kind of deviation.
    pub kind: Deviation,
    /// Where it began, and what it means for a reader.
    pub detail: String,
}

/// An item of the reporting checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckItem {
    /// Its name.
    pub id: String,
    /// Its result.
    pub result: CheckResult,
    /// Details of the result.
    pub detail: String,
}

/// Cost of the run itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunCost {
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Time in which values were taken, seconds, without starting, preparing, calibrating and storing. Absent if a
    /// trial does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timed_s: Option<f64>,
    /// Number of trials executed.
    pub trials: u32,
}

/// The whole dossier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dossier {
    /// [`DOSSIER_VERSION`].
    pub dossier: u32,
    /// Version of Tare.
    pub tare: String,
    /// Name of the run.
    pub run: String,
    /// Start time, RFC 3339, UTC.
    pub started: String,
    /// Whether it ran to the end of its plan or stopping rule; `false` after an interruption.
    pub complete: bool,
    /// Why it stopped.
    pub stopped_by: StoppedBy,
    /// The study.
    pub study: DossierStudy,
    /// The arms, baseline first.
    pub arms: Vec<DossierArm>,
    /// The cells of every arm except the baseline and A′.
    pub cells: Vec<DossierCell>,
    /// The cells of the A′ arm.
    pub aa: Vec<DossierCell>,
    /// Comparisons of every two arms other than the baseline, from the same blocks: `arm` against `baseline`, which
    /// is here the one that the study names first. Empty unless requested. Without blocks: their values are in
    /// `cells`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<DossierCell>,
    /// Effects of concurrent instances on each other, for the workloads with a series of them.
    #[serde(default)]
    pub concurrency: Vec<Concurrency>,
    /// Progress of trials from beginning to end, for the workloads that report it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub courses: Vec<DossierCourse>,
    /// Findings.
    pub findings: Vec<DossierFinding>,
    /// The question and answer of `tare why`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<DossierWhy>,
    /// Contribution of each mechanism.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ladder: Option<DossierLadder>,
    /// Published claims with their verdicts.
    pub claims: Vec<DossierClaim>,
    /// The publication that the study repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publication: Option<DossierPublication>,
    /// What could not be measured, and why.
    pub failures: Vec<DossierFailure>,
    /// Differences in what the arms were given: cpus, limits, mitigations, clock.
    #[serde(default)]
    pub parity: Vec<CheckItem>,
    /// Workloads measured by whole trials although arms were interleaved elsewhere, with the reason, one line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_trials: Vec<String>,
    /// Deviations from the plan, such as a resumed run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<DossierDeviation>,
    /// The reporting checklist.
    pub checklist: Vec<CheckItem>,
    /// Cost of the run.
    pub cost: RunCost,
}

impl Dossier {
    /// Returns the cells of an arm.
    pub fn cells_of(&self, arm: &str) -> Vec<&DossierCell> {
        self.cells.iter().filter(|cell| cell.arm == arm).collect()
    }
}
