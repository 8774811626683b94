//! Trials in, readings out: each trial is decoded once and its bytes are dropped.
//!
//! Grouped by what may be compared (workload, parameters, path, instances), then by arm and block. A trial
//! that left nothing usable is counted with its reason, never skipped. What is kept of a trial is small (a few hundred bytes), so
//! that a million of them fit into memory.
//! What it cannot see: whether a trial should count; that is decided afterwards, in `void`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde::de::IgnoredAny;
use tare_model::probe_report::PROBE_FORMAT;
use tare_model::unit::TICK_NS;
use tare_model::{
    Absence, INSTANCES_FORMAT, Outcome, Params, Path, RawOutput, Reason, Spread, Study, Trial,
    WorkSpan,
};

use super::Find;
use super::evidence::{self, CounterRow};
use super::failures::{Counted, Tally};
use super::input::TrialData;
use super::reading::{Reading, read};
use super::together::{self, Joint};
use crate::workload::{DecodeError, Remark, Workload, unreadable};

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
    /// The slices of each metric in the order of their cycles, where the arms took turns; empty otherwise.
    pub(crate) slices: Box<[Box<[f32]>]>,
    /// What only a probe's report tells.
    pub(crate) probe: Option<Box<ProbeFacts>>,
    /// What the workload says of the trial; a box of nothing takes no memory of its own.
    pub(crate) remarks: Box<[Remark]>,
    /// What its instances did, one by one, where they were started together.
    pub(crate) joint: Option<Box<Joint>>,
    /// Another trial of the same arm and block came before and was replaced.
    pub(crate) replaced: bool,
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
    /// Batches that are short against the clock.
    pub(crate) coarse: bool,
    /// The `T(2k)/T(k)` that is farthest from two.
    pub(crate) linearity: Option<f64>,
    /// What causes are told by.
    pub(crate) counters: Box<CounterRow>,
}

/// The parts of a `probe/1` report that are not samples; the values themselves are not read again.
#[derive(Deserialize)]
struct Extras<'a> {
    revision: u32,
    #[serde(borrow)]
    series: Vec<SeriesHead<'a>>,
    #[serde(default)]
    unavailable: BTreeMap<String, Reason>,
    #[serde(default, borrow)]
    checksum: Option<Cow<'a, str>>,
    canary_ns: [f64; 2],
    elapsed_ns: u64,
    counters: BTreeMap<String, f64>,
    timer: BTreeMap<String, f64>,
    #[serde(default)]
    command: Option<CommandHead>,
    #[serde(default)]
    span: Option<WorkSpan>,
    #[serde(default)]
    sliced: Option<IgnoredAny>,
    #[serde(default)]
    timed_ns: Option<u64>,
}

/// What a program used; its output is not read again.
#[derive(Deserialize)]
struct CommandHead {
    wall_ns: u64,
    #[serde(default)]
    usage: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct SeriesHead<'a> {
    #[serde(borrow)]
    metric: Cow<'a, str>,
    unit: tare_model::Unit,
    #[serde(rename = "values")]
    _values: IgnoredAny,
    batch: u64,
    #[serde(default)]
    linearity: Option<f64>,
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
        }
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

    /// Decodes one trial.
    pub(crate) fn add(&mut self, data: &TrialData) {
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
        let raw = match &data.outcome {
            Outcome::Completed(raw) => raw,
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
        };
        let Some(definition) = group.workload else {
            let reason = format!("this version of Tare has no workload `{workload}`");
            self.tally.count(counted(Absence::Failed, &reason));
            return;
        };
        let decoded = if raw.format == INSTANCES_FORMAT {
            together::decode(definition, raw)
        } else {
            decode(definition, raw)
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
                    evidence::replace(&mut probe.counters, |name| data.charged.get(name).copied());
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
                    slices: decoded.slices,
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
            }
            Err(DecodeError::Unavailable(reason)) => self.tally.count(Counted {
                hint: super::failures::hint_for(&reason, &self.arm_specs[arm_index]),
                ..counted(Absence::Unavailable, &reason)
            }),
            Err(problem) => self.tally.count(counted(Absence::Failed, &problem)),
        }
    }
}

/// What can be read from one trial.
pub(super) struct Decoded {
    pub(super) readings: Box<[Option<Reading>]>,
    pub(super) slices: Box<[Box<[f32]>]>,
    pub(super) unavailable: BTreeMap<String, Reason>,
    pub(super) probe: Option<ProbeFacts>,
    pub(super) remarks: Vec<Remark>,
    pub(super) span: Option<WorkSpan>,
    /// Time in which its values were taken, where it says so.
    pub(super) timed_ns: Option<u64>,
    pub(super) joint: Option<Box<Joint>>,
}

