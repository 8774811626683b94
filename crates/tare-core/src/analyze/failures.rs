//! Lists what could not be measured, counted by reason, with a hint for the reader.
//!
//! Many trials fail for one reason, so each reason is listed once, with their number. Unavailable arms come first,
//! each once, however many trials were planned in them.
//! Limits: does not list trials that were planned and never recorded; the engine's `stopped_by` covers those.

use std::collections::BTreeMap;

use tare_model::dossier::DossierFailure;
use tare_model::{Absence, ArmSpec, Failure, Reason};

use super::input::{ArmData, RunHead};
use super::kept_trial::{Group, GroupKey};
use crate::parity;

/// Most different reasons listed per kind, arm and workload; further ones are lumped together.
const REASONS_TOLD: usize = 5;

/// One trial that left nothing usable.
#[derive(Debug, Clone)]
pub(crate) struct Counted {
    pub(crate) arm: String,
    pub(crate) workload: String,
    pub(crate) kind: Absence,
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
}

type FailureKey = (String, String, Absence);

/// How many trials failed in one place, by reason.
#[derive(Debug, Default)]
struct Reasons {
    /// Each with its number of trials and a hint.
    listed: BTreeMap<String, (u32, Option<String>)>,
    further: u32,
}

impl Reasons {
    fn total(&self) -> u32 {
        let listed = self.listed.values().map(|(count, _)| count);
        listed.sum::<u32>() + self.further
    }
}

/// Failures by place and reason.
#[derive(Debug, Default)]
pub(crate) struct Tally(BTreeMap<FailureKey, Reasons>);

impl Tally {
    /// Counts one trial.
    pub(crate) fn count(&mut self, trial: Counted) {
        self.count_many(trial, 1);
    }

    /// Counts `trials` that are alike in everything.
    pub(crate) fn count_many(&mut self, trial: Counted, trials: u32) {
        let place = (trial.arm, trial.workload, trial.kind);
        let Reasons { listed, further } = self.0.entry(place).or_default();
        if let Some((count, _)) = listed.get_mut(&trial.reason) {
            *count += trials;
        } else if listed.len() < REASONS_TOLD {
            listed.insert(trial.reason, (trials, trial.hint));
        } else {
            *further += trials;
        }
    }

    /// Returns the number of trials for which this arm was not available.
    fn unavailable_in(&self, arm: &str) -> u32 {
        let of_arm = self
            .0
            .iter()
            .filter(|((of, _, kind), _)| of == arm && *kind == Absence::Unavailable);
        of_arm.map(|(_, reasons)| reasons.total()).sum()
    }

    /// Returns the number of all counted trials.
    pub(crate) fn total(&self) -> u32 {
        self.0.values().map(Reasons::total).sum()
    }
}

/// Returns the dossier's list.
pub(crate) fn listed(
    head: &RunHead,
    tally: &Tally,
    groups: &BTreeMap<GroupKey, Group>,
) -> Vec<DossierFailure> {
    let mut list = Vec::new();
    let absent: Vec<&ArmData> = head.arms.iter().filter(|arm| !arm.available).collect();
    for arm in &absent {
        list.push(DossierFailure {
            arm: arm.spec.id.to_string(),
            workload: None,
            kind: Absence::Unavailable,
            reason: arm
                .reason
                .clone()
                .unwrap_or_else(|| "the run does not say why".to_owned()),
            trials: tally.unavailable_in(arm.spec.id.as_str()),
            hint: arm.fix.clone(),
        });
    }
    for (index, spec) in head.study.workloads.iter().enumerate() {
        let mut reached = groups.keys();
        if !reached.any(|key| key.workload_index as usize == index) {
            list.push(DossierFailure {
                arm: head.study.baseline.to_string(),
                workload: Some(spec.id.to_string()),
                kind: Absence::Failed,
                reason: "it was not reached before the run ended".to_owned(),
                trials: 0,
                hint: Some("resume the run".to_owned()),
            });
        }
    }
    for ((arm, workload, kind), reasons) in &tally.0 {
        let is_absent = absent.iter().any(|it| it.spec.id.as_str() == arm);
        if *kind == Absence::Unavailable && is_absent {
            continue;
        }
        let entry = |reason: String, trials: u32, hint: Option<String>| DossierFailure {
            arm: arm.clone(),
            workload: Some(workload.clone()),
            kind: *kind,
            reason,
            trials,
            hint,
        };
        for (reason, (count, hint)) in &reasons.listed {
            list.push(entry(reason.clone(), *count, hint.clone()));
        }
        if reasons.further > 0 {
            list.push(entry(
                "for further reasons".to_owned(),
                reasons.further,
                None,
            ));
        }
    }
    list
}

/// Suggests how to make it measurable in this arm.
pub(crate) fn hint_for(reason: &Reason, arm: &ArmSpec) -> Option<String> {
    match reason {
        Reason::MissingTool(tool) => Some(parity::fix(tool, &arm.driver, &arm.settings)),
        Reason::NeedsPrivilege(what) => {
            Some(format!("run as a user who has {what}, or leave it out"))
        }
        Reason::BlockedSyscall(call) => Some(format!(
            "an arm whose seccomp filter allows {call} can measure it"
        )),
        Reason::NoEnvironment(_) => Some("see `tare doctor`".to_owned()),
        Reason::Unsupported(_) | Reason::NoPath(_) => None,
    }
}

/// Describes a failure, with limits in seconds.
pub(crate) fn describe(failure: &Failure) -> String {
    match failure {
        Failure::TimedOut { limit_ns } => format!(
            "no answer within {} s; the worker was killed",
            *limit_ns as f64 / 1e9
        ),
        other => other.to_string(),
    }
}

/// Suggests what to check after a failure.
pub(crate) fn hint_after(failure: &Failure) -> Option<String> {
    match failure {
        Failure::TimedOut { .. } => Some("give the study a longer limit for a trial".to_owned()),
        Failure::Killed { signal: 9 } => Some(
            "the kernel's out-of-memory killer ends processes so: look at the memory limit"
                .to_owned(),
        ),
        Failure::Lost(_) => Some("see `tare doctor`, and the environment's own log".to_owned()),
        Failure::Garbled(_)
        | Failure::Killed { .. }
        | Failure::Exited { .. }
        | Failure::Probe(_)
        | Failure::Void(_) => None,
    }
}
