//! The stopping rule: decides which workloads have been measured well enough.
//!
//! Fixed width (`METHODOLOGY.md`, *Stopping*): a workload is done when, in every arm, every metric's 95 % interval of
//! ln(ratio) has a half-width of at most ln(1 + margin)/2, or ln(1 + precision) if the study specifies one. The rule
//! looks at widths, never at whether an interval excludes 0, so that repeated looks hardly bias the result; only
//! differences of half as much again need less. No workload is done before a single difference in it could pass the
//! correction over all cells of its arm. From widths it also estimates how many blocks are still needed. It shares
//! the void rules, the pairing, the estimate and the widening with the report.
//! Trials are decoded when they are added, and only workloads that are not done are estimated again. Interim
//! estimates can be shown to the user; the rule itself ignores them.
//! Limits: ignores diagnostics; a drifting cell can be narrow.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::study::A_PRIME;
use tare_model::{ArmId, Facts, Study, Verdict, whole_count};
use tare_stats::{Needed, verdict};

use super::cell::target_half_width;
use super::collect::Collector;
use super::input::TrialRef;
use super::kept_trial::{Group, GroupKey};
use super::pairs::{Pairs, Reference};
use super::{Find, blocks_to_pass, effect, void};

/// If the study sets no precision, more blocks are worth their time until the interval is this many times narrower
/// than the margin requires.
const FINEST: f64 = 2.0;

/// Decides which workloads need no more blocks.
pub struct PrecisionRule<'a> {
    study: Study,
    collected: Collector<'a>,
    done: BTreeSet<u32>,
    /// By cell: its work, its arm's index in the study, its metric's index in the workload.
    seen: BTreeMap<(GroupKey, usize, usize), Verdict>,
}

/// Interim verdicts of an arm's metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoFar {
    /// The arm.
    pub arm: String,
    /// Number of metrics with a higher cost.
    pub more: usize,
    /// Number of metrics with a lower cost.
    pub less: usize,
    /// Number of metrics with a negligible difference.
    pub nothing: usize,
    /// Number of inconclusive metrics.
    pub open: usize,
}

