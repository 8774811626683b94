//! Turns the readings of a block into its difference; the only place where arms are compared.
//!
//! Table, stopping rule, `why` and proof all use this file, so that they cannot read the same trials differently. An
//! arm is compared with the baseline, which is the host and, if it ran in the block as well, its second copy A′. The
//! two differences of a block are kept apart ([`Differences`]): each is symmetric about the effect if the noise is
//! alike, and their mean is not. Only the displayed baseline value is the mean of both copies. Against another arm,
//! or for A′ itself, there is one copy.
//! A difference is taken twice, as the logarithm of the ratio of costs and in the metric's unit.
//! Limits: blocks in which only one side succeeded are counted and left out; if failures correlate with slowness, the
//! rest flatters the arm.

use std::collections::BTreeMap;

use tare_model::study::A_PRIME;
use tare_model::{Better, Study};
use tare_stats::Differences;

use super::collect::Collector;
use super::kept_trial::{Group, KeptTrial};
use super::reading::{Reading, ln_cost};

/// One arm's trial and its reading of one metric, in one block.
pub(crate) type Side<'a> = (&'a KeptTrial, Reading);

/// The reference that an arm is compared with, by index in the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    arm: usize,
    /// Its second copy, if any, whose readings count as much.
    twin: Option<usize>,
}

impl Reference {
    /// The study's baseline as the reference of `arm`, with A′ as its twin unless `arm` is one of the two; `None` if the
    /// baseline is not an arm of the study.
    pub(crate) fn baseline(study: &Study, collected: &Collector<'_>, arm: usize) -> Option<Self> {
        let place = |id: &str| collected.arm_index(id);
        let baseline = place(study.baseline.as_str())?;
        // A′ is compared with the host alone; it could not alarm with itself in the baseline.
        let twin =
            place(A_PRIME).filter(|twin| *twin != arm && *twin != baseline && arm != baseline);
        Some(Self {
            arm: baseline,
            twin,
        })
    }

    /// The second copy, and the first alone to compare it with.
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
    fn new(group: &'a Group, against: Reference, block: u32, place: usize) -> Option<Self> {
        let side = |arm: usize| -> Option<Side<'a>> {
            let kept = group.arms[arm].get(block)?;
            Some((kept, kept.readings[place]?))
        };
        Some(Self {
            first: side(against.arm)?,
            twin: against.twin.and_then(side),
        })
    }

    /// The trials of this side.
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

    /// The value in the metric's unit: the geometric mean of two copies, which corresponds to the mean of the
    /// logarithms, or the arithmetic one if a value has no logarithm.
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
    /// The arm's trial, with its value next to the baseline's.
    pub(crate) env: Side<'a>,
    /// Its reading as compared with either copy; `None` if not compared.
    own: [Option<Reading>; 2],
}

impl<'a> Pair<'a> {
    /// Pairs both sides of a block, at the level of `against`.
    pub(super) fn new(
        block: u32,
        base: Level<'a>,
        env: Side<'a>,
        place: usize,
        against: Reference,
    ) -> Self {
        let (kept, mut shown) = env;
        let ratios = ratios_in_turn(&base, kept, place, against);
        let known: Vec<f64> = ratios.into_iter().flatten().collect();
        let own = if known.is_empty() {
            [Some(shown), base.twin.map(|_| shown)]
        } else {
            let copies = [Some(base.first), base.twin];
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            let own = [0, 1].map(|copy| {
                let ((_, of_copy), ratio) = copies[copy].zip(ratios[copy])?;
                Some(Reading {
                    typical: of_copy.typical * ratio.exp(),
                    ..shown
                })
            });
            shown.typical = base.value(|reading| reading.typical) * mean.exp();
            own
        };
        Self {
            block,
            base,
            env: (kept, shown),
            own,
        }
    }

    /// Applies `of` to the arm's reading and that of each copy; `None` if it is `None` for either.
    fn compared(&self, of: impl Fn(&Reading, &Reading) -> Option<f64>) -> Option<Differences> {
        let twin = self.own[1].as_ref().zip(self.base.twin.as_ref());
        let second = twin.map(|(own, (_, copy))| of(own, copy));
        let Some(own) = &self.own[0] else {
            return Some(Differences::one(second??));
        };
        Some(Differences {
            first: of(own, &self.base.first.1)?,
            second: match second {
                Some(second) => Some(second?),
                None => None,
            },
        })
    }

    /// ln of the ratio of costs to either copy. `None` if a value has no logarithm.
    pub(crate) fn ln_ratios(
        &self,
        better: Better,
        pick: impl Fn(&Reading) -> f64,
    ) -> Option<Differences> {
        let ln = |reading: &Reading| ln_cost(pick(reading), better);
        self.compared(|own, copy| Some(ln(own)? - ln(copy)?))
    }

