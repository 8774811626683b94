//! Flags what the machine did to a cell: steal time, clocks, faults, batches too short for the clock.
//!
//! Computed from what probes report in addition to their series; a counter that could not be read neither raises nor
//! clears a flag. Thresholds and consequences are fixed, as for every other diagnostic.
//! Limits: does not cover adapters, which have no such report.

use tare_stats::{hodges_lehmann_paired, median};

use super::FEWEST_BLOCKS;
use super::effect::as_ratio;
use super::flag::Evidence;
use super::input::ArmData;
use super::kept_trial::{KeptTrial, ProbeFacts};
use super::pairs::{Pair, Side};
use crate::parity;

/// Steal above this share of the machine's time is reported.
const STEAL_SHARE: f64 = 0.01;
/// Steal above this share within one trial marks its block as contended.
const CONTENDED_SHARE: f64 = 0.05;
/// The counter has steps of 10 ms; less than two of them are no evidence about one trial.
const CONTENDED_NS: f64 = 20_000_000.0;
/// The canary's ratio may differ from one by this much.
const CANARY_SHARE: f64 = 0.01;
/// A clock reading slower than this no longer happens in user space.
const SLOW_CLOCK_NS: f64 = 150.0;
/// `T(2k)/T(k)` of a loop that does what it claims.
const LINEAR: std::ops::RangeInclusive<f64> = 1.95..=2.05;

/// Share of the machine's time that was stolen during a trial.
fn steal_share(kept: &KeptTrial, cpus: f64) -> Option<f64> {
    let probe = kept.probe.as_ref()?;
    let available_ns = probe.elapsed_ns as f64 * cpus;
    (available_ns > 0.0).then_some(probe.steal_ns.get()? / available_ns)
}

/// Number of CPUs of the machine, as far as the arm or the baseline knows; one if neither does, which reports too
/// much rather than too little.
fn cpus(evidence: &Evidence<'_>) -> f64 {
    let of = |arm: Option<&ArmData>| arm.and_then(|arm| parity::online_cpus(&arm.facts));
    of(evidence.base_arm)
        .or_else(|| of(Some(evidence.arm)))
        .unwrap_or(1.0)
}

pub(super) fn steal(evidence: &Evidence<'_>) -> Option<String> {
    let cpus = cpus(evidence);
    let pooled = |side: &[Side<'_>]| -> Option<f64> {
        let (mut stolen, mut available) = (0.0, 0.0);
        for (kept, _) in side {
            if let Some(probe) = &kept.probe {
                stolen += probe.steal_ns.get()?;
                available += probe.elapsed_ns as f64 * cpus;
            }
        }
        (available > 0.0).then_some(stolen / available)
    };
    let (base, env) = (
        pooled(evidence.pairs.base())?,
        pooled(evidence.pairs.env())?,
    );
    let pairs = evidence.pairs.all.iter();
    let differences: Option<Vec<f64>> = pairs
        .map(|pair| Some(steal_share(pair.env.0, cpus)? - steal_share(pair.base.first.0, cpus)?))
        .collect();
    let differs = differences
        .and_then(|differences| hodges_lehmann_paired(&differences, super::LEVEL).ok())
        .is_some_and(|estimate| !estimate.interval.contains(0.0));
    (f64::max(base, env) > STEAL_SHARE || differs).then(|| {
        format!(
            "the hypervisor took {:.1} % of the time in the arm's trials, {:.1} % in the baseline's",
            env * 100.0,
            base * 100.0
        )
    })
}

pub(super) fn contended(evidence: &Evidence<'_>) -> Option<String> {
    let cpus = cpus(evidence);
    let contention = |kept: &KeptTrial| {
        let stolen = kept.probe.as_ref().and_then(|probe| probe.steal_ns.get())?;
        let share = steal_share(kept, cpus)?;
        (stolen >= CONTENDED_NS && share > CONTENDED_SHARE).then_some(share)
    };
    // The largest of a block's trials.
    let worst = |pair: &Pair<'_>| {
        let trials = pair.base.trials().chain([pair.env]);
        trials
            .filter_map(|(kept, _)| contention(kept))
            .reduce(f64::max)
    };
    let is_quiet = |pair: &Pair<'_>| worst(pair).is_none();
    let shares = evidence.pairs.all.iter().filter_map(worst);
    let least = shares.fold(f64::INFINITY, f64::min);
    let pairs = evidence.pairs.all.iter();
    let quiet: Vec<f64> = pairs
        .zip(evidence.d)
        .filter(|(pair, _)| is_quiet(pair))
        .map(|(_, d)| *d)
        .collect();
    let count = evidence.d.len() - quiet.len();
    if count == 0 {
        return None;
    }
    let without = hodges_lehmann_paired(&quiet, super::LEVEL).map_or_else(
        |_| format!("fewer than {FEWEST_BLOCKS} blocks are without"),
        |estimate| format!("without them the ratio is {}", as_ratio(&estimate.interval)),
    );
    Some(format!(
        "{count} blocks have a trial that lost {:.0} % or more to the hypervisor and are kept; {without}",
        least * 100.0
    ))
}