pub(super) fn decode(
    workload: &'static dyn Workload,
    raw: &RawOutput,
) -> Result<Decoded, DecodeError> {
    let garbled = |problem: String| DecodeError::Garbled {
        format: raw.format.escape_default().to_string(),
        problem,
    };
    let samples = workload.decode(raw)?;
    let extras = if raw.format == PROBE_FORMAT {
        let extras: Extras<'_> =
            serde_json::from_slice(&raw.stdout.0).map_err(|error| garbled(unreadable(&error)))?;
        Some(extras)
    } else {
        None
    };
    let mut readings = Vec::with_capacity(workload.metrics().len());
    let is_sliced = extras
        .as_ref()
        .is_some_and(|extras| extras.sliced.is_some());
    let mut slices = Vec::new();
    let mut coarse = false;
    // A probe's own batches are of equal work in native code: what MSER cuts off there is noise.
    let may_warm_up = extras.is_none();
    for metric in workload.metrics() {
        let Some(sample) = samples.iter().find(|it| it.metric.as_str() == metric.id) else {
            readings.push(None);
            if is_sliced {
                slices.push(Box::default());
            }
            continue;
        };
        if is_sliced {
            slices.push(
                sample
                    .observations
                    .iter()
                    .map(|value| *value as f32)
                    .collect(),
            );
        }
        let Some(reading) = read(&sample.observations, metric.better, may_warm_up) else {
            return Err(DecodeError::NoValue {
                metric: metric.id.to_owned(),
                problem: "it holds what is no number".to_owned(),
            });
        };
        readings.push(Some(reading));
        if let Some(extras) = &extras {
            coarse |= is_coarse(extras, metric.id, reading.floor);
        }
    }
    if readings.iter().all(Option::is_none) {
        return Err(garbled(
            "none of the workload's metrics is in the output".to_owned(),
        ));
    }
    let timed_ns = extras.as_ref().and_then(|extras| {
        let command = extras.command.as_ref().map(|command| command.wall_ns);
        command.or(extras.timed_ns)
    });
    let (unavailable, probe, span) = match extras {
        Some(extras) => {
            let observations = samples.iter().map(|it| it.observations.len()).sum();
            let probe = probe_facts(&extras, coarse, observations);
            (extras.unavailable, Some(probe), extras.span)
        }
        None => (BTreeMap::new(), None, None),
    };
    Ok(Decoded {
        readings: readings.into_boxed_slice(),
        slices: slices.into_boxed_slice(),
        unavailable,
        probe,
        remarks: workload.remarks(raw),
        span,
        timed_ns,
        joint: None,
    })
}

/// Whether the shortest batch of a series of times is less than ten steps of the clock, or less than
/// twenty readings of it (Hoefler & Belli 2015: five per cent, tenfold precision).
fn is_coarse(extras: &Extras<'_>, metric: &str, floor_ns: f64) -> bool {
    let timer = |name| extras.timer.get(name).copied().unwrap_or(0.0);
    let shortest = 10.0 * timer("resolution_ns");
    let shortest = f64::max(shortest, 20.0 * timer("cost_ns"));
    extras
        .series
        .iter()
        .filter(|series| series.metric == metric && series.unit == tare_model::Unit::Nanosecond)
        .any(|series| floor_ns * (series.batch as f64) < shortest)
}

/// Operations that a trial holds. Batches of several series are taken as equally many: what matters is that both
/// arms are counted alike.
fn units(extras: &Extras<'_>, observations: usize) -> f64 {
    let series = extras.series.len().max(1) as f64;
    let batches: u64 = extras.series.iter().map(|series| series.batch).sum();
    (observations.max(1) as f64 / series) * (batches.max(1) as f64)
}

fn counters(extras: &Extras<'_>, observations: usize) -> CounterRow {
    let mut row = evidence::row(|name| extras.counters.get(name).copied());
    let wall_ns = match &extras.command {
        // The program's own usage, and not that of the worker around it.
        Some(command) => {
            evidence::replace(&mut row, |name| command.usage.get(name).copied());
            evidence::replace(&mut row, |name| {
                name.starts_with("children_").then_some(0.0)
            });
            command.wall_ns
        }
        None => extras.elapsed_ns,
    };
    evidence::replace(&mut row, |name| match name {
        "wall_ns" => Some(wall_ns as f64),
        "units" => Some(units(extras, observations)),
        _ => None,
    });
    row
}

fn probe_facts(extras: &Extras<'_>, coarse: bool, observations: usize) -> ProbeFacts {
    let counter = |name| extras.counters.get(name).copied();
    let canary = extras.canary_ns.into_iter().filter(|ns| *ns > 0.0);
    let distance = |value: &f64| (value - 2.0).abs();
    ProbeFacts {
        revision: extras.revision,
        checksum: extras.checksum.as_deref().map(Box::from),
        elapsed_ns: extras.elapsed_ns,
        canary_ns: canary.reduce(f64::min),
        steal_ns: counter("steal_ticks").map(|ticks| ticks * TICK_NS),
        throttled_ns: counter("throttled_ns"),
        major_faults: counter("majflt"),
        clock_cost_ns: extras.timer.get("cost_ns").copied(),
        coarse,
        counters: Box::new(counters(extras, observations)),
        linearity: extras
            .series
            .iter()
            .filter_map(|series| series.linearity)
            .filter(|value| value.is_finite())
            .reduce(|a, b| if distance(&b) > distance(&a) { b } else { a }),
    }
}
