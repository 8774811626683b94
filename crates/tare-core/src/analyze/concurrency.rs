//! Measures what several concurrent instances do to each other, and whether an environment makes it worse.
//!
//! Each number of instances of a workload is a separate cell against the baseline, like any other. This module links
//! the numbers of one arm: stretch, fairness, throughput, efficiency, makespan. All are computed within each block
//! and then summarised over blocks (Hodges–Lehmann), because the block is the unit of replication.
//! *Does the number of instances change the environment's cost?* In each block the Theil–Sen slope of ln(cost here /
//! cost in the baseline) on log2 N, over blocks its Hodges–Lehmann estimate with the exact interval, judged with the
//! cell's margin as the factor of one doubling (`METHODOLOGY.md`, *Several at once*).
//! Throughput is the sum of the instances' rates, which holds while all are running. The makespan is the waiting time
//! of a user who needs all of them, and the overlap is the share of it in which all were running. A makespan is a
//! maximum and grows with N by itself. Laws of scaling are a summary and need six different numbers.
//! Limits: blocks that lack one of the numbers are left out of these comparisons.

use std::collections::BTreeMap;

use tare_model::dossier::{
    Concurrency, ConcurrencyArm, ConcurrencyPoint, Doubling, Flag, Scaling, Span,
};
use tare_model::study::A_PRIME;
use tare_model::{Better, MetricSpec, SpanClock, Spread, Study, Unit, whole_count};
use tare_stats::diagnostics::theil_sen_slope;
use tare_stats::{
    Differences, Interval, Verdict, best_scaling, block_bootstrap, efficiency, fit_scaling, jain,
    makespan, median, stretch,
};

use super::blocks::Blocks;
use super::collect::Collector;
use super::input::RunHead;
use super::kept_trial::{Group, Joint, KeptTrial};
use super::pairs::{Pairs, Reference};
use super::reading::ln_cost;
use super::{LEVEL, cell, diagnostics, effect, flag, void};

/// Draws for the intervals of a law of scaling, which is a summary without a verdict.
const DRAWS: usize = 999;
/// Overlap below which an instance was alone for a good part of its time.
const LITTLE_OVERLAP: f64 = 0.8;

/// Groups that differ only in the number of instances, by that number.
struct Series<'a> {
    first: &'a Group,
    groups: BTreeMap<u32, &'a Group>,
}

/// All series of a run, in the study's order of workloads and the workloads' order of metrics.
pub(crate) fn series(head: &RunHead, collected: &Collector<'_>) -> Vec<Concurrency> {
    let mut all: Vec<Series<'_>> = Vec::new();
    for (key, group) in &collected.groups {
        if group.spread.is_none() {
            continue;
        }
        let work = |it: &Group| (it.name.clone(), it.params.clone(), it.path, it.spread);
        match all.iter_mut().find(|it| work(it.first) == work(group)) {
            Some(found) => {
                found.groups.insert(key.instances, group);
            }
            None => all.push(Series {
                first: group,
                groups: BTreeMap::from([(key.instances, group)]),
            }),
        }
    }
    let mut shown: Vec<Concurrency> = all
        .iter()
        .flat_map(|series| series.results(head, collected))
        .collect();
    adjust_for_many(&mut shown);
    shown
}

/// Benjamini–Hochberg over the doublings of each arm that have a p; those of the A′ arm are excluded, like its cells.
fn adjust_for_many(told: &mut [Concurrency]) {
    let mut families: BTreeMap<String, Vec<&mut Doubling>> = BTreeMap::new();
    for arm in told.iter_mut().flat_map(|one| &mut one.arms) {
        let doubling = arm.doubling.as_mut();
        if let Some(doubling) = doubling.filter(|it| it.p.is_some() && arm.arm != A_PRIME) {
            families.entry(arm.arm.clone()).or_default().push(doubling);
        }
    }
    for family in families.values_mut() {
        let p: Vec<f64> = family.iter().filter_map(|doubling| doubling.p).collect();
        let q = tare_stats::benjamini_hochberg(&p).unwrap_or_default();
        for (doubling, q) in family.iter_mut().zip(q) {
            doubling.q = Some(q);
        }
    }
}

