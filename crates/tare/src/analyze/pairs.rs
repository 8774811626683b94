//! From the readings of a block to its difference: the only place where an arm is held against another.
//!
//! Table, stopping rule, `why` and proof all ask here, so that they cannot read the same trials differently. An
//! arm is held against the baseline, which is the host and, where it ran in the block as well, its second copy A′:
//! the level of the baseline is then the mean of the two logarithms, which has half of one copy's noise and leaves
//! about 13 % of the interval's width away. Against another arm, or for A′ itself, there is one copy.
//! A difference is taken twice, as the logarithm of the ratio of costs and in the metric's own unit.
//! What it cannot see: blocks in which only one side succeeded. They are counted and left out; if failing and
//! being slow go together, what is left flatters the arm.

use std::collections::BTreeMap;

use tare_model::study::A_PRIME;
use tare_model::{Better, Study};

use super::collect::Collector;
use super::kept::{Group, Kept};
use super::reading::{Reading, ln_cost};

/// What one arm left of one metric in one block.
pub(crate) type Side<'a> = (&'a Kept, Reading);

/// What an arm is held against, by place in the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Against {
    arm: usize,
    /// A second copy of it, whose readings count as much where there are any.
    twin: Option<usize>,
}

impl Against {
    /// The baseline, as `arm` is held against it; `None` where the study has no such arm.
    pub(crate) fn baseline(study: &Study, collected: &Collector<'_>, arm: usize) -> Option<Self> {
        let place = |id: &str| collected.arm_index(id);
        let baseline = place(study.baseline.as_str())?;
        // A′ is there to be held against the host alone; with itself in the baseline it could not alarm.
        let twin =
            place(A_PRIME).filter(|twin| *twin != arm && *twin != baseline && arm != baseline);
        Some(Self {
            arm: baseline,
            twin,
        })
    }

    /// Its second copy, and the first alone that it can be held against.
    pub(crate) fn copies(self) -> Option<(usize, Self)> {
        Some((self.twin?, Self::arm(self.arm)))
    }

    /// One arm alone.
    pub(crate) fn arm(arm: usize) -> Self {
        Self { arm, twin: None }
    }
}

/// One side of a comparison in one block: an arm, or the two copies of the baseline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Level<'a> {
    pub(crate) first: Side<'a>,
    pub(crate) twin: Option<Side<'a>>,
}

impl<'a> Level<'a> {
    fn of(group: &'a Group, against: Against, block: u32, place: usize) -> Option<Self> {
        let side = |arm: usize| -> Option<Side<'a>> {
            let kept = group.arms[arm].get(block)?;
            Some((kept, kept.readings[place]?))
        };
        Some(Self {
            first: side(against.arm)?,
            twin: against.twin.and_then(side),
        })
    }

    /// The trials behind it.
    pub(crate) fn trials(&self) -> impl Iterator<Item = Side<'a>> {
        [Some(self.first), self.twin].into_iter().flatten()
    }

    /// ln of the cost; `None` if a value has no logarithm.
    pub(crate) fn ln_cost(&self, better: Better, pick: impl Fn(&Reading) -> f64) -> Option<f64> {
        let logarithms: Option<Vec<f64>> = self
            .trials()
            .map(|(_, reading)| ln_cost(pick(&reading), better))
            .collect();
        let logarithms = logarithms?;
        Some(logarithms.iter().sum::<f64>() / logarithms.len() as f64)
    }

    /// The value in the metric's unit: of two copies the geometric mean, which is what the mean of the logarithms
    /// stands for, and the arithmetic one where a value has no logarithm.
    pub(crate) fn value(&self, pick: impl Fn(&Reading) -> f64) -> f64 {
        let first = pick(&self.first.1);
        let Some((_, twin)) = &self.twin else {
            return first;
        };
        let twin = pick(twin);
        if first > 0.0 && twin > 0.0 {
            first * (twin / first).sqrt()
        } else {
            f64::midpoint(first, twin)
        }
    }
}

/// One block in which both sides left a reading of one metric.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) block: u32,
    pub(crate) base: Level<'a>,
    pub(crate) env: Side<'a>,
}

impl Pair<'_> {
    /// ln of the ratio of costs: the block's difference d. `None` if a value has no logarithm.
    pub(crate) fn ln_ratio(&self, better: Better, pick: impl Fn(&Reading) -> f64) -> Option<f64> {
        Some(ln_cost(pick(&self.env.1), better)? - self.base.ln_cost(better, pick)?)
    }

    /// The difference in the metric's unit, as measured.
    pub(crate) fn difference(&self, pick: impl Fn(&Reading) -> f64) -> f64 {
        pick(&self.env.1) - self.base.value(pick)
    }
}

/// The blocks of one metric, in order.
pub(crate) struct Pairs<'a> {
    pub(crate) all: Vec<Pair<'a>>,
    /// Blocks in which only one side left a reading.
    pub(crate) halves: usize,
    /// The trials of the arm.
    env: Vec<Side<'a>>,
    /// The trials of the baseline, those of its second copy included.
    base: Vec<Side<'a>>,
    launches: Vec<u32>,
}