    /// The distance of the two differences: ln(arm/first) − ln(arm/second), of values; `None` with one copy, or if a
    /// value has no logarithm.
    pub(crate) fn apart(&self) -> Option<f64> {
        let found = self.ln_ratios(Better::Lower, |reading| reading.typical)?;
        Some(found.first - found.second?)
    }

    /// The differences in the metric's unit, as measured.
    pub(crate) fn differences(&self, pick: impl Fn(&Reading) -> f64) -> Option<Differences> {
        self.compared(|own, copy| Some(pick(own) - pick(copy)))
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
    pub(crate) fn new(group: &'a Group, against: Reference, arm: usize, place: usize) -> Self {
        let (mut all, mut halves) = (Vec::new(), 0);
        let mut seen: Vec<u32> = group.arms[against.arm].keys().collect();
        seen.extend(group.arms[arm].keys());
        seen.sort_unstable();
        seen.dedup();
        for block in seen {
            let base = Level::new(group, against, block, place);
            let env = Level::new(group, Reference::arm(arm), block, place);
            match (base, env) {
                (Some(base), Some(env)) => {
                    all.push(Pair::new(block, base, env.first, place, against));
                }
                // In merged runs an arm was not tried in the blocks of all.
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
    ) -> Option<Vec<Differences>> {
        let pairs = self.all.iter();
        pairs.map(|pair| pair.ln_ratios(better, pick)).collect()
    }
}

/// For arms interleaved with the copies of the baseline, the median over the cycles of ln(arm/copy): slices of one
/// cycle met the same machine state, medians of whole blocks did not. If one copy has none, for example because a
/// slice has no logarithm, the other is used alone.
fn ratios_in_turn(
    base: &Level<'_>,
    kept: &KeptTrial,
    place: usize,
    against: Reference,
) -> [Option<f64>; 2] {
    let to = |(copy, _): Side<'_>, arm: usize| kept.turns.ratio(&copy.turns, place, arm);
    let twin = base.twin.zip(against.twin);
    [
        to(base.first, against.arm),
        twin.and_then(|(copy, arm)| to(copy, arm)),
    ]
}

/// A block, and the launch that its arms were started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Its number in the run.
    pub number: u32,
    /// The number of the launch.
    pub launch: u32,
}

/// Returns the difference of the typical values of two arms, in the metric's unit, by block.
pub(crate) fn differences(
    group: &Group,
    against: Reference,
    arm: usize,
    place: usize,
) -> BTreeMap<Block, Differences> {
    let pairs = Pairs::new(group, against, arm, place).all.into_iter();
    pairs
        .filter_map(|pair| {
            let block = Block {
                number: pair.block,
                launch: pair.env.0.launch,
            };
            Some((block, pair.differences(|reading| reading.typical)?))
        })
        .collect()
}

/// Returns the typical values of one side, in the metric's unit, by block.
pub(crate) fn values(group: &Group, of: Reference, place: usize) -> BTreeMap<Block, Differences> {
    let blocks = group.arms[of.arm].keys();
    blocks
        .filter_map(|number| {
            let level = Level::new(group, of, number, place)?;
            let launch = level.first.0.launch;
            let value = level.value(|reading| reading.typical);
            Some((Block { number, launch }, Differences::one(value)))
        })
        .collect()
}

#[allow(clippy::float_cmp, reason = "means and differences of whole numbers")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::turns::{Slices, Turns};

    const BOTH: Reference = Reference {
        arm: 0,
        twin: Some(1),
    };

    fn reading(typical: f64) -> Reading {
        Reading {
            typical,
            floor: typical,
            total: typical,
            unsteady: false,
        }
    }

    fn both(pair: &Pair<'_>, better: Better) -> Option<Differences> {
        pair.ln_ratios(better, |reading| reading.typical)
    }

    fn slices(values: &[f32]) -> KeptTrial {
        KeptTrial {
            turns: Turns::Slices(Slices {
                stage: None,
                metrics: Box::new([values.into()]),
            }),
            ..KeptTrial::default()
        }
    }

    fn is_near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6, "{found} and {expected}");
    }

    #[test]
    fn arms_that_took_turns_are_compared_cycle_by_cycle() {
        // A machine that becomes twice as slow after the first third; the arm costs a tenth more than the host
        // throughout and a fifth more than A′, and one of its slices was disturbed.
        let (host, twin, arm) = (
            slices(&[100.0, 200.0, 200.0]),
            slices(&[110.0 / 1.2, 220.0 / 1.2, 220.0 / 1.2]),
            slices(&[110.0, 900.0, 220.0]),
        );
        let base = |host, twin| Level {
            first: (host, reading(200.0)),
            twin: Some((twin, reading(180.0))),
        };
        let pair_of = |base, typical| Pair::new(0, base, (&arm, reading(typical)), 0, BOTH);
        let pair = pair_of(base(&host, &twin), 220.0);
        let d = both(&pair, Better::Lower).unwrap();
        is_near(d.first, 1.1_f64.ln());
        is_near(d.second.unwrap(), 1.2_f64.ln());
        is_near(pair.apart().unwrap(), (1.1_f64 / 1.2).ln());
        let rate = both(&pair, Better::Higher).unwrap();
        is_near(rate.first, -(1.1_f64.ln()));
        let shown = (200.0_f64 * 180.0).sqrt() * (1.1_f64 * 1.2).sqrt();
        is_near(pair.env.1.typical / shown, 1.0);
        // With a slice without a logarithm, only the other copy counts, and no ratio of medians is used.
        let spoilt = slices(&[100.0, 0.0, 200.0]);
        for (host, twin, expected) in [(&host, &spoilt, 1.1_f64), (&spoilt, &twin, 1.2)] {
            let d = both(&pair_of(base(host, twin), 900.0), Better::Lower).unwrap();
            is_near(d.first, expected.ln());
            assert_eq!(d.second, None);
        }
        // Without slices on one side, the trial counts as a whole.
        let trial = KeptTrial::default();
        let pair = Pair::new(0, base(&host, &twin), (&trial, reading(300.0)), 0, BOTH);
        assert_eq!(pair.env.1.typical, 300.0);
        let d = pair.differences(|reading| reading.typical).unwrap();
        assert_eq!(d, Differences::two(100.0, 120.0));
    }

    #[test]
    fn equal_arms_with_one_sided_noise_show_no_difference() {
        let mut random = tare_stats::Stream::new(7, 0, 0);
        let mut disturbed = || -> KeptTrial {
            #[allow(
                clippy::cast_possible_truncation,
                reason = "slices are kept in 24 bits"
            )]
            let slice = |_| 100.0 - 3.0 * (1.0 - random.unit()).ln() as f32;
            slices(&(0..2_001).map(slice).collect::<Vec<f32>>())
        };
        let kepts: Vec<KeptTrial> = (0..150).map(|_| disturbed()).collect();
        let differences: Vec<f64> = kepts
            .chunks_exact(3)
            .map(|three| {
                let base = Level {
                    first: (&three[0], reading(100.0)),
                    twin: Some((&three[1], reading(100.0))),
                };
                let pair = Pair::new(0, base, (&three[2], reading(100.0)), 0, BOTH);
                both(&pair, Better::Lower).unwrap().mean()
            })
            .collect();
        let mean = differences.iter().sum::<f64>() / differences.len() as f64;
        // Against the mean of both copies it would be 0.004 less; the error of this mean is 0.0001.
        assert!(mean.abs() < 0.000_6, "{mean}");
    }

    #[test]
    fn two_copies_of_the_baseline_give_two_differences() {
        let kept = KeptTrial::default();
        let pair = |first, twin: Option<f64>, env| {
            let base = Level {
                first: (&kept, reading(first)),
                twin: twin.map(|value| (&kept, reading(value))),
            };
            Pair::new(0, base, (&kept, reading(env)), 0, BOTH)
        };
        let values = |pair: &Pair<'_>| pair.differences(|reading| reading.typical).unwrap();
        let two = pair(4.0, Some(9.0), 12.0);
        let d = both(&two, Better::Lower).unwrap();
        is_near(d.first, 3.0_f64.ln());
        is_near(d.second.unwrap(), (4.0_f64 / 3.0).ln());
        is_near(both(&two, Better::Higher).unwrap().mean(), -(2.0_f64.ln()));
        assert_eq!(values(&two), Differences::two(8.0, 3.0));
        // Both copies are averaged by logarithm, as their differences are.
        assert_eq!(two.base.value(|reading| reading.typical), 6.0);
        let middle = both(&two, Better::Lower).unwrap().mean();
        is_near(middle, (two.env.1.typical / 6.0).ln());
        let one = pair(4.0, None, 12.0);
        assert_eq!(both(&one, Better::Lower).unwrap().second, None);
        assert_eq!(one.apart(), None);
        assert_eq!(one.base.value(|reading| reading.typical), 4.0);
        // A count of zero has no logarithm, but a difference.
        let none = pair(0.0, Some(2.0), 12.0);
        assert_eq!(both(&none, Better::Lower), None);
        assert_eq!(values(&none), Differences::two(12.0, 10.0));
    }
}
