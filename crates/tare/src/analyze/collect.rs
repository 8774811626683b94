//! Trials in, readings out: each trial is decoded once and its bytes are dropped.
//!
//! Grouped by what may be compared (workload, parameters, path, instances), then by arm and block. A trial
//! that left nothing usable is counted with its reason, never skipped. What is kept of a trial is small (a few hundred bytes), so
//! that a million of them fit into memory.
//! What it cannot see: whether a trial should count; that is decided afterwards, in `void`.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::{Absence, Failure, Outcome, Spread, Study, Trial};

use super::Find;
use super::counters;
use super::failures::{Counted, Tally};
use super::input::TrialData;
use super::kept::{Decoded, Group, GroupKey, Kept};
use super::together::decoded;
use crate::workload::DecodeError;

/// Readings under construction.
pub(crate) struct Collector<'a> {
    find: Find<'a>,
    arm_ids: Vec<String>,
    /// By arm, in the study's order.
    arm_specs: Vec<tare_model::ArmSpec>,
    spreads: Vec<Option<Spread>>,
    pub(crate) groups: BTreeMap<GroupKey, Group>,
    pub(crate) tally: Tally,
    trials: u32,
    /// Time in which values were taken, all trials together; `None` as soon as one does not say.
    timed_ns: Option<u64>,
    keeps_slices: bool,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(study: &Study, find: Find<'a>) -> Self {
        Self {
            find,
            arm_ids: study.arms.iter().map(|arm| arm.id.to_string()).collect(),
            arm_specs: study.arms.clone(),
            spreads: study.workloads.iter().map(|spec| spec.spread).collect(),
            groups: BTreeMap::new(),
            tally: Tally::default(),
            trials: 0,
            timed_ns: Some(0),
            keeps_slices: true,
        }
    }

    /// From now on slices are dropped as soon as the arms of their block are compared.
    pub(crate) fn drop_slices(&mut self) {
        self.keeps_slices = false;
    }

    /// How workloads are looked up.
    pub(crate) fn find(&self) -> Find<'a> {
        self.find
    }

    /// Trials seen, whatever became of them.
    pub(crate) fn trials(&self) -> u32 {
        self.trials
    }

    /// Time in which values were taken, seconds, all trials together; `None` where one does not say.
    pub(crate) fn timed_s(&self) -> Option<f64> {
        self.timed_ns.map(|ns| ns as f64 / 1e9)
    }

    /// The place of an arm in the study.
    pub(crate) fn arm_index(&self, arm: &str) -> Option<usize> {
        self.arm_ids.iter().position(|id| id == arm)
    }

    /// Whether a trial left readings that count.
    pub(crate) fn has(&self, trial: &Trial) -> bool {
        let key = GroupKey {
            workload_index: trial.workload_index,
            instances: trial.cell.instances,
        };
        let of_arm = || {
            let group = self.groups.get(&key)?;
            Some(&group.arms[self.arm_index(trial.cell.arm.as_str())?])
        };
        of_arm().is_some_and(|kept| kept.contains_key(&trial.block))
    }

    /// Decodes one trial and takes what it says.
    pub(crate) fn add(&mut self, data: &TrialData) {
        let decoded = decoded(self.find, data);
        self.take(data, decoded);
    }

    /// Takes what a trial says, as [`decoded`] has it. Its bytes are not looked at.
    pub(super) fn take(&mut self, data: &TrialData, decoded: Option<Result<Decoded, DecodeError>>) {
        let trial = &data.trial;
        self.trials += 1;
        let cell = &trial.cell;
        let (arm, workload) = (cell.arm.as_str(), cell.workload.as_str());
        let counted = |kind, why: &dyn std::fmt::Display| Counted {
            arm: arm.to_owned(),
            workload: workload.to_owned(),
            kind,
            reason: why.to_string(),
            hint: None,
        };
        let Some(arm_index) = self.arm_index(arm) else {
            self.tally
                .count(counted(Absence::Failed, &"the study has no such arm"));
            return;
        };
        let key = GroupKey {
            workload_index: trial.workload_index,
            instances: cell.instances,
        };
        let find = self.find;
        let arms = self.arm_ids.len();
        let spread = self.spreads.get(trial.workload_index as usize);
        let spread = spread.copied().flatten();
        let group = self.groups.entry(key).or_insert_with(|| Group {
            name: workload.to_owned(),
            params: cell.params.clone(),
            path: cell.path,
            spread,
            workload: find(workload),
            arms: vec![BTreeMap::new(); arms],
            tried: vec![BTreeSet::new(); arms],
        });
        group.tried[arm_index].insert(trial.block);
        match &data.outcome {
            Outcome::Completed(_) => {}
            // It says something all the same: that it took at least so long.
            Outcome::Failed(Failure::TimedOut { .. }) if decoded.is_some() => {}
            Outcome::Unavailable(reason) => {
                let hint = super::failures::hint_for(reason, &self.arm_specs[arm_index]);
                self.tally.count(Counted {
                    hint,
                    ..counted(Absence::Unavailable, reason)
                });
                return;
            }
            Outcome::Failed(failure) => {
                let hint = super::failures::hint_after(failure);
                self.tally.count(Counted {
                    hint,
                    ..counted(Absence::Failed, &super::failures::told(failure))
                });
                return;
            }
        }
        let Some(decoded) = decoded else {
            let reason = format!("this version of Tare has no workload `{workload}`");
            self.tally.count(counted(Absence::Failed, &reason));
            return;
        };
        match decoded {
            Ok(mut decoded) => {
                self.timed_ns = match (decoded.timed_ns, &decoded.probe) {
                    // A program that times nothing of its own is timed from its start to its end.
                    (None, None) => Some(data.host_elapsed_ns),
                    (told, _) => told,
                }
                .zip(self.timed_ns)
                .map(|(timed_ns, before_ns)| timed_ns + before_ns);
                if let Some(probe) = &mut decoded.probe {
                    let charged = data
                        .charged
                        .iter()
                        .map(|(name, value)| (name.as_str(), *value));
                    counters::put(&mut probe.counters, charged);
                }
                for (metric, reason) in &decoded.unavailable {
                    self.tally.count(Counted {
                        reason: format!("{metric}: {reason}"),
                        hint: super::failures::hint_for(reason, &self.arm_specs[arm_index]),
                        ..counted(Absence::Unavailable, &"")
                    });
                }
                let kept = Kept {
                    position: trial.position,
                    launch: trial.launch,
                    host_ns: data.host_elapsed_ns,
                    readings: decoded.readings,
                    turns: decoded.turns,
                    probe: decoded.probe.map(Box::new),
                    remarks: decoded.remarks.into_boxed_slice(),
                    joint: decoded.joint,
                    course: decoded.course,
                    replaced: false,
                };
                let of_arm = &mut group.arms[arm_index];
                let before = of_arm.insert(trial.block, kept);
                if let (Some(_), Some(now)) = (before, of_arm.get_mut(&trial.block)) {
                    now.replaced = true;
                }
                if !self.keeps_slices {
                    group.settle(trial.block);
                }
            }
            Err(DecodeError::Unavailable(reason)) => self.tally.count(Counted {
                hint: super::failures::hint_for(&reason, &self.arm_specs[arm_index]),
                ..counted(Absence::Unavailable, &reason)
            }),
            Err(problem) => self.tally.count(counted(Absence::Failed, &problem)),
        }
    }
}
