//! What is kept of trials: of one its readings and what a probe told beside them, of many what may be compared.
//!
//! Plain data, that whoever decodes, collects and judges shares.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::course::Course;
use tare_model::{Params, Path, Reason, Spread, WorkSpan};

use super::counters::CounterRow;
use super::reading::Reading;
use super::turns::Turns;
use crate::workload::{Remark, Workload};

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
    /// How it went from beginning to end, where it tells that.
    pub(crate) course: Option<Box<Course>>,
    /// Another trial of the same arm and block came before and was replaced.
    pub(crate) replaced: bool,
}

impl Group {
    /// Compares the arms of a block by their slices and drops these, once all arms have come.
    pub(super) fn settle(&mut self, block: u32) {
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

/// What the instances of one trial did, in the order in which they were told to go on.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Joint {
    /// For each of the workload's metrics what each instance took, in the metric's unit; empty where one of them
    /// has no value.
    pub(crate) values: Box<[Box<[f64]>]>,
    /// When each was at work; empty where one of them does not say.
    pub(crate) spans: Box<[WorkSpan]>,
    /// From the first word to go on to the last answer, by the host's clock, nanoseconds.
    pub(crate) host_ns: f64,
}

/// What can be read from one trial.
pub(super) struct Decoded {
    pub(super) readings: Box<[Option<Reading>]>,
    pub(super) turns: Turns,
    pub(super) unavailable: BTreeMap<String, Reason>,
    pub(super) probe: Option<ProbeFacts>,
    pub(super) remarks: Vec<Remark>,
    pub(super) span: Option<WorkSpan>,
    /// Time in which its values were taken, where it says so.
    pub(super) timed_ns: Option<u64>,
    pub(super) joint: Option<Box<Joint>>,
    pub(super) course: Option<Box<Course>>,
}
