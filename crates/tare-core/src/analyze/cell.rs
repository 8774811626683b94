//! Estimates and judges one metric of one arm against the baseline, paired by block.
//!
//! d_b = ln(cost in the arm) − ln(cost in the baseline) over the blocks in which both left a reading, separately for
//! each copy of the baseline; cost is the reading itself, or its reciprocal for rates. The Hodges–Lehmann estimate of
//! d with the signed-rank interval of its blocks is the cost ratio. The same on the raw differences is the absolute
//! cost, in the metric's unit and as measured: for a rate a negative difference is a cost. The verdict is based on
//! the typical value; the floor is given with it as the uncontended cost for metrics where the best moment is
//! meaningful.
//! Limits: blocks in which only one side succeeded are counted and left out; if failures correlate with slowness, the
//! rest flatters the arm.

use tare_model::dossier::{DossierBlock, DossierCell, Flag, Span};
use tare_model::{ArmId, Better, MetricSpec, Study, Summary, Verdict, whole_count};
use tare_stats::{Differences, Interval, detectable_effect, further_blocks, median};

use super::collect::Collector;
use super::diagnostics;
use super::effect;
use super::flag::{Evidence, flag};
use super::input::ArmData;
use super::kept_trial::{Group, GroupKey};
use super::pairs::{Pair, Pairs, Reference};
use super::parallel;
use super::reading::Reading;
use super::remarked;
use super::{FEWEST_BLOCKS, LEVEL};

/// Returns the cells of one arm against another, usually the baseline, in the study's order of workloads and the
/// workloads' order of metrics.
pub(crate) fn cells_of(
    study: &Study,
    arm: &ArmData,
    base: &ArmId,
    arms: &[ArmData],
    collected: &Collector<'_>,
) -> Vec<DossierCell> {
    let baseline = collected.arm_index(base.as_str());
    let index = collected.arm_index(arm.spec.id.as_str());
    let (Some(baseline), Some(index)) = (baseline, index) else {
        return Vec::new();
    };
    let against = if *base == study.baseline {
        Reference::baseline(study, collected, index)
    } else {
        Some(Reference::arm(baseline))
    };
    let Some(against) = against else {
        return Vec::new();
    };
    let copies = against.copies();
    let base_arm = arms.iter().find(|other| other.spec.id == *base);
    // In merged runs an arm has its trials in some of them, and may have none of a workload.
    let mut groups = collected.groups.values();
    let is_measured = groups.any(|group| !group.tried[index].is_empty());
    let mut jobs = Vec::new();
    for (key, group) in &collected.groups {
        let Some(workload) = group.workload else {
            continue;
        };
        if is_measured && group.tried[index].is_empty() {
            continue;
        }
        let nothing_completed = group.arms[index].is_empty();
        for (place, metric) in workload.metrics().iter().enumerate() {
            let has = |arm: usize| {
                let mut of_arm = group.arms[arm].values();
                of_arm.any(|kept| kept.readings[place].is_some())
            };
            // A metric that neither side reports does not exist for these parameters, unless everything failed.
            if !has(index) && !has(baseline) && !nothing_completed {
                continue;
            }
            jobs.push((*key, group, place, metric));
        }
    }
    parallel::map(&jobs, |&(key, group, place, metric)| {
        let pairs = Pairs::new(group, against, index, place);
        let judge = Judge {
            study,
            arm,
            base,
            base_arm,
            metric,
            place,
            pairs: &pairs,
            copies,
        };
        judge.cell(key, group)
    })
}

struct Judge<'a> {
    study: &'a Study,
    arm: &'a ArmData,
    base: &'a ArmId,
    base_arm: Option<&'a ArmData>,
    metric: &'static MetricSpec,
    /// The metric's index in its workload.
    place: usize,
    pairs: &'a Pairs<'a>,
    /// The baseline's second copy and the first, if the arm is compared with both.
    copies: Option<(usize, Reference)>,
}