impl Series<'_> {
    fn results(&self, head: &RunHead, collected: &Collector<'_>) -> Vec<Concurrency> {
        let first = self.first;
        let (Some(workload), Some(spread)) = (first.workload, first.spread) else {
            return Vec::new();
        };
        let study = &head.study;
        let mut shown = Vec::new();
        for (place, metric) in workload.metrics().iter().enumerate() {
            let has_value = self.groups.values().any(|group| {
                let mut kept = group.arms.iter().flat_map(Blocks::values);
                kept.any(|kept| kept.readings[place].is_some())
            });
            if !has_value {
                continue;
            }
            let of_metric = OfMetric {
                series: self,
                place,
                metric,
                study,
            };
            let arms = head.arms.iter().filter(|arm| arm.available);
            let arms = arms.filter_map(|arm| {
                let index = collected.arm_index(arm.spec.id.as_str())?;
                let baseline = collected.arm_index(study.baseline.as_str())?;
                let has_own_clock =
                    void::has_own_clock(Some(&arm.facts), head.facts(&study.baseline));
                let shares_clock = spread == Spread::Processes || !has_own_clock;
                let against = Reference::baseline(study, collected, index)?;
                Some(of_metric.arm(arm.spec.id.as_str(), index, baseline, against, shares_clock))
            });
            shown.push(Concurrency {
                workload: first.name.clone(),
                params: first.params.clone(),
                path: first.path,
                spread,
                metric: metric.id.to_owned(),
                unit: metric.unit.symbol().to_owned(),
                better: metric.better,
                throughput_unit: throughput_unit(metric).map(|unit| unit.symbol().to_owned()),
                arms: arms.collect(),
            });
        }
        shown
    }
}

/// What each of `n` instances took; empty for a single one, or if any of them reported nothing.
fn of_each(trials: &BTreeMap<u32, Trial<'_>>, n: usize) -> Vec<Span> {
    let of = |number: usize| {
        let values = trials.values();
        over_blocks(values.map(|it| (it.values.get(number).copied(), it.kept.launch)))
    };
    let numbers = 0..if n > 1 { n } else { 0 };
    let each: Option<Vec<Span>> = numbers.map(of).collect();
    each.unwrap_or_default()
}

/// The unit in which the instances' rates add up; `None` for metrics that are neither a time nor a rate.
fn throughput_unit(metric: &MetricSpec) -> Option<Unit> {
    match (metric.unit, metric.better) {
        (Unit::Nanosecond, Better::Lower) => Some(Unit::OperationPerSecond),
        (unit @ (Unit::OperationPerSecond | Unit::BytePerSecond), Better::Higher) => Some(unit),
        _ => None,
    }
}

/// One metric of a series.
struct OfMetric<'a> {
    series: &'a Series<'a>,
    place: usize,
    metric: &'static MetricSpec,
    study: &'a Study,
}