impl std::fmt::Debug for PrecisionRule<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("PrecisionRule")
            .field("study", &self.study.id)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl<'a> PrecisionRule<'a> {
    /// Creates a rule without trials.
    pub fn new(study: &Study, find: Find<'a>) -> Self {
        let mut collected = Collector::new(study, find);
        // The rule is evaluated after every block; compared blocks are not compared again.
        collected.drop_slices();
        Self {
            study: study.clone(),
            collected,
            done: BTreeSet::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Adds one trial. Each trial once, between trials, in any order.
    pub fn add<'t>(&mut self, data: impl Into<TrialRef<'t>>) {
        self.collected.add(data.into());
    }

    /// Returns how many more blocks each workload of the study needs, in its order: 0 if it is done, infinitely many
    /// if nothing is known yet. Call after whole blocks. A workload that needs none at all stays done. A metric
    /// without a value or a ratio in an arm does not hold its workload back: no number of blocks would help. Trials
    /// that are void by the facts found `inside` the arms do not count, as in the report.
    pub fn needed(&mut self, inside: &BTreeMap<ArmId, Facts>) -> Vec<Needed> {
        let struck = void::take_out(&self.study, |arm| inside.get(arm), &mut self.collected);
        let needed = self.needed_by_what_counts();
        // A later block may show that the clocks agree, or that all work differed.
        void::put_back(struck, &mut self.collected);
        needed
    }

    fn needed_by_what_counts(&mut self) -> Vec<Needed> {
        let mut needed: Vec<Option<Needed>> = vec![None; self.study.workloads.len()];
        let groups = self.collected.groups.iter();
        let looked: Vec<(GroupKey, Vec<CellState>)> = groups
            .map(|(key, group)| {
                let is_done = self.done.contains(&key.workload_index);
                let cells = (!is_done).then(|| self.cells(group));
                (*key, cells.unwrap_or_default())
            })
            .collect();
        for (key, cells) in &looked {
            let known = cells
                .iter()
                .filter_map(|cell| Some(((*key, cell.arm, cell.metric), cell.word?)));
            self.seen.extend(known);
        }
        for (key, cells) in looked {
            let Some(most) = needed.get_mut(key.workload_index as usize) else {
                continue;
            };
            let own = cells.iter().fold(Needed::NOTHING, |own, cell| {
                own.with(cell.needed).with(self.until_it_could_pass(cell))
            });
            *most = Some(most.map_or(own, |most| most.with(own)));
        }
        let is_done = |needed: &Option<Needed>| needed.is_some_and(|needed| needed.most <= 0.0);
        let places = (0..).zip(&needed);
        let done = places.filter(|(_, needed)| is_done(needed));
        self.done.extend(done.map(|(index, _)| index));
        let or_unknown = |needed: Option<Needed>| needed.unwrap_or(Needed::UNKNOWN);
        needed.into_iter().map(or_unknown).collect()
    }

    /// Blocks until a single difference could pass the correction over all cells of its arm: fewer could show it, but
    /// it would not pass.
    fn until_it_could_pass(&self, cell: &CellState) -> Needed {
        let of_arm = self.seen.keys().filter(|(_, arm, _)| *arm == cell.arm);
        let least = blocks_to_pass(of_arm.count().max(1));
        let more = f64::from(least.saturating_sub(cell.n_blocks));
        Needed {
            enough: more,
            most: more,
        }
    }

    /// Returns the interim verdicts at the last call of `needed`, one entry for each arm that has an interval.
    pub fn so_far(&self) -> Vec<SoFar> {
        let arms = self.study.arms.iter().enumerate();
        arms.filter_map(|(place, arm)| {
            let seen = self.seen.iter().filter(|((_, arm, _), _)| *arm == place);
            let words: Vec<Verdict> = seen.map(|(_, word)| *word).collect();
            let count = |is: fn(&Verdict) -> bool| words.iter().filter(|word| is(word)).count();
            let (more, less, open) = (
                count(|word| matches!(word, Verdict::MaterialCost | Verdict::Cost)),
                count(|word| matches!(word, Verdict::MaterialGain | Verdict::Gain)),
                count(|word| *word == Verdict::Inconclusive),
            );
            (!words.is_empty()).then(|| SoFar {
                arm: arm.id.to_string(),
                nothing: words.len() - more - less - open,
                more,
                less,
                open,
            })
        })
        .collect()
    }

    /// What each cell of the group still needs.
    fn cells(&self, group: &Group) -> Vec<CellState> {
        let study = &self.study;
        let Some(workload) = group.workload else {
            return Vec::new();
        };
        // The A′ arm decides only if there is no other: its cells are counted, not quoted.
        let has_others = study
            .arms
            .iter()
            .any(|arm| arm.id != study.baseline && arm.id.as_str() != A_PRIME);
        let arms = study.arms.iter().enumerate().filter(|(_, arm)| {
            arm.id != study.baseline && !(has_others && arm.id.as_str() == A_PRIME)
        });
        let mut cells = Vec::new();
        for (arm, _) in arms {
            let Some(against) = Reference::baseline(study, &self.collected, arm) else {
                return Vec::new();
            };
            for (place, metric) in workload.metrics().iter().enumerate() {
                let pairs = Pairs::new(group, against, arm, place);
                if pairs.all.is_empty() {
                    continue;
                }
                let Some(d) = pairs.ln_ratios(metric.better, |reading| reading.typical) else {
                    continue;
                };
                let mut cell = CellState {
                    arm,
                    metric: place,
                    n_blocks: whole_count(d.len()),
                    needed: Needed::UNKNOWN,
                    word: None,
                };
                if let Ok(interval) = effect::interval(&d, pairs.launches()) {
                    let margin = study.margins.for_class(metric.class);
                    let target = target_half_width(study, margin, &interval);
                    let finest = match study.precision {
                        Some(_) => target,
                        None => target / FINEST,
                    };
                    cell.needed =
                        Needed::from_half_width(d.len(), interval.half_width(), target, finest);
                    cell.word = Some(verdict(&interval, &interval, margin));
                }
                cells.push(cell);
            }
        }
        cells
    }
}

/// The current state of one cell.
struct CellState {
    /// The arm's index in the study.
    arm: usize,
    /// The metric's index in the workload.
    metric: usize,
    /// Number of blocks that it has.
    n_blocks: u32,
    /// Number of blocks that it still needs.
    needed: Needed,
    /// Its interim verdict; `None` if there is no interval yet.
    word: Option<Verdict>,
}
