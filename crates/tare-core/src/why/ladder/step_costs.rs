//! Computes the contribution of each step of the ladder from the blocks that all steps have.
//!
//! A step's contribution is a paired difference, and the contributions add up to the total apart from noise.
//! Limits: an overhead that appears only together with a later step is counted for the later one.

use std::collections::BTreeSet;

use tare_model::ArmSpec;
use tare_model::arm::Rung;
use tare_model::dossier::{DossierLadder, DossierRung, Span};
use tare_stats::{Differences, block_bootstrap, clustered, median};

use super::super::FEWEST;
use super::super::readings::{Block, ByBlock, Readings, interval, plain, span};
use super::together;
use crate::analyze::{LEVEL, RunData};

/// Bootstrap draws for the interval of the sum.
const DRAWS: usize = 999;
/// Seed of the draws: the same run gives the same interval.
const SUM_SEED: u64 = 0x6c61_6464;

/// The measurements of a run's steps.
struct Climb<'a> {
    run: &'a RunData,
    readings: &'a Readings,
    metric: &'a str,
    /// The arm below the first step.
    begin: &'a str,
    /// The blocks that are used; `None` for all.
    common: Option<BTreeSet<Block>>,
}

impl Climb<'_> {
    fn is_common(&self, block: Block) -> bool {
        let common = self.common.as_ref();
        common.is_none_or(|common| common.contains(&block))
    }

    fn values(&self, arm: &str) -> ByBlock {
        let mut values = self.readings.values(arm, self.metric);
        values.retain(|block, _| self.is_common(*block));
        values
    }

    fn between(&self, earlier: &str, later: &str) -> ByBlock {
        let mut steps = self.readings.differences(earlier, later, self.metric);
        steps.retain(|block, _| self.is_common(*block));
        steps
    }

    /// The differences of the measured steps, and all steps as they are displayed.
    fn steps(&self, rungs: &[(&Rung, &ArmSpec)]) -> (Vec<ByBlock>, Vec<DossierRung>) {
        let mut below = self.begin;
        let (mut drawn, mut joined, mut steps) = (Vec::new(), Vec::<&str>::new(), Vec::new());
        for (rung, spec) in rungs {
            let step = self.between(below, spec.id.as_str());
            let added = interval(&step);
            let note = match (&added, joined.as_slice()) {
                (Some(_), []) if rungs.len() == 1 => {
                    Some("there was no time to take this apart".to_owned())
                }
                (Some(_), []) => None,
                (Some(_), joined) => Some(format!("together with: {}", joined.join(", "))),
                (None, _) => Some(self.absence(spec)),
            };
            if added.is_some() {
                steps.push(step);
                below = spec.id.as_str();
                joined.clear();
            } else {
                joined.push(&rung.title);
            }
            drawn.push(DossierRung {
                title: rung.title.clone(),
                arm: spec.id.to_string(),
                adds: added.map(span),
                note,
            });
        }
        (steps, drawn)
    }

    /// The reason why a step was not measured.
    fn absence(&self, spec: &ArmSpec) -> String {
        let mut arms = self.run.head.arms.iter();
        let reason = arms.find(|arm| arm.spec.id == spec.id);
        match reason.and_then(|arm| arm.reason.as_ref()) {
            None => "not measured often enough".to_owned(),
            Some(reason) => format!("not available here: {reason}"),
        }
    }
}

/// The level of values: their interval, or the range from minimum to maximum.
fn level(values: &ByBlock) -> Option<Span> {
    let values: ByBlock = values
        .iter()
        .map(|(block, value)| (*block, value.map(f64::abs)))
        .collect();
    interval(&values).map(span).or_else(|| {
        let values = plain(&values);
        let point = median(&values)?;
        Some(Span::new(
            values.iter().copied().fold(point, f64::min),
            point,
            values.iter().copied().fold(point, f64::max),
        ))
    })
}