impl OfMetric<'_> {
    fn arm(
        &self,
        id: &str,
        index: usize,
        baseline: usize,
        against: Reference,
        shares_clock: bool,
    ) -> ConcurrencyArm {
        let groups = &self.series.groups;
        let points = groups
            .iter()
            .map(|(instances, group)| self.point(*instances, group, index, shares_clock))
            .collect();
        let is_baseline = index == baseline;
        ConcurrencyArm {
            arm: id.to_owned(),
            baseline: is_baseline,
            points,
            doubling: (!is_baseline && groups.len() > 1)
                .then(|| self.doubling(index, baseline, against)),
            scaling: self.scaling(index),
        }
    }

    /// The trials of one number of instances in which the metric has a value, by block.
    fn trials<'g>(&self, group: &'g Group, arm: usize) -> BTreeMap<u32, Trial<'g>> {
        let of_arm = group.arms[arm].iter();
        of_arm
            .filter_map(|(block, kept)| {
                let typical = kept.readings[self.place]?.typical;
                let joint = kept.joint.as_deref()?;
                let values = &joint.values[self.place];
                let trial = Trial {
                    kept,
                    joint,
                    values,
                    typical,
                };
                Some((block, trial))
            })
            .collect()
    }

    /// The trials of a single instance.
    fn alone(&self, arm: usize) -> BTreeMap<u32, Trial<'_>> {
        let group = self.series.groups.get(&1);
        group.map_or_else(BTreeMap::new, |group| self.trials(group, arm))
    }

    fn point(
        &self,
        instances: u32,
        group: &Group,
        arm: usize,
        shares_clock: bool,
    ) -> ConcurrencyPoint {
        let better = self.metric.better;
        let trials = self.trials(group, arm);
        let alone = self.alone(arm);
        let each = |of: &dyn Fn(&Trial<'_>) -> Option<f64>| {
            over_blocks(trials.values().map(|trial| (of(trial), trial.kept.launch)))
        };
        let against_alone = |of: &dyn Fn(&Trial<'_>, &Trial<'_>) -> Option<f64>| {
            let both = trials
                .iter()
                .filter_map(|(block, trial)| Some((trial, alone.get(block)?)));
            of_ratios(both.map(|(trial, alone)| (of(trial, alone), trial.kept.launch)))
        };
        let worst = |trial: &Trial<'_>| {
            let values = trial.values.iter().copied();
            match better {
                Better::Lower => values.reduce(f64::max),
                Better::Higher => values.reduce(f64::min),
            }
        };
        let length = |trial: &Trial<'_>| trial.makespan_ns(shares_clock);
        let n = instances as usize;
        let mut point = ConcurrencyPoint {
            instances,
            n_blocks: whole_count(trials.len()),
            value: each(&|trial| Some(trial.typical)),
            worst: each(&worst),
            each: of_each(&trials, n),
            stretch: against_alone(&|trial, alone| {
                let cost = |value| ln_cost(value, better).map(f64::exp);
                stretch(cost(trial.typical)?, cost(alone.typical)?)
            }),
            fairness: each(&|trial| jain(&trial.rates(better))).map(within_one),
            throughput: throughput_unit(self.metric)
                .and_then(|_| each(&|trial| Some(self.throughput(trial)))),
            efficiency: against_alone(&|trial, alone| {
                efficiency(self.throughput(trial), n, self.throughput(alone))
            }),
            makespan_ns: each(&length),
            makespan_stretch: against_alone(&|trial, alone| {
                stretch(length(trial)?, length(alone)?)
            }),
            skew_ns: each(&|trial| trial.skew_ns(shares_clock)),
            overlap: each(&|trial| trial.overlap(shares_clock)).map(within_one),
            flags: remarked(&trials),
        };
        if let Some(overlap) = point.overlap
            && overlap.point < LITTLE_OVERLAP
        {
            let percent = (overlap.point * 100.0).round();
            point.flags.push(flag::flag(
                diagnostics::LITTLE_OVERLAP,
                format!("all {instances} were at work in {percent} % of the time only"),
            ));
        }
        if !shares_clock {
            point.flags.push(flag::flag(
                diagnostics::NO_COMMON_CLOCK,
                "start skew and overlap are unknown, and the makespan is the host's".to_owned(),
            ));
        }
        point
    }

    /// The sum of the instances' rates: per second for times, in the metric's unit for rates.
    fn throughput(&self, trial: &Trial<'_>) -> f64 {
        let scale = match self.metric.better {
            Better::Lower => 1e9,
            Better::Higher => 1.0,
        };
        let rates = trial.rates(self.metric.better);
        scale * rates.iter().sum::<f64>()
    }

    /// Blocks that have every number of instances in all of `arms`.
    fn whole_blocks(&self, arms: &[usize]) -> Vec<u32> {
        let groups = self.series.groups.values();
        let sets: Vec<_> = groups
            .flat_map(|group| arms.iter().map(|arm| self.trials(group, *arm)))
            .collect();
        let Some(first) = sets.first() else {
            return Vec::new();
        };
        let blocks = first.keys().copied();
        blocks
            .filter(|block| sets.iter().all(|set| set.contains_key(block)))
            .collect()
    }

    fn doubling(&self, arm: usize, baseline: usize, against: Reference) -> Doubling {
        let better = self.metric.better;
        let log2: Vec<f64> = self
            .series
            .groups
            .keys()
            .map(|instances| f64::from(*instances).log2())
            .collect();
        let by_size: Vec<Pairs<'_>> = self
            .series
            .groups
            .values()
            .map(|group| Pairs::new(group, against, arm, self.place))
            .collect();
        let (launches, slopes): (Vec<u32>, Vec<Differences>) = self
            .whole_blocks(&[arm, baseline])
            .into_iter()
            .filter_map(|block| {
                let mut launch = None;
                let d: Option<Vec<Differences>> = by_size
                    .iter()
                    .map(|pairs| {
                        let pair = pairs.all.iter().find(|pair| pair.block == block)?;
                        launch.get_or_insert(pair.env.0.launch);
                        pair.ln_ratios(better, |reading| reading.typical)
                    })
                    .collect();
                let d = d?;
                let slope = |values: Option<Vec<f64>>| theil_sen_slope(&log2, &values?);
                let first = slope(Some(d.iter().map(|d| d.first).collect()))?;
                let second = slope(d.iter().map(|d| d.second).collect());
                Some((launch?, Differences { first, second }))
            })
            .unzip();
        let margin = self.study.margins.for_class(self.metric.class);
        let mut doubling = Doubling {
            n_blocks: whole_count(slopes.len()),
            ratio: None,
            ratio90: None,
            p: None,
            q: None,
            margin,
            verdict: Verdict::Inconclusive,
        };
        if let Ok(effect) = effect::effect(&slopes, &launches) {
            doubling.p = effect.p;
            doubling.ratio = Some(span(effect.ci95.exp()));
            doubling.ratio90 = Some(span(effect.ci90.exp()));
            doubling.verdict = effect.verdict(margin);
        }
        doubling
    }

    /// The law of scaling of the medians over blocks.
    fn scaling(&self, arm: usize) -> Option<Scaling> {
        throughput_unit(self.metric)?;
        let blocks = self.whole_blocks(&[arm]);
        let sizes: Vec<f64> = self.series.groups.keys().map(|n| f64::from(*n)).collect();
        let by_size: Vec<Vec<f64>> = self
            .series
            .groups
            .values()
            .map(|group| {
                let trials = self.trials(group, arm);
                blocks
                    .iter()
                    .map(|block| self.throughput(&trials[block]))
                    .collect()
            })
            .collect();
        let medians = |picked: &[usize]| -> Option<Vec<f64>> {
            let of_size = |values: &Vec<f64>| {
                let values: Vec<f64> = picked.iter().map(|index| values[*index]).collect();
                median(&values)
            };
            by_size.iter().map(of_size).collect()
        };
        let all: Vec<usize> = (0..blocks.len()).collect();
        let fit = best_scaling(&sizes, &medians(&all)?).ok()?;
        let interval = |of: fn(&tare_stats::ScalingFit) -> f64| {
            let statistic = |picked: &[usize]| {
                let fitted = medians(picked).map(|x| fit_scaling(fit.law, &sizes, &x));
                fitted.and_then(Result::ok).map_or(f64::NAN, |fit| of(&fit))
            };
            let seed = self.study.seed;
            block_bootstrap(blocks.len(), statistic, LEVEL, DRAWS, seed)
                .ok()
                .map(span)
        };
        let largest = sizes.last().copied()?;
        Some(Scaling {
            law: fit.law,
            gamma: fit.gamma,
            alpha: fit.alpha,
            alpha_interval: interval(|fit| fit.alpha),
            beta: fit.beta,
            beta_interval: interval(|fit| fit.beta),
            peak: fit.peak(largest),
        })
    }
}