impl<'a> Pairs<'a> {
    pub(crate) fn of(group: &'a Group, against: Against, arm: usize, place: usize) -> Self {
        let (mut all, mut halves) = (Vec::new(), 0);
        let mut seen: Vec<u32> = group.arms[against.arm].keys().collect();
        seen.extend(group.arms[arm].keys());
        seen.sort_unstable();
        seen.dedup();
        for block in seen {
            let base = Level::of(group, against, block, place);
            let env = Level::of(group, Against::arm(arm), block, place);
            match (base, env) {
                (Some(base), Some(env)) => all.push(Pair {
                    block,
                    base,
                    env: in_turn(base, env.first, place, against),
                }),
                // Where several runs are one, an arm was not tried in the blocks of all.
                (Some(_), None) if !group.tried[arm].contains(block) => {}
                (None, None) => {}
                _ => halves += 1,
            }
        }
        Self::with(all, halves)
    }

    pub(super) fn with(all: Vec<Pair<'a>>, halves: usize) -> Self {
        Self {
            halves,
            env: all.iter().map(|pair| pair.env).collect(),
            base: all.iter().flat_map(|pair| pair.base.trials()).collect(),
            launches: all.iter().map(|pair| pair.env.0.launch).collect(),
            all,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// The trials of the arm.
    pub(crate) fn env(&self) -> &[Side<'a>] {
        &self.env
    }

    /// The trials of the baseline, those of its second copy included.
    pub(crate) fn base(&self) -> &[Side<'a>] {
        &self.base
    }

    /// The trials of both.
    pub(crate) fn trials(&self) -> impl Iterator<Item = &Side<'a>> {
        self.base.iter().chain(&self.env)
    }

    /// The launch of each block.
    pub(crate) fn launches(&self) -> &[u32] {
        &self.launches
    }

    /// ln cost ratios in block order; `None` if a value has no logarithm.
    pub(crate) fn ln_ratios(
        &self,
        better: Better,
        pick: impl Fn(&Reading) -> f64 + Copy,
    ) -> Option<Vec<f64>> {
        let pairs = self.all.iter();
        pairs.map(|pair| pair.ln_ratio(better, pick)).collect()
    }
}

/// The side of the arm, and where it took turns with the baseline its typical value such that the ratio of the two
/// is the median over the cycles of ln(arm/baseline): slices of one cycle met the same machine, medians of whole
/// blocks did not (METHOD 10).
///
/// Of two copies of the baseline each has its own median, and the mean of these counts. A median against the mean of
/// the two would lie too low: what disturbs a slice only makes it longer, so one of two copies is disturbed more often
/// than one arm, and three arms that are the same would seem to differ.
fn in_turn<'a>(
    base: Level<'a>,
    (kept, mut reading): Side<'a>,
    place: usize,
    against: Against,
) -> Side<'a> {
    let to = |copy: &Kept, arm: usize| kept.turns.ratio(&copy.turns, place, arm);
    let first = to(base.first.0, against.arm);
    let twin = base.twin.zip(against.twin);
    let second = twin.and_then(|((copy, _), arm)| to(copy, arm));
    // Where one copy has none, as where one of its slices has no logarithm, the other's counts alone.
    let ratio = match (first, second) {
        (Some(one), Some(other)) => Some(f64::midpoint(one, other)),
        (one, other) => one.or(other),
    };
    if let Some(ratio) = ratio {
        reading.typical = base.value(|reading| reading.typical) * ratio.exp();
    }
    (kept, reading)
}

/// A block, and the launch that its arms were started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Its number in the run.
    pub number: u32,
    /// The number of the launch.
    pub launch: u32,
}

/// What the typical values of two arms differ by, in the metric's unit, by block.
pub(crate) fn differences(
    group: &Group,
    against: Against,
    arm: usize,
    place: usize,
) -> BTreeMap<Block, f64> {
    let pairs = Pairs::of(group, against, arm, place).all.into_iter();
    pairs
        .map(|pair| {
            let block = Block {
                number: pair.block,
                launch: pair.env.0.launch,
            };
            (block, pair.difference(|reading| reading.typical))
        })
        .collect()
}