/// The ladder of a run, with the contribution of each step.
pub fn climbed(
    run: &RunData,
    readings: &Readings,
    metric: &str,
    unit: &str,
    env: &str,
) -> Option<DossierLadder> {
    let baseline = run.head.study.baseline.as_str();
    let arms = run.head.arms.iter();
    let mut rungs: Vec<(&Rung, &ArmSpec)> = arms
        .clone()
        .filter_map(|arm| Some((arm.spec.role.rung.as_ref()?, &arm.spec)))
        .collect();
    rungs.sort_by_key(|(rung, _)| rung.place);
    let of = |arm: &str| readings.values(arm, metric);
    let begin = begin(&rungs, baseline, |arm| !of(arm).is_empty());
    if begin == baseline {
        rungs.retain(|(_, spec)| spec.id.as_str() != baseline);
    }
    if rungs.is_empty() {
        return None;
    }
    let of_steps = rungs.iter().map(|(_, spec)| of(spec.id.as_str()));
    let climb = Climb {
        run,
        readings,
        metric,
        begin,
        common: common_blocks(&of(begin), &of(env), of_steps),
    };
    let (steps, drawn) = climb.steps(&rungs);
    let sum = sum_of(&steps);
    let total = interval(&climb.between(begin, env));
    let is_whole = drawn.iter().any(|rung| rung.adds.is_some());
    let own = arms.clone().find(|arm| arm.spec.id.as_str() == env);
    Some(DossierLadder {
        arm: env.to_owned(),
        metric: metric.to_owned(),
        unit: unit.to_owned(),
        base: level(&climb.values(begin)),
        env: level(&climb.values(env)),
        total: total.map(span),
        rungs: drawn,
        sum: is_whole.then_some(sum),
        sum_span: sum_interval(&steps, climb.common.is_some()),
        agrees: total
            .filter(|_| is_whole)
            .map(|total| total.low <= sum && sum <= total.high),
        together: own.map_or_else(Vec::new, |arm| together(&arm.spec.driver, &arm.facts)),
    })
}

/// The arm below the first step: the baseline, unless it is a step itself and the arm that it replaces was measured.
fn begin<'a>(
    rungs: &[(&Rung, &'a ArmSpec)],
    baseline: &'a str,
    is_measured: impl Fn(&str) -> bool,
) -> &'a str {
    let mut specs = rungs.iter().map(|(_, spec)| *spec);
    specs
        .find(|spec| spec.id.as_str() == baseline)
        .and_then(|spec| spec.role.of.as_deref())
        .filter(|arm| is_measured(arm))
        .unwrap_or(baseline)
}

/// The blocks that the host, the environment and every step with enough blocks have, so that the steps add up in each
/// of them. `None` if these are too few for an interval.
pub(super) fn common_blocks(
    base: &ByBlock,
    whole: &ByBlock,
    steps: impl Iterator<Item = ByBlock>,
) -> Option<BTreeSet<Block>> {
    let mut common: BTreeSet<Block> = base.keys().copied().collect();
    common.retain(|block| whole.contains_key(block));
    for step in steps.filter(|step| step.len() >= FEWEST as usize) {
        common.retain(|block| step.contains_key(block));
    }
    (common.len() >= FEWEST as usize).then_some(common)
}

pub(super) fn sum_of(steps: &[ByBlock]) -> f64 {
    steps
        .iter()
        .filter_map(|step| Some(interval(step)?.point))
        .sum()
}

/// The sum of the steps with its interval. The steps add up exactly within a block, so only resampling the blocks
/// shows how much the sum of their typical values varies. `None` below ten blocks.
pub(super) fn sum_interval(steps: &[ByBlock], is_common: bool) -> Option<Span> {
    let steps: Vec<Vec<Differences>> = steps
        .iter()
        .map(|step| step.values().copied().collect())
        .collect();
    let n_blocks = steps.first()?.len();
    if !is_common || steps.iter().any(|step| step.len() != n_blocks) {
        return None;
    }
    let of_blocks = |blocks: &[usize]| {
        let drawn = steps.iter().map(|step| {
            let values: Vec<Differences> = blocks.iter().map(|block| step[*block]).collect();
            centre(&values)
        });
        drawn.sum()
    };
    let found = block_bootstrap(n_blocks, of_blocks, LEVEL, DRAWS, SUM_SEED);
    found.ok().map(span)
}

/// The point estimate of [`interval`].
fn centre(values: &[Differences]) -> f64 {
    clustered(values, LEVEL).map_or(f64::NAN, |found| found.interval.point)
}
