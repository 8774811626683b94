//! The dossier: everything that a run found out, as reports draw it and `--json` prints it.
//!
//! Version 1. Fields may be added, never renamed. A ratio above 1 always means that the arm costs more,
//! whatever the direction of the metric. Absent numbers are `null` with a reason beside them, never 0.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::facts::Facts;
use crate::params::Params;

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
    /// Path of a two-ended workload.
    pub path: Option<String>,
    /// The metric.
    pub metric: String,
    /// Revision of the probe's kernel.
    pub revision: u32,
    /// Unit of `base`, `env` and `difference`.
    pub unit: String,
    /// `lower` or `higher`.
    pub better: String,
    /// Which in-trial summary this is: `typical` (median) or `floor` (best).
    pub summary: String,
    /// Blocks that entered.
    pub n_blocks: u32,
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
    /// `material-cost`, `cost`, `negligible-cost`, `equivalent`, `inconclusive`, `negligible-gain`, `gain`, `material-gain`.
    pub verdict: String,
    /// Minimum detectable effect as a fraction; given where the verdict is `inconclusive`.
    pub mde: Option<f64>,
    /// Further blocks that the wanted precision would need, where it was missed.
    #[serde(default)]
    pub further_blocks: Option<u32>,
    /// Diagnostics that fell out, by id: `drifting-effect`, `fragile`, `autocorrelated`, …
    pub flags: Vec<Flag>,
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
    /// `unavailable` or `failed`.
    pub kind: String,
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
    /// `confirmed`, `supported`, `refuted` or `untested`.
    pub status: String,
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
    /// Whether the sum lies within the interval of the total.
    pub agrees: Option<bool>,
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
    /// `cost`, `start-up` (only creating the environment costs), `none` or `undecided`.
    pub outcome: String,
    /// The answer.
    pub answer: String,
    /// The part of the cost that confirmed causes explain.
    pub explained: Option<Span>,
    /// The smallest cost that would have been seen, as a fraction.
    pub could_see: Option<f64>,
    /// What creating and removing the environment takes, nanoseconds, which is in no other number here.
    pub start_up_ns: Option<Span>,
    /// Counters per run of the command.
    pub counters: Vec<DossierCounter>,
}

/// A published claim with its verdict here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DossierClaim {
    /// The claim's name.
    pub id: String,
    /// What was published.
    pub published: String,
    /// `holds`, `fails`, `undecided` or `not-testable`.
    pub verdict: String,
    /// Why.
    pub because: String,
}

/// One line of the reporting checklist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckItem {
    /// Its name.
    pub id: String,
    /// `pass`, `fail`, `differs` (not equal, and part of what is compared) or `n.a.`.
    pub result: String,
    /// With what.
    pub detail: String,
}

/// What the run itself cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RunCost {
    /// Wall time, seconds.
    pub wall_s: f64,
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
    /// Why it stopped: `precision`, `blocks`, `budget`, `interrupted`, `failed`.
    pub stopped_by: String,
    /// The study.
    pub study: DossierStudy,
    /// The arms, baseline first.
    pub arms: Vec<DossierArm>,
    /// The cells of every arm but the baseline and A′.
    pub cells: Vec<DossierCell>,
    /// The cells of the A′ arm.
    pub aa: Vec<DossierCell>,
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
    /// What could not be measured, and why.
    pub failures: Vec<DossierFailure>,
    /// How the arms differ in what they were given: cpus, limits, mitigations, clock.
    #[serde(default)]
    pub parity: Vec<CheckItem>,
    /// The reporting checklist.
    pub checklist: Vec<CheckItem>,
    /// Cost.
    pub cost: RunCost,
}