impl Judge<'_> {
    fn cell(&self, key: GroupKey, group: &Group) -> DossierCell {
        let pairs = self.pairs;
        let n = pairs.len();
        let typical = |reading: &Reading| reading.typical;
        let of =
            |pick: &dyn Fn(&Pair<'_>) -> f64| -> Vec<f64> { pairs.all.iter().map(pick).collect() };
        let base = of(&|pair| pair.base.value(typical));
        let env = of(&|pair| typical(&pair.env.1));
        let revision = pairs.all.iter().find_map(|pair| pair.env.0.probe.as_ref());
        let margin = self.study.margins.for_class(self.metric.class);
        let mut cell = DossierCell {
            arm: self.arm.spec.id.to_string(),
            baseline: self.base.to_string(),
            workload: group.name.clone(),
            params: group.params.clone(),
            instances: key.instances,
            spread: group.spread,
            path: group.path,
            metric: self.metric.id.to_owned(),
            revision: revision.map_or(0, |probe| probe.revision),
            unit: self.metric.unit.symbol().to_owned(),
            better: self.metric.better,
            summary: Summary::Typical,
            n_blocks: whole_count(n),
            in_turn: n > 0 && pairs.all.iter().all(|pair| pair.env.0.turns.were_taken()),
            base: level_of(&base, pairs.launches()),
            env: level_of(&env, pairs.launches()),
            ratio: None,
            difference: None,
            ratio90: None,
            floor: None,
            p: None,
            q: None,
            margin,
            verdict: Verdict::Inconclusive,
            mde: None,
            further_blocks: None,
            flags: self.qualifications(group),
            blocks: blocks_of(pairs, self.place),
        };
        cell.flags.extend(remarked::flags(pairs, self.metric));
        if n == 0 {
            cell.flags.push(flag(
                diagnostics::NOT_MEASURED,
                "no block has a value on both sides".to_owned(),
            ));
            return cell;
        }
        if pairs.halves > 0 {
            cell.flags.push(flag(
                diagnostics::INCOMPLETE_BLOCKS,
                format!(
                    "{} of {} blocks have a value on one side only and are left out",
                    pairs.halves,
                    n + pairs.halves
                ),
            ));
        }
        let differences: Option<Vec<Differences>> = pairs
            .all
            .iter()
            .map(|pair| pair.differences(typical))
            .collect();
        cell.difference = differences
            .and_then(|found| effect::interval(&found, pairs.launches()).ok())
            .map(span);
        match pairs.ln_ratios(self.metric.better, |reading| reading.typical) {
            Some(blocks) => self.judge(&mut cell, group, &blocks),
            None => cell.flags.push(flag(
                diagnostics::NO_RATIO,
                "a value is 0 or negative, so that only the difference is given".to_owned(),
            )),
        }
        cell
    }

    /// Flags that apply to a cell however well it was measured.
    fn qualifications(&self, group: &Group) -> Vec<Flag> {
        let emulated = diagnostics::emulated(self.arm, self.base_arm);
        let different = group.workload.and_then(|workload| {
            diagnostics::different_tool(self.arm, self.base_arm, workload, &group.params)
        });
        emulated.into_iter().chain(different).collect()
    }

    fn judge(&self, cell: &mut DossierCell, group: &Group, blocks: &[Differences]) {
        let (pairs, margin) = (self.pairs, cell.margin);
        let Ok(effect) = effect::effect(blocks, pairs.launches()) else {
            cell.flags.push(flag(
                diagnostics::TOO_FEW_BLOCKS,
                format!(
                    "{}: a 95 % interval needs at least {FEWEST_BLOCKS}",
                    counted(blocks.len(), "block")
                ),
            ));
            return;
        };
        let d = effect::means(blocks);
        let evidence = Evidence {
            blocks,
            d: &d,
            effect: &effect,
            margin,
            pairs,
            metric: self.metric,
            arm: self.arm,
            base_arm: self.base_arm,
            seed: self.study.seed,
        };
        cell.flags.extend(diagnostics::examine(&evidence));
        let word = effect.verdict(margin);
        cell.verdict = word;
        cell.ratio = Some(Span {
            level: Some(LEVEL),
            ..span(effect.ci95.exp())
        });
        cell.p = effect.p;
        cell.env = cell
            .env
            .map(|own| by_ratio(own, cell.base, effect.ci95.point, self.metric.better));
        cell.ratio90 = Some(span(effect.ci90.exp()));
        let floors = self.metric.floor_ok.then(|| {
            let floors = pairs.ln_ratios(self.metric.better, |reading| reading.floor)?;
            effect::interval(&floors, pairs.launches()).ok()
        });
        cell.floor = floors.flatten().map(|interval| span(interval.exp()));
        if word == Verdict::Inconclusive {
            cell.mde = detectable_effect(&effect.ci95, d.len());
        }
        let target = target_half_width(self.study, margin, &effect.ci95);
        cell.further_blocks = further_blocks(d.len(), effect.ci95.half_width(), target)
            .filter(|blocks| *blocks > 0)
            .map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
        if cell.further_blocks.is_some() {
            let moves = self.copies.and_then(|(copy, against)| {
                let copies = Pairs::new(group, against, copy, self.place);
                diagnostics::effect_moves(&evidence, &copies)
            });
            cell.flags.extend(moves);
        }
    }
}

