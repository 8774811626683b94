//! Trials in, readings out: each trial is decoded once and its bytes are dropped.
//!
//! Grouped by what may be compared (workload, parameters, path, instances), then by arm and block. A trial
//! that left nothing usable is counted with its reason, never skipped. What is kept of a trial is small (a few hundred bytes), so
//! that a million of them fit into memory.
//! What it cannot see: whether a trial should count; that is decided afterwards, in `void`.

use std::collections::BTreeMap;

use tare_model::{Absence, Failure, Outcome, Spread, Study, Trial};

use super::Find;
use super::blocks::Blocks;
use super::failures::{Counted, Tally};
use super::input::TrialRef;
use super::kept::{Group, GroupKey, Place, Taken};
use super::together::{Work, cut_off, decoded};
use super::turns::Turns;
use crate::workload::DecodeError;

/// So many trials are given back beside other work.
const MANY: u32 = 10_000;

/// Readings under construction.
pub(crate) struct Collector<'a> {
    find: Find<'a>,
    arm_ids: Vec<String>,
    /// By arm, in the study's order.
    arm_specs: Vec<tare_model::ArmSpec>,
    spreads: Vec<Option<Spread>>,
    pub(crate) groups: BTreeMap<GroupKey, Group>,
    pub(crate) tally: Tally,
    totals: Totals,
    keeps_slices: bool,
}

/// What is known of all trials together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    /// How many were seen, whatever became of them.
    pub(super) trials: u32,
    /// Time in which values were taken; `None` where one does not say.
    pub(super) timed_ns: Option<u64>,
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
            totals: Totals {
                trials: 0,
                timed_ns: Some(0),
            },
            keeps_slices: true,
        }
    }

    /// From now on slices are dropped as soon as the arms of their block are compared.
    pub(crate) fn drop_slices(&mut self) {
        self.keeps_slices = false;
    }

    /// How many arms a block has that are compared as soon as all have come; `None` where slices are kept.
    pub(super) fn n_arms_to_settle(&self) -> Option<usize> {
        (!self.keeps_slices).then_some(self.arm_ids.len())
    }

    /// How workloads are looked up.
    pub(crate) fn find(&self) -> Find<'a> {
        self.find
    }

    /// Trials seen, whatever became of them.
    pub(crate) fn trials(&self) -> u32 {
        self.totals.trials
    }

    pub(super) fn totals(&self) -> Totals {
        self.totals
    }

    pub(super) fn set_totals(&mut self, totals: Totals) {
        self.totals = totals;
    }

    /// Time in which values were taken, seconds, all trials together; `None` where one does not say.
    pub(crate) fn timed_s(&self) -> Option<f64> {
        self.totals.timed_ns.map(|ns| ns as f64 / 1e9)
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
        of_arm().is_some_and(|kept| kept.contains(trial.block))
    }

    /// Gives the memory back on a thread of its own: of a million trials that takes a second, in which the report can
    /// be drawn, and which a program that ends need not wait for.
    pub(super) fn release(self) {
        let groups = self.groups;
        if self.totals.trials >= MANY {
            std::thread::spawn(move || drop(groups));
        }
    }

    /// Decodes one trial and takes what it says.
    pub(crate) fn add(&mut self, data: TrialRef<'_>) {
        match self.place(data) {
            Ok((place, work)) => {
                let charged = data.charged();
                let says = match work {
                    Work::Bytes(workload, raw) => decoded(workload, raw),
                    Work::Known(decoded) => Ok(*decoded),
                };
                self.take(&place, says.map(|it| it.taken(&place, &charged)));
            }
            Err(counted) => self.tally.count(counted),
        }
    }

    /// Counts a trial and says where it belongs, and what is to be decoded and by whom; or how it is counted if it left
    /// nothing to decode.
    pub(super) fn place<'t>(&mut self, data: TrialRef<'t>) -> Result<(Place, Work<'t>), Counted> {
        let trial = data.trial;
        self.totals.trials += 1;
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
            return Err(counted(Absence::Failed, &"the study has no such arm"));
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
            arms: vec![Blocks::default(); arms],
            tried: vec![Blocks::default(); arms],
        });
        group.tried[arm_index].insert(trial.block, ());
        let of_trial = if group.name == workload {
            group.workload
        } else {
            find(workload)
        };
        let place = Place {
            key,
            arm: arm_index,
            block: trial.block,
            position: trial.position,
            launch: trial.launch,
            host_ns: data.host_elapsed_ns,
        };
        let cut_off = match data.outcome {
            // It says something all the same: that it took at least so long.
            Outcome::Failed(Failure::TimedOut { limit_ns }) => {
                of_trial.and_then(|workload| cut_off(workload, &cell.params, *limit_ns))
            }
            _ => None,
        };
        if let Some(decoded) = cut_off {
            return Ok((place, Work::Known(Box::new(decoded))));
        }
        let raw = match data.outcome {
            Outcome::Completed(raw) => raw,
            Outcome::Unavailable(reason) => {
                let hint = super::failures::hint_for(reason, &self.arm_specs[arm_index]);
                return Err(Counted {
                    hint,
                    ..counted(Absence::Unavailable, reason)
                });
            }
            Outcome::Failed(failure) => {
                let hint = super::failures::hint_after(failure);
                return Err(Counted {
                    hint,
                    ..counted(Absence::Failed, &super::failures::told(failure))
                });
            }
        };
        let Some(of_trial) = of_trial else {
            let reason = format!("this version of Tare has no workload `{workload}`");
            return Err(counted(Absence::Failed, &reason));
        };
        Ok((place, Work::Bytes(of_trial, raw)))
    }

    /// Takes what a trial says.
    pub(super) fn take(&mut self, place: &Place, says: Result<Taken, DecodeError>) {
        let Some(group) = self.groups.get_mut(&place.key) else {
            return;
        };
        let arm = &self.arm_specs[place.arm];
        let counted = |kind, reason: String| Counted {
            arm: arm.id.to_string(),
            workload: group.name.clone(),
            kind,
            reason,
            hint: None,
        };
        match says {
            Ok(taken) => {
                let told = taken.timed_ns.zip(self.totals.timed_ns);
                self.totals.timed_ns = told.map(|(timed_ns, before_ns)| timed_ns + before_ns);
                for (metric, reason) in &taken.unavailable {
                    self.tally.count(Counted {
                        hint: super::failures::hint_for(reason, arm),
                        ..counted(Absence::Unavailable, format!("{metric}: {reason}"))
                    });
                }
                let may_settle = !self.keeps_slices && matches!(taken.kept.turns, Turns::Slices(_));
                let of_arm = &mut group.arms[place.arm];
                let before = of_arm.insert(place.block, taken.kept);
                if let (Some(_), Some(now)) = (before, of_arm.get_mut(place.block)) {
                    now.replaced = true;
                }
                if may_settle {
                    group.settle(place.block);
                }
            }
            Err(DecodeError::Unavailable(reason)) => self.tally.count(Counted {
                hint: super::failures::hint_for(&reason, arm),
                ..counted(Absence::Unavailable, reason.to_string())
            }),
            Err(problem) => {
                let counted = counted(Absence::Failed, problem.to_string());
                self.tally.count(counted);
            }
        }
    }
}