pub(super) fn throttled(evidence: &Evidence<'_>) -> Option<String> {
    let total = |side: &[Side<'_>]| -> f64 {
        let probes = side.iter().filter_map(|(kept, _)| kept.probe.as_ref());
        probes.filter_map(|probe| probe.throttled_ns.get()).sum()
    };
    let limited = |arm: &ArmData| {
        let settings = &arm.spec.settings;
        ["cpus", "cpu_quota", "cpu-quota"]
            .iter()
            .any(|name| settings.value(name).is_some())
    };
    let sides = [
        (Some(evidence.arm), total(evidence.pairs.env()), "the arm"),
        (
            evidence.base_arm,
            total(evidence.pairs.base()),
            "the baseline",
        ),
    ];
    let throttled: Vec<String> = sides
        .iter()
        .filter(|(arm, ns, _)| *ns > 0.0 && !arm.is_some_and(limited))
        .map(|(_, ns, who)| format!("{who} was stopped for {:.1} ms", ns / 1e6))
        .collect();
    (!throttled.is_empty()).then(|| {
        format!(
            "error: the two are not comparable; {} by a processor quota that the study does not ask for",
            throttled.join(" and ")
        )
    })
}

pub(super) fn canary(evidence: &Evidence<'_>) -> Option<String> {
    let pairs = evidence.pairs.all.iter();
    let ln_ratios: Option<Vec<f64>> = pairs
        .map(|pair| {
            let canary =
                |kept: &KeptTrial| kept.probe.as_ref().and_then(|probe| probe.canary_ns.get());
            Some((canary(pair.env.0)? / canary(pair.base.first.0)?).ln())
        })
        .collect();
    let ratio = hodges_lehmann_paired(&ln_ratios?, super::LEVEL)
        .ok()?
        .interval;
    // Outside ±1 %, and not by chance: on a busy machine the point alone is often outside.
    let outside = ratio.point.abs() > CANARY_SHARE.ln_1p() && !ratio.contains(0.0);
    outside.then(|| {
        let ratio = ratio.exp();
        format!(
            "a fixed loop of integer operations takes {:.3} [{:.3}, {:.3}] times as long in the arm: another frequency, or another clock",
            ratio.point, ratio.low, ratio.high
        )
    })
}

/// Returns the median of what the probes of one side report.
fn typical_of(side: &[Side<'_>], pick: impl Fn(&ProbeFacts) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = side
        .iter()
        .filter_map(|(kept, _)| pick(kept.probe.as_ref()?))
        .collect();
    median(&values)
}

pub(super) fn major_faults(evidence: &Evidence<'_>) -> Option<String> {
    let faults = |side: &[Side<'_>]| typical_of(side, |probe| probe.major_faults.get());
    let (base, env) = (
        faults(evidence.pairs.base())?,
        faults(evidence.pairs.env())?,
    );
    #[allow(clippy::float_cmp, reason = "medians of counts")]
    let differ = base != env;
    differ.then(|| format!("{env} a trial in the arm, {base} in the baseline (medians)"))
}

pub(super) fn coarse_timer(evidence: &Evidence<'_>) -> Option<String> {
    let is_coarse = |(kept, _): &&Side<'_>| kept.probe.as_ref().is_some_and(|probe| probe.coarse);
    let count = evidence.pairs.trials().filter(is_coarse).count();
    (count > 0).then(|| {
        format!(
            "in {count} of {} trials a batch is shorter than ten steps or twenty readings of the clock",
            evidence.pairs.trials().count()
        )
    })
}

pub(super) fn not_linear(evidence: &Evidence<'_>) -> Option<String> {
    let both = [evidence.pairs.base(), evidence.pairs.env()];
    let medians = both.map(|side| typical_of(side, |probe| probe.linearity.get()));
    let worst = medians
        .into_iter()
        .flatten()
        .find(|value| !LINEAR.contains(value))?;
    Some(format!(
        "twice the work takes {worst:.2} times as long (median over trials)"
    ))
}

/// Flags blocks whose slices ran on different CPUs: the arm has its own CPUs, or its CPU went offline.
pub(super) fn other_processor(evidence: &Evidence<'_>) -> Option<String> {
    let cpu = |kept: &KeptTrial| kept.probe.as_ref().and_then(|probe| probe.cpu);
    let pairs = &evidence.pairs.all;
    let apart = pairs.iter().filter(|pair| {
        pair.env.0.turns.were_taken()
            && pair
                .base
                .trials()
                .any(|(base, _)| cpu(base) != cpu(pair.env.0))
    });
    let count = apart.count();
    (count > 0).then(|| {
        format!(
            "in {count} of {} blocks the slices of the arm were taken on another processor than the baseline's",
            pairs.len()
        )
    })
}

pub(super) fn slow_clock(evidence: &Evidence<'_>) -> Option<String> {
    let cost = |side: &[Side<'_>]| typical_of(side, |probe| probe.clock_cost_ns.get());
    let (base, env) = (cost(evidence.pairs.base()), cost(evidence.pairs.env()));
    let slowest = [base, env].into_iter().flatten().fold(0.0, f64::max);
    (slowest > SLOW_CLOCK_NS).then(|| {
        let shown = |cost: Option<f64>| {
            cost.map_or_else(|| "unknown".to_owned(), |cost| format!("{cost:.0} ns"))
        };
        format!(
            "one reading of the clock costs {} in the arm, {} in the baseline: a system call rather than the vDSO",
            shown(env),
            shown(base)
        )
    })
}
