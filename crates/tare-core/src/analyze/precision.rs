//! The stopping rule: which workloads have been measured well enough.
//!
//! Fixed width (`METHODOLOGY.md`, *Stopping*): a workload is done when, in every arm, every metric's 95 %
//! interval of ln(ratio) has a half-width of at most ln(1 + margin)/2, or ln(1 + precision) where the study
//! asks for one. The rule looks at widths, never at whether an interval leaves out 0, so that looking repeatedly
//! hardly biases what is found; only what differs by half as much again is asked for less. No workload is done before a
//! single difference in it could pass the correction over all cells of its arm. From widths it also says how many blocks
//! are still needed. It shares what is void, the pairing, the estimate and the widening with the report.
//! Trials are decoded when they are added, and only workloads that are not done are estimated again. What the estimates
//! say so far can be told to whoever waits; the rule itself does not heed it.
//! What it cannot see: diagnostics; a drifting cell can be narrow.

use std::collections::{BTreeMap, BTreeSet};

use tare_model::study::A_PRIME;
use tare_model::{ArmId, Facts, Study, Verdict, whole_count};
use tare_stats::{Needed, verdict};

use super::cell::target_half_width;
use super::collect::Collector;
use super::input::TrialRef;
use super::kept::{Group, GroupKey};
use super::pairs::{Against, Pairs};
use super::{Find, blocks_to_pass, effect, void};

/// Where the study leaves it to the margin how precise a cell is to be, blocks are worth their time until its interval is
/// so many times as narrow as that.
const FINEST: f64 = 2.0;

/// Decides which workloads need no more blocks.
pub struct PrecisionRule<'a> {
    study: Study,
    collected: Collector<'a>,
    done: BTreeSet<u32>,
    /// By cell: its work, its arm's place in the study, its metric's place in the workload.
    seen: BTreeMap<(GroupKey, usize, usize), Verdict>,
}

/// What an arm's metrics say so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoFar {
    /// The arm.
    pub arm: String,
    /// How many cost more.
    pub more: usize,
    /// How many cost less.
    pub less: usize,
    /// How many differ by nothing that matters.
    pub nothing: usize,
    /// Of how many neither is shown.
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
    /// A rule that has seen nothing yet.
    pub fn new(study: &Study, find: Find<'a>) -> Self {
        let mut collected = Collector::new(study, find);
        // It is asked after every block: what was compared once is not compared again.
        collected.drop_slices();
        Self {
            study: study.clone(),
            collected,
            done: BTreeSet::new(),
            seen: BTreeMap::new(),
        }
    }

    /// Takes note of one trial. Every trial once, between trials, in any order.
    pub fn add<'t>(&mut self, data: impl Into<TrialRef<'t>>) {
        self.collected.add(data.into());
    }

    /// For each workload of the study, in its order, how many more blocks it needs: 0 where it is done, infinitely
    /// many where nothing can be said yet. To be asked after whole blocks. A workload that needs none at all stays so. A
    /// metric that has no value in an arm, or no ratio, does not hold its workload back: no number of blocks would help.
    /// What is void by what was found `inside` of the arms does not count, as in the report.
    pub fn needed(&mut self, inside: &BTreeMap<ArmId, Facts>) -> Vec<Needed> {
        let struck = void::take_out(&self.study, |arm| inside.get(arm), &mut self.collected);
        let needed = self.needed_by_what_counts();
        // A later block may show that the clocks agree, or that the work of all was another's.
        void::put_back(struck, &mut self.collected);
        needed
    }

    fn needed_by_what_counts(&mut self) -> Vec<Needed> {
        let mut needed: Vec<Option<Needed>> = vec![None; self.study.workloads.len()];
        let groups = self.collected.groups.iter();
        let looked: Vec<(GroupKey, Vec<Seen>)> = groups
            .map(|(key, group)| {
                let is_done = self.done.contains(&key.workload_index);
                (
                    *key,
                    if is_done {
                        Vec::new()
                    } else {
                        self.cells(group)
                    },
                )
            })
            .collect();
        for (key, cell) in looked
            .iter()
            .flat_map(|(key, cells)| cells.iter().map(move |cell| (key, cell)))
        {
            if let Some(word) = cell.word {
                self.seen.insert((*key, cell.arm, cell.metric), word);
            }
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

    /// Blocks until a difference that stands alone could pass the correction over all cells of its arm: fewer could
    /// show it and not hold it up.
    fn until_it_could_pass(&self, cell: &Seen) -> Needed {
        let of_arm = self.seen.keys().filter(|(_, arm, _)| *arm == cell.arm);
        let least = blocks_to_pass(of_arm.count().max(1));
        let more = f64::from(least.saturating_sub(cell.n_blocks));
        Needed {
            enough: more,
            most: more,
        }
    }

    /// What was seen when it was last asked what is needed, an entry for each arm of which there is an interval.
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
    fn cells(&self, group: &Group) -> Vec<Seen> {
        let study = &self.study;
        let Some(workload) = group.workload else {
            return Vec::new();
        };
        // The A′ arm only decides where there is no other: its cells are counted, not quoted.
        let has_others = study
            .arms
            .iter()
            .any(|arm| arm.id != study.baseline && arm.id.as_str() != A_PRIME);
        let arms = study.arms.iter().enumerate().filter(|(_, arm)| {
            arm.id != study.baseline && !(has_others && arm.id.as_str() == A_PRIME)
        });
        let mut cells = Vec::new();
        for (arm, _) in arms {
            let Some(against) = Against::baseline(study, &self.collected, arm) else {
                return Vec::new();
            };
            for (place, metric) in workload.metrics().iter().enumerate() {
                let pairs = Pairs::of(group, against, arm, place);
                if pairs.all.is_empty() {
                    continue;
                }
                let Some(d) = pairs.ln_ratios(metric.better, |reading| reading.typical) else {
                    continue;
                };
                let mut cell = Seen {
                    arm,
                    metric: place,
                    n_blocks: whole_count(d.len()),
                    needed: Needed::UNKNOWN,
                    word: None,
                };
                if let Ok(interval) = effect::interval(&d, pairs.launches()) {
                    let margin = study.margins.of(metric.class);
                    let target = target_half_width(study, margin, &interval);
                    let finest = match study.precision {
                        Some(_) => target,
                        None => target / FINEST,
                    };
                    cell.needed = Needed::of(d.len(), interval.half_width(), target, finest);
                    cell.word = Some(verdict(&interval, &interval, margin));
                }
                cells.push(cell);
            }
        }
        cells
    }
}

/// One cell as it is at present.
struct Seen {
    /// The arm's place in the study.
    arm: usize,
    /// The metric's place in the workload.
    metric: usize,
    /// Blocks that it has.
    n_blocks: u32,
    /// Blocks that it still needs.
    needed: Needed,
    /// What it says so far; `None` where there is no interval yet.
    word: Option<Verdict>,
}
