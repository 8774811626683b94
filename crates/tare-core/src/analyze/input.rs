//! The input of the analysis: a run as the store holds it.
//!
//! Plain data, so that the analysis depends neither on the store's tables nor on the engine: a dossier can be made
//! from the trials of this run, of an import or of a generator in a test.

use std::collections::BTreeMap;

use tare_model::dossier::DossierDeviation;
use tare_model::{ArmId, ArmSpec, Facts, Outcome, RunId, StoppedBy, Study, Trial};

use super::counters::CounterRow;
use crate::parity::Side;

/// One arm with its availability and facts.
#[derive(Debug, Clone, PartialEq)]
pub struct ArmData {
    /// The arm as the study names it.
    pub spec: ArmSpec,
    /// Whether it could be measured.
    pub available: bool,
    /// Why not, if it could not.
    pub reason: Option<String>,
    /// How to fix that, if known.
    pub fix: Option<String>,
    /// Facts about its environment.
    pub facts: Facts,
    /// Hash of the agent that ran inside.
    pub agent_sha256: Option<String>,
}

impl ArmData {
    /// Returns the arm as the comparison of the arms' resources takes it.
    pub(crate) fn side(&self) -> Side<'_> {
        Side {
            id: self.spec.id.as_str(),
            settings: &self.spec.settings,
            facts: &self.facts,
            agent_sha256: self.agent_sha256.as_deref(),
        }
    }
}

/// One trial as it was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialData {
    /// Its place in the plan.
    pub trial: Trial,
    /// How it ended.
    pub outcome: Outcome,
    /// From the request to the last reply, by the host's monotonic clock, nanoseconds; 0 if unknown.
    pub host_elapsed_ns: u64,
    /// The arm's usage as counted by the host's kernel, by name.
    pub charged: BTreeMap<String, f64>,
}

/// A borrowed trial, as it was recorded.
#[derive(Debug, Clone, Copy)]
pub struct TrialRef<'a> {
    /// Its place in the plan.
    pub trial: &'a Trial,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// From the request to the last reply, by the host's monotonic clock, nanoseconds; 0 if unknown.
    pub host_elapsed_ns: u64,
    /// The arm's usage as counted by the host's kernel, by name.
    pub charged: &'a BTreeMap<String, f64>,
}

impl<'a> From<&'a TrialData> for TrialRef<'a> {
    fn from(data: &'a TrialData) -> Self {
        Self {
            trial: &data.trial,
            outcome: &data.outcome,
            host_elapsed_ns: data.host_elapsed_ns,
            charged: &data.charged,
        }
    }
}

impl TrialRef<'_> {
    /// Returns those of its counters that causes read.
    pub(super) fn charged(&self) -> CounterRow {
        let charged = self.charged.iter();
        CounterRow::from_numbers(charged.map(|(name, value)| (name.as_str(), *value)))
    }
}

/// A run without its trials.
#[derive(Debug, Clone, PartialEq)]
pub struct RunHead {
    /// The study that was run.
    pub study: Study,
    /// The run's identifier.
    pub run: RunId,
    /// When it began, nanoseconds since 1970, UTC.
    pub started_unix_ns: u64,
    /// Hash of the plan, fixed before the first trial.
    pub plan_sha256: String,
    /// The arms, baseline first.
    pub arms: Vec<ArmData>,
    /// Why it stopped: `precision`, `blocks`, `budget`, `interrupted`, `failed`.
    pub stopped_by: StoppedBy,
    /// Whether it ran to the end of its plan or rule.
    pub complete: bool,
    /// Wall time, seconds.
    pub wall_s: f64,
    /// Why something was measured by whole trials, one line each.
    pub whole_trials: Vec<String>,
    /// Deviations from the plan.
    pub deviations: Vec<DossierDeviation>,
}

impl RunHead {
    /// Returns the facts about an arm.
    pub(crate) fn facts(&self, arm: &ArmId) -> Option<&Facts> {
        let mut arms = self.arms.iter();
        Some(&arms.find(|data| data.spec.id == *arm)?.facts)
    }
}

/// A run with its trials, in the order in which they were executed.
#[derive(Debug, Clone, PartialEq)]
pub struct RunData {
    /// Everything except the trials.
    pub head: RunHead,
    /// The trials.
    pub trials: Vec<TrialData>,
}