/// One trial with its instances.
struct Trial<'a> {
    kept: &'a KeptTrial,
    joint: &'a Joint,
    values: &'a [f64],
    /// The mean over the instances.
    typical: f64,
}

impl Trial<'_> {
    fn rates(&self, better: Better) -> Vec<f64> {
        let values = self.values.iter();
        match better {
            Better::Lower => values.map(|value| 1.0 / value).collect(),
            Better::Higher => values.copied().collect(),
        }
    }

    /// Starts and ends of the instances on one clock, if they have one.
    fn ends(&self, shares_clock: bool) -> Option<(Vec<f64>, Vec<f64>)> {
        let spans = &self.joint.spans;
        let is_comparable = spans.len() == 1
            || shares_clock && spans.iter().all(|span| span.clock == SpanClock::Kernel);
        if spans.is_empty() || !is_comparable {
            return None;
        }
        // Relative to the first start: nanoseconds since boot need not fit an `f64` exactly.
        let origin = spans.iter().map(|span| span.start_ns).min()?;
        let since = |ns: u64| ns.saturating_sub(origin) as f64;
        Some((
            spans.iter().map(|span| since(span.start_ns)).collect(),
            spans.iter().map(|span| since(span.end_ns)).collect(),
        ))
    }

    /// From the first start to the last end; by the host's clock if the instances share none.
    fn makespan_ns(&self, shares_clock: bool) -> Option<f64> {
        match self.ends(shares_clock) {
            Some((starts, ends)) => makespan(&starts, &ends),
            None => (self.joint.host_ns > 0.0).then_some(self.joint.host_ns),
        }
    }

    fn skew_ns(&self, shares_clock: bool) -> Option<f64> {
        let (starts, _) = self.ends(shares_clock)?;
        starts.into_iter().reduce(f64::max)
    }

    /// The share of the makespan in which all instances were running.
    fn overlap(&self, shares_clock: bool) -> Option<f64> {
        let (starts, ends) = self.ends(shares_clock)?;
        let last_start = starts.iter().copied().reduce(f64::max)?;
        let first_end = ends.iter().copied().reduce(f64::min)?;
        let whole = makespan(&starts, &ends).filter(|ns| *ns > 0.0)?;
        Some((first_end - last_start).max(0.0) / whole)
    }
}