/// Cells with more blocks than this omit them from the dossier, which would otherwise take hundreds of megabytes.
const MOST_BLOCKS: usize = 5_000;

/// Returns the typical values of both sides of the metric at this index, block by block.
fn blocks_of(pairs: &Pairs<'_>, place: usize) -> Vec<DossierBlock> {
    if pairs.len() > MOST_BLOCKS {
        return Vec::new();
    }
    let all = pairs.all.iter();
    all.map(|pair| {
        let (kept, env) = &pair.env;
        let base = pair.base.value(|reading| reading.typical);
        // Compared by bits, so that a NaN equals itself.
        let other = |own: f64, than: f64| (own.to_bits() != than.to_bits()).then_some(own);
        DossierBlock {
            block: pair.block,
            position: kept.position,
            launch: kept.launch,
            base,
            env: env.typical,
            base_alone: other(pair.base.first.1.typical, base),
            env_alone: kept.readings[place].and_then(|own| other(own.typical, env.typical)),
            apart: pair.apart(),
        }
    })
    .collect()
}

/// The ratio up to which a difference is stated in percent.
const FAR: f64 = 1.5;

/// Half-width on the ln scale at which a cell is precise enough: that of the study's precision, or half of the cell's
/// margin. A difference of more than half as much again is decided long before that; a quarter of the difference is
/// enough for it. The interval's end nearer to no difference decides, and the target has no jump, so that an interim
/// estimate near the limit does not stop the measurement by chance.
pub(crate) fn target_half_width(study: &Study, margin: f64, found: &Interval) -> f64 {
    if let Some(precision) = study.precision {
        return precision.ln_1p();
    }
    let of_margin = margin.ln_1p() / 2.0;
    let nearer = found.low.max(-found.high).max(0.0);
    let beyond = nearer - FAR.ln();
    if beyond <= 0.0 {
        return of_margin;
    }
    of_margin.max((nearer / 4.0).min(of_margin + beyond))
}

/// The arm's level such that a row's values give its ratio: the baseline's level times the ratio, with the spread of
/// the arm's readings. The pseudo-median of those readings need not have that ratio to the baseline's.
fn by_ratio(own: Span, base: Option<Span>, ln_ratio: f64, better: Better) -> Span {
    let Some(base) = base else {
        return own;
    };
    let point = match better {
        Better::Lower => base.point * ln_ratio.exp(),
        Better::Higher => base.point / ln_ratio.exp(),
    };
    let scale = point / own.point;
    Span {
        point,
        ..own.map(|value| value * scale)
    }
}

/// The pseudo-median of readings, each of which belongs to a launch, with its interval, widened like that of an
/// effect. Below six blocks: the median with the range. The range's level as an interval, 1 − 2^(1−n), is then below
/// 0.95 and is given.
pub(crate) fn level_of(values: &[f64], launches: &[u32]) -> Option<Span> {
    if let Ok(interval) = effect::interval_of_values(values, launches) {
        return Some(span(interval));
    }
    let low = values.iter().copied().reduce(f64::min)?;
    let high = values.iter().copied().reduce(f64::max)?;
    Some(Span {
        point: median(values)?,
        low,
        high,
        level: Some(1.0 - 2.0_f64.powi(1 - i32::try_from(values.len()).unwrap_or(i32::MAX))),
    })
}

fn span(interval: Interval) -> Span {
    let level = (interval.level != LEVEL).then_some(interval.level);
    Span {
        point: interval.point,
        low: interval.low,
        high: interval.high,
        level,
    }
}

/// `1 block`, `2 blocks`.
pub fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::study;

    #[test]
    fn target_width_is_continuous_and_uses_nearer_bound() {
        let study = study(2, 1, 1);
        let of = |low: f64, high: f64| {
            let found = Interval::new(low, f64::midpoint(low, high), high, LEVEL);
            target_half_width(&study, 0.05, &found)
        };
        let of_margin = 0.05_f64.ln_1p() / 2.0;
        assert!((of(-0.1, 0.2) - of_margin).abs() < 1e-12);
        // A wide interval around a factor of two that may still be a difference of a few percent.
        assert!((of(0.3, 1.1) - of_margin).abs() < 1e-12);
        assert!((of(0.8, 1.0) - 0.2).abs() < 1e-12);
        assert!((of(-1.0, -0.8) - 0.2).abs() < 1e-12);
        let mut last = of_margin;
        for step in 0..2_000 {
            let now = of(f64::from(step) * 0.001, 3.0);
            assert!(
                now >= last && now - last <= 0.001 + 1e-9,
                "{step}: {last} to {now}"
            );
            last = now;
        }
    }
}
