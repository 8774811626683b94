//! Collects the readings of all trials: each trial is decoded once and its bytes are dropped.
//!
//! Grouped by what may be compared (workload, parameters, path, instances), then by arm and block. A trial that left
//! nothing usable is counted with its reason, never skipped. A few hundred bytes are kept per trial, so that a
//! million trials fit into memory. Whether a trial counts is decided afterwards, in `void`.

use std::collections::BTreeMap;

use tare_model::trial::CellKey;
use tare_model::{Absence, Spread, Study, Trial};

use super::Find;
use super::blocks::Blocks;
use super::failures::{Counted, Tally, hint_for};
use super::input::TrialRef;
use super::kept_trial::{Group, GroupKey};
use super::placing::{Placing, Says};
use super::turns::Turns;

/// From this number of trials on, memory is freed in the background.
const MANY: u32 = 10_000;

/// Readings under construction.
pub(crate) struct Collector<'a> {
    pub(super) placing: Placing<'a>,
    spreads: Vec<Option<Spread>>,
    pub(crate) groups: BTreeMap<GroupKey, Group>,
    pub(crate) tally: Tally,
    /// Number of trials seen, whatever their outcome.
    pub(super) trials: u32,
    /// Time in which values were taken, over all trials; `None` if any trial does not report it.
    pub(super) timed_ns: Option<u64>,
    keeps_slices: bool,
    /// The block of each work that has slices of some arms while others may still come.
    unsettled: BTreeMap<GroupKey, u32>,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(study: &Study, find: Find<'a>) -> Self {
        Self {
            placing: Placing::new(study, find),
            spreads: study.workloads.iter().map(|spec| spec.spread).collect(),
            groups: BTreeMap::new(),
            tally: Tally::default(),
            trials: 0,
            timed_ns: Some(0),
            keeps_slices: true,
            unsettled: BTreeMap::new(),
        }
    }

    /// From now on drops slices as soon as the arms of their block are compared: when all have arrived, or when the
    /// first trial of another block arrives, because an absent or failed arm leaves nothing to wait for.
    pub(crate) fn drop_slices(&mut self) {
        self.keeps_slices = false;
    }

    /// The study's number of arms if slices are dropped; `None` if they are kept.
    pub(super) fn n_arms_to_settle(&self) -> Option<usize> {
        (!self.keeps_slices).then_some(self.placing.arms.len())
    }

    /// The index of an arm in the study.
    pub(crate) fn arm_index(&self, arm: &str) -> Option<usize> {
        self.placing.arm_index(arm)
    }

    /// Whether a trial left readings that count.
    pub(crate) fn has(&self, trial: &Trial) -> bool {
        let of_arm = || {
            let group = self.groups.get(&GroupKey::new(trial))?;
            Some(&group.arms[self.arm_index(trial.cell.arm.as_str())?])
        };
        of_arm().is_some_and(|kept| kept.contains(trial.block))
    }

    /// Frees the memory on a separate thread: for a million trials that takes a second, in which the report can be
    /// rendered, and an exiting program need not wait for it.
    pub(super) fn release(self) {
        let groups = self.groups;
        if self.trials >= MANY {
            let _ = std::thread::Builder::new().spawn(move || drop(groups));
        }
    }

    /// Decodes one trial and collects its readings.
    pub(crate) fn add(&mut self, data: TrialRef<'_>) {
        let says = self.placing.read(data);
        if let Says::OfWork { place, .. } = &says {
            self.begin(place.key, &data.trial.cell);
        }
        self.take(says);
    }

    /// Makes room for a work's readings, unless it exists.
    pub(super) fn begin(&mut self, key: GroupKey, cell: &CellKey) {
        let arms = self.placing.arms.len();
        let spread = self.spreads.get(key.workload_index as usize);
        let spread = spread.copied().flatten();
        self.groups.entry(key).or_insert_with(|| Group {
            name: cell.workload.to_string(),
            params: cell.params.clone(),
            path: cell.path,
            spread,
            workload: (self.placing.find)(cell.workload.as_str()),
            arms: vec![Blocks::default(); arms],
            tried: vec![Blocks::default(); arms],
        });
    }

    /// Counts a trial and collects its readings; `begin` must have been called for its work.
    pub(super) fn take(&mut self, says: Says) {
        self.trials += 1;
        let (place, taken) = match says {
            Says::OfNone(counted) => return self.tally.count(*counted),
            Says::OfWork { place, taken } => (place, taken),
        };
        let Some(group) = self.groups.get_mut(&place.key) else {
            return;
        };
        group.tried[place.arm].insert(place.block, ());
        if let Some(before) = self.unsettled.get(&place.key).copied()
            && before != place.block
        {
            self.unsettled.remove(&place.key);
            group.settle(before);
        }
        let arm = &self.placing.arms[place.arm];
        let taken = match taken {
            Ok(taken) => taken,
            Err(counted) => return self.tally.count(*counted),
        };
        let shown = taken.timed_ns.zip(self.timed_ns);
        self.timed_ns = shown.map(|(timed_ns, before_ns)| timed_ns + before_ns);
        for (metric, reason) in &taken.unavailable {
            self.tally.count(Counted {
                arm: arm.id.to_string(),
                workload: group.name.clone(),
                kind: Absence::Unavailable,
                reason: format!("{metric}: {reason}"),
                hint: hint_for(reason, arm),
            });
        }
        let may_settle = !self.keeps_slices && matches!(taken.kept.turns, Turns::Slices(_));
        let of_arm = &mut group.arms[place.arm];
        let before = of_arm.insert(place.block, taken.kept);
        if let (Some(_), Some(now)) = (before, of_arm.get_mut(place.block)) {
            now.replaced = true;
        }
        if may_settle && group.is_whole(place.block) {
            group.settle(place.block);
            self.unsettled.remove(&place.key);
        } else if may_settle {
            self.unsettled.insert(place.key, place.block);
        }
    }
}
