//! The dossier: everything that a run found out, as reports draw it and `--json` prints it.
//!
//! Version 1. Fields may be added, never renamed. A ratio above 1 always means that the arm costs more,
//! whatever the direction of the metric. Absent numbers are `null` with a reason beside them, never 0.

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

pub use published::{
    DossierClaim, DossierLayout, DossierLayoutRow, DossierLayoutValue, DossierMistake, DossierNote,
    DossierOwnNumbers, DossierPublication, DossierPublished,
};

/// The dossier's version.
pub const DOSSIER_VERSION: u32 = 1;

/// A point with its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Estimate.
    pub point: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Confidence level; absent where it is the run's 0.95.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<f64>,
}

impl Span {
    /// With the run's own level.
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
    /// One line for people.
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
    /// Why not.
    pub reason: Option<String>,
    /// The command or change that would fix it.
    #[serde(default)]
    pub fix: Option<String>,
    /// Settings as given.
    pub settings: Params,
    /// What was found out about it.
    pub facts: Facts,
    /// Hash of the agent that ran inside.
    pub agent_sha256: Option<String>,
}

/// One metric of one arm against the baseline.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCell {
    /// The arm.
    pub arm: String,
    /// What it is compared with.
    pub baseline: String,
    /// The workload.
    pub workload: String,
    /// Its parameters.
    pub params: Params,
    /// Instances at once.
    pub instances: u32,
    /// Where the instances ran, `processes` or `environments`; absent where one ran as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// Path of a two-ended workload.
    pub path: Option<Path>,
    /// The metric.
    pub metric: String,
    /// Revision of the probe's kernel.
    pub revision: u32,
    /// Unit of `base`, `env` and `difference`.
    pub unit: String,
    /// Which direction is the better one.
    pub better: Better,
    /// Which in-trial summary this is.
    pub summary: Summary,
    /// Blocks that entered.
    pub n_blocks: u32,
    /// Whether the arms took turns slice by slice in these blocks; they ran whole trials otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_turn: bool,
    /// The baseline's value (pseudo-median over blocks).
    pub base: Option<Span>,
    /// The arm's value.
    pub env: Option<Span>,
    /// Cost as a ratio; `null` where there are too few blocks.
    pub ratio: Option<Span>,
    /// The arm minus the baseline, in `unit`.
    pub difference: Option<Span>,
    /// The 90 % interval of the ratio, for equivalence.
    #[serde(default)]
    pub ratio90: Option<Span>,
    /// The ratio of the in-trial best values ("uncontended cost").
    #[serde(default)]
    pub floor: Option<Span>,
    /// Exact signed-rank p, two-sided.
    pub p: Option<f64>,
    /// Benjamini–Hochberg q over the report's family.
    pub q: Option<f64>,
    /// The margin that the verdict used.
    pub margin: f64,
    /// What it shows.
    pub verdict: Verdict,
    /// Minimum detectable effect as a fraction; given where the verdict is `inconclusive`.
    pub mde: Option<f64>,
    /// Further blocks that the wanted precision would need, where it was missed.
    #[serde(default)]
    pub further_blocks: Option<u32>,
    /// Diagnostics that fell out, by id: `drifting-effect`, `fragile`, `autocorrelated`, …
    pub flags: Vec<Flag>,
    /// The blocks that entered, in order: what every number above is made of. Left out where there are none, more than
    /// 5 000, or an earlier version made the dossier.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<DossierBlock>,
}

/// What one block says of one cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DossierBlock {
    /// Its number, from 0.
    pub block: u32,
    /// The arm's place in the order of this block, from 0.
    pub position: u32,
    /// The launch of the arms that it belongs to, from 0.
    pub launch: u32,
    /// The baseline's value, in the cell's unit.
    pub base: f64,
    /// The arm's value, likewise.
    pub env: f64,
    /// What the baseline's first copy left by itself, where `base` stands for two, whose middle scatters less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_alone: Option<f64>,
    /// What the arm left by itself, where `env` is the baseline's value times the ratio of arms that took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_alone: Option<f64>,
    /// By how much the two differences of the block lie apart, where the arm is compared with both copies of the
    /// baseline: ln(arm/first) − ln(arm/second), of values. Their middle is ln(env/base).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<f64>,
}