/// The workload's remarks on these trials, each kind once with the number of trials.
fn remarked(trials: &BTreeMap<u32, Trial<'_>>) -> Vec<Flag> {
    let mut flags: Vec<(Flag, usize)> = Vec::new();
    for remark in trials.values().flat_map(|trial| &trial.kept.remarks) {
        match flags.iter_mut().find(|(flag, _)| flag.id == remark.id) {
            Some((_, count)) => *count += 1,
            None => flags.push((flag::flag(remark.id, remark.detail.clone()), 1)),
        }
    }
    let n = trials.len();
    let shown = |(flag, count): (Flag, usize)| {
        let detail = if count == n {
            flag.detail
        } else {
            format!("in {count} of {n} trials: {}", flag.detail)
        };
        Flag { detail, ..flag }
    };
    flags.into_iter().map(shown).collect()
}

/// The summary over blocks of the values, each with its launch; `None` without values.
fn over_blocks(values: impl Iterator<Item = (Option<f64>, u32)>) -> Option<Span> {
    let (values, launches): (Vec<f64>, Vec<u32>) = values
        .filter_map(|(value, launch)| Some((value?, launch)))
        .unzip();
    cell::level_of(&values, &launches)
}

/// The same for ratios: on their logarithms, so that twice and half are equally far from one.
fn of_ratios(ratios: impl Iterator<Item = (Option<f64>, u32)>) -> Option<Span> {
    let is_ratio = |ratio: &f64| ratio.is_finite() && *ratio > 0.0;
    let logarithms = ratios.map(|(ratio, launch)| (ratio.filter(is_ratio).map(f64::ln), launch));
    Some(over_blocks(logarithms)?.map(f64::exp))
}

/// Clamps a share to one, however wide its interval becomes.
fn within_one(span: Span) -> Span {
    Span {
        low: span.low.clamp(0.0, 1.0),
        high: span.high.min(1.0),
        ..span
    }
}

fn span(interval: Interval) -> Span {
    Span::new(interval.low, interval.point, interval.high)
}