/// The typical values of one side, in the metric's unit, by block.
pub(crate) fn values(group: &Group, of: Against, place: usize) -> BTreeMap<Block, f64> {
    let blocks = group.arms[of.arm].keys();
    blocks
        .filter_map(|number| {
            let level = Level::of(group, of, number, place)?;
            let launch = level.first.0.launch;
            let value = level.value(|reading| reading.typical);
            Some((Block { number, launch }, value))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "means and differences of whole numbers")]
mod tests {
    use super::*;
    use crate::analyze::turns::Turns;

    fn kept() -> Kept {
        Kept {
            position: 0,
            launch: 0,
            host_ns: 1,
            readings: Box::new([]),
            turns: Turns::Whole,
            probe: None,
            remarks: Box::new([]),
            joint: None,
            course: None,
            replaced: false,
        }
    }

    const BOTH: Against = Against {
        arm: 0,
        twin: Some(1),
    };

    fn reading(typical: f64) -> Reading {
        Reading {
            typical,
            floor: typical,
            unsteady: false,
        }
    }

    #[test]
    fn arms_that_took_turns_are_compared_cycle_by_cycle() {
        // A machine that becomes twice as slow after the first third; the arm costs a tenth more throughout, and one of
        // its slices was disturbed.
        let of = |values: &[f32]| Kept {
            turns: Turns::Slices(Box::new([values.into()])),
            ..kept()
        };
        let (host, twin, arm) = (
            of(&[100.0, 200.0, 200.0]),
            of(&[100.0, 200.0, 200.0]),
            of(&[110.0, 900.0, 220.0]),
        );
        let base = Level {
            first: (&host, reading(200.0)),
            twin: Some((&twin, reading(200.0))),
        };
        let pair_of = |base, typical| Pair {
            block: 0,
            base,
            env: in_turn(base, (&arm, reading(typical)), 0, BOTH),
        };
        let pair = pair_of(base, 220.0);
        let d = pair.ln_ratio(Better::Lower, |reading| reading.typical);
        assert!((d.unwrap() - 1.1_f64.ln()).abs() < 1e-6);
        let rate = pair.ln_ratio(Better::Higher, |reading| reading.typical);
        assert!((rate.unwrap() + 1.1_f64.ln()).abs() < 1e-6);
        // One slice of a copy that has no logarithm leaves the other copy, and no ratio of medians.
        let spoilt = of(&[100.0, 0.0, 200.0]);
        for (first, second) in [(&host, &spoilt), (&spoilt, &twin)] {
            let base = Level {
                first: (first, reading(200.0)),
                twin: Some((second, reading(200.0))),
            };
            let d = pair_of(base, 900.0).ln_ratio(Better::Lower, |reading| reading.typical);
            assert!((d.unwrap() - 1.1_f64.ln()).abs() < 1e-6);
        }
        // Without slices on one side it is a trial like any other.
        let trial = kept();
        let side = in_turn(base, (&trial, reading(300.0)), 0, BOTH);
        assert_eq!(side.1.typical, 300.0);
    }

    #[test]
    fn arms_that_are_the_same_do_not_differ_where_slices_are_only_ever_disturbed_upwards() {
        let mut random = tare_stats::Stream::new(7, 0, 0);
        let mut slices = || -> Kept {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "slices are kept in 24 bits"
            )]
            let disturbed = |_| 100.0 - 3.0 * (1.0 - random.unit()).ln() as f32;
            Kept {
                turns: Turns::Slices(Box::new([(0..2_001).map(disturbed).collect()])),
                ..kept()
            }
        };
        let kepts: Vec<Kept> = (0..150).map(|_| slices()).collect();
        let differences: Vec<f64> = kepts
            .chunks_exact(3)
            .map(|three| {
                let base = Level {
                    first: (&three[0], reading(100.0)),
                    twin: Some((&three[1], reading(100.0))),
                };
                let pair = Pair {
                    block: 0,
                    base,
                    env: in_turn(base, (&three[2], reading(100.0)), 0, BOTH),
                };
                pair.ln_ratio(Better::Lower, |reading| reading.typical)
                    .unwrap()
            })
            .collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        // Against the mean of both copies it is 0.004 less; the error of this mean is 0.0001.
        assert!(mean.abs() < 0.000_6, "{mean}");
    }

    #[test]
    fn two_copies_of_the_baseline_count_by_the_mean_of_their_logarithms() {
        let kept = kept();
        let pair = |first, twin: Option<f64>, env| Pair {
            block: 0,
            base: Level {
                first: (&kept, reading(first)),
                twin: twin.map(|value| (&kept, reading(value))),
            },
            env: (&kept, reading(env)),
        };
        let d = |pair: Pair<'_>, better| pair.ln_ratio(better, |reading| reading.typical);
        let two = pair(4.0, Some(9.0), 12.0);
        assert!((d(two, Better::Lower).unwrap() - 2.0_f64.ln()).abs() < 1e-12);
        assert!((d(two, Better::Higher).unwrap() + 2.0_f64.ln()).abs() < 1e-12);
        assert_eq!(two.difference(|reading| reading.typical), 6.0);
        let one = pair(4.0, None, 12.0);
        assert!((d(one, Better::Lower).unwrap() - 3.0_f64.ln()).abs() < 1e-12);
        // A count of none has no logarithm, and still a difference.
        let none = pair(0.0, Some(2.0), 12.0);
        assert_eq!(d(none, Better::Lower), None);
        assert_eq!(none.difference(|reading| reading.typical), 11.0);
    }
}
