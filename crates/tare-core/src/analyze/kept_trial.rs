//! Data kept of trials: of each its readings and the probe's other data, grouped by what may be compared.
//!
//! Plain data, shared by the code that decodes, collects and judges.

use std::collections::BTreeMap;

use tare_model::command::UsageOverTime;
use tare_model::course::Course;
use tare_model::{Params, Path, Reason, Spread, Trial, WorkSpan};

use super::blocks::Blocks;
use super::counters::CounterRow;
use super::input::TrialRef;
use super::reading::Reading;
use super::turns::Turns;
use crate::workload::{Remark, Workload};

/// Key of comparable trials: same work, same number of instances. The workload's index in the study stands for its
/// parameters and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub(crate) workload_index: u32,
    pub(crate) instances: u32,
}

impl GroupKey {
    pub(super) fn new(trial: &Trial) -> Self {
        Self {
            workload_index: trial.workload_index,
            instances: trial.cell.instances,
        }
    }
}

/// All readings of one workload.
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) params: Params,
    pub(crate) path: Option<Path>,
    /// Where the instances run, if the workload has a series of them.
    pub(crate) spread: Option<Spread>,
    /// `None` if this version of Tare has no such workload.
    pub(crate) workload: Option<&'static dyn Workload>,
    /// By arm, in the study's order; then by block.
    pub(crate) arms: Vec<Blocks<KeptTrial>>,
    /// The blocks in which each arm was tried, whatever the outcome.
    pub(crate) tried: Vec<Blocks<()>>,
}

/// Data kept of a completed trial.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptTrial {
    /// Position among the block's arms.
    pub(crate) position: u32,
    /// The launch of the arms that the trial belongs to.
    pub(crate) launch: u32,
    pub(crate) host_ns: u64,
    /// One for each of the workload's metrics, in their order.
    pub(crate) readings: Box<[Option<Reading>]>,
    /// Result of interleaving the arms.
    pub(crate) turns: Turns,
    /// Data that only a probe's report contains. Stored inline, because examining a cell iterates over its blocks
    /// many times.
    pub(crate) probe: Option<ProbeFacts>,
    /// The workload's remarks on the trial; an empty box allocates nothing.
    pub(crate) remarks: Box<[Remark]>,
    /// What each instance did, if several were started together.
    pub(crate) joint: Option<Box<Joint>>,
    /// Its course from start to end, if reported.
    pub(crate) course: Option<Box<Course>>,
    /// What its program used step by step, if recorded; the sum over its instances.
    pub(crate) usage: Option<Box<UsageOverTime>>,
    /// Whether it replaced an earlier trial of the same arm and block.
    pub(crate) replaced: bool,
}

/// The position of a trial in its run.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrialPosition {
    pub(super) key: GroupKey,
    /// The arm's index in the study.
    pub(super) arm: usize,
    pub(super) block: u32,
}

/// A usable trial: the data to keep, and the data that is only counted.
#[derive(Default)]
pub(super) struct UsableTrial {
    pub(super) kept: KeptTrial,
    pub(super) unavailable: BTreeMap<String, Reason>,
    /// When its work ran, if reported.
    pub(super) span: Option<WorkSpan>,
    /// Time in which its values were taken, if reported.
    pub(super) timed_ns: Option<u64>,
}

impl UsableTrial {
    /// Adds what is known of the trial from outside.
    pub(super) fn taken(mut self, data: TrialRef<'_>) -> Self {
        let kept = &mut self.kept;
        kept.position = data.trial.position;
        kept.launch = data.trial.launch;
        kept.host_ns = data.host_elapsed_ns;
        match &mut kept.probe {
            Some(probe) => probe.counters.put_row(&data.charged()),
            // A program that times nothing itself is timed from start to end.
            None => self.timed_ns = self.timed_ns.or(Some(data.host_elapsed_ns)),
        }
        self
    }
}

impl Group {
    /// Whether every arm of the study left something in a block.
    pub(super) fn is_whole(&self, block: u32) -> bool {
        self.arms.iter().all(|arm| arm.contains(block))
    }

    /// Compares the arms of a block that have slices and drops the slices.
    pub(super) fn settle(&mut self, block: u32) {
        let of_block = self.arms.iter_mut();
        let of_block = of_block.map(|arm| Some(&mut arm.get_mut(block)?.turns));
        Turns::settle(of_block.collect());
    }
}

/// An optional number in half the memory of an `Option<f64>`; NaN means none.
#[derive(Clone, Copy)]
pub(crate) struct Maybe(f64);

impl Maybe {
    pub(crate) fn get(self) -> Option<f64> {
        (!self.0.is_nan()).then_some(self.0)
    }
}

impl From<Option<f64>> for Maybe {
    fn from(value: Option<f64>) -> Self {
        Self(value.unwrap_or(f64::NAN))
    }
}

impl PartialEq for Maybe {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl std::fmt::Debug for Maybe {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(out)
    }
}

/// Data that a probe reports in addition to its series.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProbeFacts {
    pub(crate) revision: u32,
    pub(crate) checksum: Option<Box<str>>,
    pub(crate) elapsed_ns: u64,
    /// The faster of the two canary loops: an interrupted one is no evidence about the clock.
    pub(crate) canary_ns: Maybe,
    pub(crate) steal_ns: Maybe,
    pub(crate) throttled_ns: Maybe,
    pub(crate) major_faults: Maybe,
    pub(crate) clock_cost_ns: Maybe,
    /// The CPU to which an interleaved worker was bound.
    pub(crate) cpu: Option<u32>,
    /// Whether batches are short compared with the clock's resolution.
    pub(crate) coarse: bool,
    /// The `T(2k)/T(k)` farthest from two.
    pub(crate) linearity: Maybe,
    /// The counters by which causes are judged.
    pub(crate) counters: CounterRow,
}

/// What the instances of one trial did, in the order in which they were released.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Joint {
    /// For each of the workload's metrics what each instance took, in the metric's unit; empty if any has no value.
    pub(crate) values: Box<[Box<[f64]>]>,
    /// When each was running; empty if any does not report it.
    pub(crate) spans: Box<[WorkSpan]>,
    /// From the first go signal to the last answer, by the host's clock, in nanoseconds.
    pub(crate) host_ns: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_number_equals_itself() {
        assert_eq!(Maybe::from(None), Maybe::from(None));
        assert_eq!(Maybe::from(Some(-0.0)).get(), Some(0.0));
    }
}