impl DossierBlock {
    /// One copy's reading of either side, baseline first, for where it matters how values are spread.
    pub fn alone(&self) -> [f64; 2] {
        [
            self.base_alone.unwrap_or(self.base),
            self.env_alone.unwrap_or(self.env),
        ]
    }

    /// Cost of the arm over cost of the baseline; `None` where a value is not above 0.
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

/// One metric of one workload as more and more instances of it run at once.
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
    /// Which direction is the better one.
    pub better: Better,
    /// Unit of `throughput`; `null` where the metric is neither a time nor a rate.
    pub throughput_unit: Option<String>,
    /// The arms, baseline first, the A′ arm among them.
    pub arms: Vec<ConcurrencyArm>,
}

/// The series of one arm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyArm {
    /// The arm.
    pub arm: String,
    /// Whether it is the baseline.
    pub baseline: bool,
    /// One point for each number of instances, the least first.
    pub points: Vec<ConcurrencyPoint>,
    /// Whether the cost against the baseline depends on the number of instances; `null` for the baseline and
    /// where there is one number only.
    pub doubling: Option<Doubling>,
    /// A law of scaling, as a summary; `null` below six different numbers.
    pub scaling: Option<Scaling>,
}

/// One number of instances in one arm. Each is the pseudo-median over blocks, with its interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConcurrencyPoint {
    /// Instances at once.
    pub instances: u32,
    /// Blocks that entered.
    pub n_blocks: u32,
    /// The mean over the instances: of times arithmetic, of rates harmonic.
    pub value: Option<Span>,
    /// The instance that fared worst.
    pub worst: Option<Span>,
    /// Each instance, in the order of their numbers; empty for one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub each: Vec<Span>,
    /// Cost of an instance against that of one alone in the same arm and block; `null` without a series of 1.
    pub stretch: Option<Span>,
    /// Jain's index of the instances' rates: 1 when all are equal, 1/N when one has everything.
    pub fairness: Option<Span>,
    /// Sum of the instances' rates, in `throughput_unit`.
    pub throughput: Option<Span>,
    /// Throughput against that of as many instances as if each were alone.
    pub efficiency: Option<Span>,
    /// From the first start to the last end, nanoseconds.
    pub makespan_ns: Option<Span>,
    /// The same against one instance alone in the same arm and block.
    pub makespan_stretch: Option<Span>,
    /// From the first start to the last start, nanoseconds; `null` where the instances share no clock.
    pub skew_ns: Option<Span>,
    /// Share of the makespan in which all instances were at work; `null` where they share no clock.
    pub overlap: Option<Span>,
    /// What is to be known about these trials.
    pub flags: Vec<Flag>,
}

/// What each doubling of the number of instances does to an arm's cost against the baseline: the slope of
/// ln(ratio) on log2 of the number, by block (Theil–Sen), over blocks (Hodges–Lehmann), as a factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Doubling {
    /// Blocks that have every number of instances on both sides.
    pub n_blocks: u32,
    /// The factor: above 1 the environment costs more, the more instances there are.
    pub ratio: Option<Span>,
    /// Its 90 % interval, for equivalence.
    pub ratio90: Option<Span>,
    /// Exact signed-rank p, two-sided.
    pub p: Option<f64>,
    /// Benjamini–Hochberg q over the doublings of the arm.
    pub q: Option<f64>,
    /// The margin that the verdict used.
    pub margin: f64,
    /// As that of a cell.
    pub verdict: Verdict,
}

