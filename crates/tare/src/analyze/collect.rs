//! Trials in, readings out: each trial is decoded once and its bytes are dropped.
//!
//! Grouped by what may be compared (workload, parameters, path, instances), then by arm and block. A trial
//! that left nothing usable is counted with its reason, never skipped. What is kept of a trial is small (a few hundred bytes), so
//! that a million of them fit into memory.
//! What it cannot see: whether a trial should count; that is decided afterwards, in `void`.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::{Absence, Outcome, Params, Path, Spread, Study, Trial};

use super::Find;
use super::decode::{Decoded, decoded};
use super::evidence::{self, CounterRow};
use super::failures::{Counted, Tally};
use super::input::TrialData;
use super::reading::Reading;
use super::together::Joint;
use super::turns::Turns;
use crate::workload::{DecodeError, Remark, Workload};

/// What may be compared: same work, same number at once. The workload's place in the study stands for its
/// parameters and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub(crate) workload_index: u32,
    pub(crate) instances: u32,
}

/// All readings of one workload.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) params: Params,
    pub(crate) path: Option<Path>,
    /// Where the instances run, for a workload with a series of them.
    pub(crate) spread: Option<Spread>,
    /// `None` where this version of Tare has no such workload.
    pub(crate) workload: Option<&'static dyn Workload>,
    /// By arm, in the study's order; then by block.
    pub(crate) arms: Vec<BTreeMap<u32, Kept>>,
    /// The blocks in which each arm was tried, whatever came of it.
    pub(crate) tried: Vec<BTreeSet<u32>>,
}

/// What is kept of a completed trial.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    /// Place among the block's arms.
    pub(crate) position: u32,
    /// The launch of the arms that the trial belongs to.
    pub(crate) launch: u32,
    pub(crate) host_ns: u64,
    /// One for each of the workload's metrics, in their order.
    pub(crate) readings: Box<[Option<Reading>]>,
    /// What the arms' taking turns left.
    pub(crate) turns: Turns,
    /// What only a probe's report tells.
    pub(crate) probe: Option<Box<ProbeFacts>>,
    /// What the workload says of the trial; a box of nothing takes no memory of its own.
    pub(crate) remarks: Box<[Remark]>,
    /// What its instances did, one by one, where they were started together.
    pub(crate) joint: Option<Box<Joint>>,
    /// Another trial of the same arm and block came before and was replaced.
    pub(crate) replaced: bool,
}

impl Group {
    /// Compares the arms of a block by their slices and drops these, once all arms have come.
    fn settle(&mut self, block: u32) {
        let of_block: Option<Vec<&Turns>> = self
            .arms
            .iter()
            .map(|arm| Some(&arm.get(&block)?.turns))
            .collect();
        let settled = of_block.and_then(|turns| Turns::settled(&turns));
        for (arm, turns) in self.arms.iter_mut().zip(settled.into_iter().flatten()) {
            if let Some(kept) = arm.get_mut(&block) {
                kept.turns = turns;
            }
        }
    }
}

/// What a probe reports beside its series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProbeFacts {
    pub(crate) revision: u32,
    pub(crate) checksum: Option<Box<str>>,
    pub(crate) elapsed_ns: u64,
    /// The faster of the two canary loops: the one that was interrupted says nothing about the clock.
    pub(crate) canary_ns: Option<f64>,
    pub(crate) steal_ns: Option<f64>,
    pub(crate) throttled_ns: Option<f64>,
    pub(crate) major_faults: Option<f64>,
    pub(crate) clock_cost_ns: Option<f64>,
    /// The processor to which a worker that took turns was bound.
    pub(crate) cpu: Option<u32>,
    /// Batches that are short against the clock.
    pub(crate) coarse: bool,
    /// The `T(2k)/T(k)` that is farthest from two.
    pub(crate) linearity: Option<f64>,
    /// What causes are told by.
    pub(crate) counters: Box<CounterRow>,
}

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
                    evidence::put(&mut probe.counters, charged);
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
