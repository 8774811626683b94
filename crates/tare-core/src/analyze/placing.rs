//! Assigns a stored trial to its place and decodes it: a function of the trial and the study alone, so that many can
//! be read in parallel.

use tare_model::{Absence, ArmSpec, Failure, Outcome, Reason, Study, WorkloadId};

use super::Find;
use super::failures::{Counted, describe, hint_after, hint_for};
use super::input::TrialRef;
use super::kept_trial::{GroupKey, TrialPosition, UsableTrial};
use super::together::{cut_off, decoded};
use crate::workload::DecodeError;

/// Most blocks that a plan may have.
const MOST_BLOCKS: u32 = u32::MAX / 2;
/// Most positions in a block.
const MOST_PLACES: u32 = 1 << 16;

/// The outcome of a trial.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are of the larger one, and a box of its own for each trial costs more"
)]
pub(super) enum Says {
    /// Nothing usable: the study has no such arm or workload.
    OfNone(Box<Counted>),
    /// The trial's data, or how it is counted.
    OfWork {
        place: TrialPosition,
        taken: Result<UsableTrial, Box<Counted>>,
    },
}

/// The data of a study that is needed to read its trials.
#[derive(Clone)]
pub(super) struct Placing<'a> {
    /// How workloads are looked up.
    pub(super) find: Find<'a>,
    /// In the study's order.
    pub(super) arms: Vec<ArmSpec>,
    workloads: Vec<WorkloadId>,
}

impl<'a> Placing<'a> {
    pub(super) fn new(study: &Study, find: Find<'a>) -> Self {
        Self {
            find,
            arms: study.arms.clone(),
            workloads: study.workloads.iter().map(|it| it.id.clone()).collect(),
        }
    }

    /// The index of an arm in the study.
    pub(super) fn arm_index(&self, arm: &str) -> Option<usize> {
        self.arms.iter().position(|spec| spec.id.as_str() == arm)
    }

    /// Returns the place of a trial and its data, or how it is counted.
    pub(super) fn read(&self, data: TrialRef<'_>) -> Says {
        let trial = data.trial;
        let cell = &trial.cell;
        let (arm, workload) = (cell.arm.as_str(), cell.workload.as_str());
        let counted = |kind, why: &dyn std::fmt::Display| Counted {
            arm: arm.to_owned(),
            workload: workload.to_owned(),
            kind,
            reason: why.to_string(),
            hint: None,
        };
        let none = |why: &str| Says::OfNone(Box::new(counted(Absence::Failed, &why)));
        let Some(arm) = self.arm_index(arm) else {
            return none("the study has no such arm");
        };
        // Another workload's measurement must not appear among this one's values.
        if self.workloads.get(trial.workload_index as usize) != Some(&cell.workload) {
            return none("the study has no such workload in its place");
        }
        if trial.block.max(trial.launch) > MOST_BLOCKS || trial.position > MOST_PLACES {
            return none("no plan has such a place");
        }
        let place = TrialPosition {
            key: GroupKey::new(trial),
            arm,
            block: trial.block,
        };
        let of_trial = (self.find)(workload);
        let unavailable = |reason: &Reason| Counted {
            hint: hint_for(reason, &self.arms[arm]),
            ..counted(Absence::Unavailable, reason)
        };
        let taken = match data.outcome {
            Outcome::Completed(raw) => of_trial
                .ok_or_else(|| {
                    let reason = format!("this version of Tare has no workload `{workload}`");
                    counted(Absence::Failed, &reason)
                })
                .and_then(|workload| {
                    decoded(workload, raw).map_err(|problem| match &problem {
                        DecodeError::Unavailable(reason) => unavailable(reason),
                        _ => counted(Absence::Failed, &problem),
                    })
                }),
            Outcome::Unavailable(reason) => Err(unavailable(reason)),
            Outcome::Failed(failure) => {
                let cut_off = match (of_trial, failure) {
                    // A timeout still shows that it took at least so long.
                    (Some(workload), Failure::TimedOut { limit_ns }) => {
                        cut_off(workload, &cell.params, *limit_ns)
                    }
                    _ => None,
                };
                cut_off.ok_or_else(|| Counted {
                    hint: hint_after(failure),
                    ..counted(Absence::Failed, &describe(failure))
                })
            }
        };
        let taken = taken.map(|usable| usable.taken(data)).map_err(Box::new);
        Says::OfWork { place, taken }
    }
}