/// X(N) = γN/(1 + α(N − 1) + βN(N − 1)) (Gunther 2007), or a simpler case of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// Whichever has the smallest corrected Akaike criterion.
    pub law: ScalingLaw,
    /// Throughput of one instance, in `throughput_unit`.
    pub gamma: f64,
    /// The share that is done one at a time.
    pub alpha: f64,
    /// Its interval by bootstrap over blocks; `null` below ten blocks.
    pub alpha_interval: Option<Span>,
    /// The cost of agreeing with every other.
    pub beta: f64,
    /// Its interval by bootstrap over blocks; `null` below ten blocks.
    pub beta_interval: Option<Span>,
    /// The number of instances beyond which throughput falls, if it is within 1.5 times of what was measured.
    pub peak: Option<f64>,
}

/// One remark of a diagnostic on a cell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flag {
    /// The diagnostic.
    pub id: String,
    /// What it saw, with its numbers.
    pub detail: String,
}

/// A cell or arm that could not be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierFailure {
    /// The arm.
    pub arm: String,
    /// The workload; `null` where the whole arm is meant.
    pub workload: Option<String>,
    /// How it is missing.
    pub kind: Absence,
    /// Why.
    pub reason: String,
    /// How many trials it befell.
    pub trials: u32,
    /// What the reader can do.
    #[serde(default)]
    pub hint: Option<String>,
}

/// A finding of the diagnosis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierFinding {
    /// The cause.
    pub cause: String,
    /// What was proved of it.
    pub status: Status,
    /// Indices into `cells`.
    pub cells: Vec<u32>,
    /// The claim.
    pub claim: String,
    /// The evidence.
    pub evidence: Vec<String>,
    /// The measured effect of switching the cause off.
    pub effect: Option<Span>,
    /// What to do.
    pub advice: String,
    /// What that costs in security or money.
    pub price: String,
    /// Which part of the whole cost goes when the cause is switched off, or comes when it is switched on outside;
    /// 1 is all of it.
    #[serde(default)]
    pub share: Option<Span>,
    /// The arm in which that was tried.
    #[serde(default)]
    pub arm: Option<String>,
    /// What was tried, or why nothing was.
    #[serde(default)]
    pub tried: Option<String>,
}

/// One step from the bare process to the whole environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierRung {
    /// What it adds, in words.
    pub title: String,
    /// The arm that has everything up to this step.
    pub arm: String,
    /// What it adds to the command, in the ladder's unit; `null` where it could not be measured.
    pub adds: Option<Span>,
    /// Why not, or what cannot be told apart.
    pub note: Option<String>,
}

/// What each mechanism adds to the command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierLadder {
    /// The arm at its top.
    pub arm: String,
    /// The metric.
    pub metric: String,
    /// Unit of everything here.
    pub unit: String,
    /// The bare process.
    pub base: Option<Span>,
    /// The whole environment.
    pub env: Option<Span>,
    /// The whole environment minus the bare process, paired by block.
    pub total: Option<Span>,
    /// The steps, from the bottom.
    pub rungs: Vec<DossierRung>,
    /// The sum of the steps' estimates.
    pub sum: Option<f64>,
    /// The sum with its interval, from drawing blocks again; from ten blocks on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum_span: Option<Span>,
    /// Whether the sum lies within the interval of the total.
    pub agrees: Option<bool>,
    /// What no step takes apart, and why, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub together: Vec<String>,
}

/// A counter of the command on both sides, the median over trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierCounter {
    /// Its name.
    pub name: String,
    /// On the host.
    pub base: Option<f64>,
    /// In the environment.
    pub env: Option<f64>,
}

/// The question that `tare why` was asked, and its answer in a sentence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierWhy {
    /// The command.
    pub command: Vec<String>,
    /// The arm that was asked about.
    pub arm: String,
    /// The metric that was asked for.
    pub metric: String,
    /// How the command was carried there, a line each.
    pub carried: Vec<String>,
    /// The answer in a word.
    pub outcome: WhyOutcome,
    /// The headline, a sentence.
    pub answer: String,
    /// How far the reason is known; `None` where there is nothing to explain.
    #[serde(default)]
    pub reason: Option<WhyReason>,
    /// What stands below the headline, in order.
    #[serde(default)]
    pub lines: Vec<AnswerLine>,
    /// The part of the slowdown or speed-up that confirmed causes explain.
    pub explained: Option<Span>,
    /// Where no slowdown was found: the smallest one that four of five runs would have detected, as a fraction.
    pub could_see: Option<f64>,
    /// What creating and removing the environment takes, nanoseconds, which is in no other number here.
    pub start_up_ns: Option<Span>,
    /// What was found, applied once: whether the cost is gone. Absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<DossierApplied>,
    /// Counters per run of the command.
    pub counters: Vec<DossierCounter>,
}

/// A line below the headline of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerLine {
    /// What it is about.
    pub label: AnswerLabel,
    /// The text.
    pub text: String,
}

/// A change that was made as its user would make it, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierApplied {
    /// What was changed, in words.
    pub change: String,
    /// What that gives up.
    pub price: String,
    /// The arm that was changed.
    pub arm: String,
    /// What the command costs there, as a multiple of the baseline.
    pub ratio: Option<Span>,
    /// The share of the cost that is left.
    pub left: Option<Span>,
    /// Whether the cost is gone; `None` where that was not decided.
    pub is_gone: Option<bool>,
}

/// In what a run was not carried out as it was planned before its first trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DossierDeviation {
    /// What kind of deviation.
    pub kind: Deviation,
    /// Where it began, and what it means for a reader.
    pub detail: String,
}

/// One line of the reporting checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckItem {
    /// Its name.
    pub id: String,
    /// How it came out.
    pub result: CheckResult,
    /// With what.
    pub detail: String,
}

/// What the run itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunCost {
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Time in which values were taken, seconds: without starting, preparing, calibrating and storing. Absent where a
    /// trial does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timed_s: Option<f64>,
    /// Trials executed.
    pub trials: u32,
}

/// The whole dossier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dossier {
    /// [`DOSSIER_VERSION`].
    pub dossier: u32,
    /// Version of Tare.
    pub tare: String,
    /// The run.
    pub run: String,
    /// When it began, RFC 3339, UTC.
    pub started: String,
    /// Whether it ran to the end of its plan or rule; `false` after an interruption.
    pub complete: bool,
    /// Why it stopped.
    pub stopped_by: StoppedBy,
    /// The study.
    pub study: DossierStudy,
    /// The arms, baseline first.
    pub arms: Vec<DossierArm>,
    /// The cells of every arm but the baseline and A′.
    pub cells: Vec<DossierCell>,
    /// The cells of the A′ arm.
    pub aa: Vec<DossierCell>,
    /// Each two arms beside the baseline with each other, from the same blocks: `arm` against `baseline`, which is here
    /// the one that the study names first. Empty unless it was asked for. Without blocks: their values stand in `cells`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<DossierCell>,
    /// What several instances at once do to each other, for the workloads with a series of them.
    #[serde(default)]
    pub concurrency: Vec<Concurrency>,
    /// How trials went from beginning to end, for the workloads that tell it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub courses: Vec<DossierCourse>,
    /// Findings.
    pub findings: Vec<DossierFinding>,
    /// The question and answer of `tare why`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<DossierWhy>,
    /// What each mechanism adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ladder: Option<DossierLadder>,
    /// Claims.
    pub claims: Vec<DossierClaim>,
    /// The publication that the study repeats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publication: Option<DossierPublication>,
    /// What could not be measured, and why.
    pub failures: Vec<DossierFailure>,
    /// How the arms differ in what they were given: cpus, limits, mitigations, clock.
    #[serde(default)]
    pub parity: Vec<CheckItem>,
    /// What was measured by whole trials although arms took turns elsewhere, and why, a line each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub whole_trials: Vec<String>,
    /// In what the run was not carried out as it was planned: a run that was gone on with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deviations: Vec<DossierDeviation>,
    /// The reporting checklist.
    pub checklist: Vec<CheckItem>,
    /// Cost.
    pub cost: RunCost,
}

impl Dossier {
    /// The cells of an arm.
    pub fn cells_of(&self, arm: &str) -> Vec<&DossierCell> {
        self.cells.iter().filter(|cell| cell.arm == arm).collect()
    }
}
