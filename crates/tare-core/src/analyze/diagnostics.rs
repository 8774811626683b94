//! Checks a cell for problems and states their consequences.
//!
//! Each check has a fixed threshold and a fixed consequence, so that every cell is judged alike. Dependence between
//! blocks has widened the interval already. A drift of the effect forbids the claim of equivalence. Everything else
//! is reported and changes nothing: outliers are counted and never removed. Checks that need a p use 0.01, because
//! each cell gets several.
//! Limits: a disturbance that affects both arms alike is removed by the blocks and leaves no trace; one that affects
//! every trial of one arm counts as the arm's cost.

use tare_model::Params;
use tare_model::dossier::Flag;
use tare_model::facts::emulation;
use tare_stats::diagnostics as checks;
use tare_stats::diagnostics::FLAG_P;
use tare_stats::{Verdict, mean_paired, median};

use super::effect::{self, as_ratio};
use super::flag::{Evidence, THROTTLED, flag};
use super::input::ArmData;
use super::machine;
use super::pairs::{Pairs, Side};
use super::{FEWEST_BLOCKS, LEVEL};
use crate::parity;
use crate::workload::Workload;

/// A ratio must scatter more than this times as much as the ratio of the baseline's two copies to be reported as
/// moving.
const MOVES_FROM: f64 = 2.0;

/// Fewer than six blocks.
pub(crate) const TOO_FEW_BLOCKS: &str = "too-few-blocks";
/// No block has a value on both sides.
pub(crate) const NOT_MEASURED: &str = "not-measured";
/// Blocks with a value on one side only.
pub(crate) const INCOMPLETE_BLOCKS: &str = "incomplete-blocks";
/// The arm, or the one it is compared with, is emulated in software.
pub(crate) const EMULATED: &str = "emulated";
/// The arm ran a different program than the baseline.
pub(crate) const DIFFERENT_TOOL: &str = "different-tool";
/// The effect has a trend over the blocks.
pub(crate) const DRIFTING_EFFECT: &str = "drifting-effect";
/// The effect scatters more from block to block than noise explains.
pub const EFFECT_MOVES: &str = "effect-moves";
/// All blocks are from one start of the arms.
pub(crate) const ONE_LAUNCH: &str = "one-launch";
/// A value without a logarithm.
pub(crate) const NO_RATIO: &str = "no-ratio";
/// Significant by itself, but not after correction for all cells.
pub const NOT_AFTER_CORRECTION: &str = "not-significant-after-correction";
/// Several instances did not run at the same time.
pub(crate) const LITTLE_OVERLAP: &str = "little-overlap";
/// Several instances share no clock.
pub(crate) const NO_COMMON_CLOCK: &str = "no-common-clock";

/// Up to this number each block is left out once; above, only the two extreme ones, which bound all others.
const LEAVE_EACH_OUT_UP_TO: usize = 60;
/// Above this number no block is left out: a verdict that depends on one of so many is on the margin, as its interval
/// shows.
const LEAVE_OUT_UP_TO: usize = 1_000;
/// From this number of blocks the dip test looks for two modes; below it, the largest gap.
const DIP_FROM: usize = 30;
/// √n·dip below this is far from significance at 0.01 at every n from 30 on (its 95 % point is 0.46 to 0.47), so that
/// no simulation is needed.
const DIP_WORTH_TESTING: f64 = 0.45;
/// Number of samples that the dip test draws.
const DIP_DRAWS: usize = 2_000;

/// Flags every cell with an emulated side, however little was measured: the number is correct, but does not measure
/// the overhead of that kind of environment.
pub(crate) fn emulated(arm: &ArmData, base_arm: Option<&ArmData>) -> Option<Flag> {
    let shown = |arm: &ArmData| emulation(&arm.facts).map(str::to_owned);
    let detail = shown(arm).or_else(|| {
        let base = base_arm?;
        Some(format!("`{}`: {}", base.spec.id, shown(base)?))
    })?;
    Some(flag(EMULATED, detail))
}

/// Flags every cell of a workload whose tool differs between the arm and the baseline: its ratio compares two
/// programs. The agent's built-in probes are the same bytes in every arm and are not affected.
pub(crate) fn different_tool(
    arm: &ArmData,
    base_arm: Option<&ArmData>,
    workload: &dyn Workload,
    params: &Params,
) -> Option<Flag> {
    let tools = workload.tools(params).into_iter();
    let programs: Vec<String> = tools.map(|tool| tool.program).collect();
    let found = parity::mismatches(base_arm?.side(), arm.side(), &programs);
    if found.is_empty() {
        return None;
    }
    let shown: Vec<String> = found.iter().map(ToString::to_string).collect();
    Some(flag(DIFFERENT_TOOL, shown.join("; ")))
}

/// A check of a cell: what it found, if anything.
type Check = fn(&Evidence<'_>) -> Option<String>;

/// All checks of a cell, by the ids of their flags.
const CHECKS: [(&str, Check); 23] = [
    ("autocorrelated", dependence),
    ("launches-differ", launches),
    (ONE_LAUNCH, one_launch),
    (DRIFTING_EFFECT, drift_of_effect),
    ("drifting-baseline", drift_of_baseline),
    ("order-effect", order),
    ("fragile", fragile),
    ("bimodal", bimodal),
    ("outliers", outliers),
    ("tails", tails),
    ("rare-slices", rare_slices),
    ("no-spread", coarse_values),
    ("repeated-trials", replaced),
    ("steal", machine::steal),
    ("contended", machine::contended),
    (THROTTLED, machine::throttled),
    ("clock-confounded", machine::canary),
    ("major-faults", machine::major_faults),
    ("not-steady", not_steady),
    ("coarse-timer", machine::coarse_timer),
    ("not-linear", machine::not_linear),
    ("slow-clock", machine::slow_clock),
    ("other-processor", machine::other_processor),
];

/// Runs all checks on a cell.
pub(crate) fn examine(evidence: &Evidence<'_>) -> Vec<Flag> {
    let found = CHECKS
        .iter()
        .filter_map(|(id, check)| Some(flag(id, check(evidence)?)));
    found.collect()
}

fn dependence(evidence: &Evidence<'_>) -> Option<String> {
    // Negative dependence between blocks needs no wider interval.
    let found = evidence.effect.widening.dependence;
    let found = found.filter(|found| checks::widening(found.tau) > 1.0)?;
    let n = evidence.d.len();
    Some(format!(
        "Ljung–Box p = {:.4}; τ = {:.2}, so {n} blocks are worth {:.1}, which asks for an interval that is {:.2} times as wide",
        found.p,
        found.tau,
        checks::effective_size(n, found.tau),
        checks::widening(found.tau)
    ))
}

fn launches(evidence: &Evidence<'_>) -> Option<String> {
    let found = evidence.effect.widening.launches?;
    Some(format!(
        "{} launches: the variance between them is {:.1} times that of single blocks, which asks for an interval that is {:.2} times as wide",
        found.count, found.ratio, found.factor
    ))
}

fn one_launch(evidence: &Evidence<'_>) -> Option<String> {
    let (first, others) = evidence.pairs.launches().split_first()?;
    let is_one = others.iter().all(|launch| launch == first);
    is_one.then(|| "the arms were started once".to_owned())
}

fn drift_of_effect(evidence: &Evidence<'_>) -> Option<String> {
    let trend = evidence.effect.drift?;
    let slope = checks::theil_sen(evidence.d)?;
    let message = format!("the ratio changes by {}", a_block(slope));
    Some(trending(trend.p, &message))
}

/// Formats a trend and its size.
fn trending(p: f64, told: &str) -> String {
    format!("Mann–Kendall p = {p:.4}; {told}")
}

/// Formats a slope of logarithms as a change per block.
fn a_block(slope: f64) -> String {
    format!("{:+.3} % a block", slope.exp_m1() * 100.0)
}

/// Flags an imprecise ratio whose effect differs from block to block: it scatters more than the ratio of the
/// baseline's two copies, which the same machine disturbed. Only for cells that are compared with both copies and are
/// not precise enough.
pub(crate) fn effect_moves(evidence: &Evidence<'_>, copies: &Pairs<'_>) -> Option<Flag> {
    // Noise of the arm against the mean of two copies, each as noisy as the arm; and of one copy against the other.
    const NOISE: [f64; 2] = [1.224_744_871_391_589, std::f64::consts::SQRT_2];
    let pairs = evidence.pairs.all.iter().zip(evidence.d);
    let of_two = pairs.filter(|(pair, _)| pair.base.twin.is_some());
    let d: Vec<f64> = of_two.map(|(_, d)| *d).collect();
    let of_copies =
        effect::means(&copies.ln_ratios(evidence.metric.better, |reading| reading.typical)?);
    if d.len().min(of_copies.len()) < FEWEST_BLOCKS {
        return None;
    }
    let found = checks::scatter(&d, &of_copies, NOISE)?;
    (found.p < FLAG_P && found.ratio > MOVES_FROM).then(|| {
        flag(
            EFFECT_MOVES,
            format!(
                "from block to block the ratio scatters {:.1}× more than that of A′ (p = {:.4})",
                found.ratio, found.p
            ),
        )
    })
}

fn drift_of_baseline(evidence: &Evidence<'_>) -> Option<String> {
    let pairs = evidence.pairs.all.iter();
    let costs: Option<Vec<f64>> = pairs
        .map(|pair| {
            let better = evidence.metric.better;
            pair.base.ln_cost(better, |reading| reading.typical)
        })
        .collect();
    let costs = costs?;
    let trend = checks::mann_kendall(&costs).filter(|trend| trend.p < FLAG_P)?;
    let slope = checks::theil_sen(&costs)?;
    let message = format!("{}, removed by the blocks", a_block(slope));
    Some(trending(trend.p, &message))
}

fn order(evidence: &Evidence<'_>) -> Option<String> {
    let pairs = evidence.pairs.all.iter();
    let places: Vec<usize> = pairs.map(|pair| pair.env.0.position as usize).collect();
    let p = checks::order_effect(evidence.d, &places).filter(|p| *p < FLAG_P)?;
    let mut medians = Vec::new();
    let mut distinct = places.clone();
    distinct.sort_unstable();
    distinct.dedup();
    for place in distinct {
        let here = evidence.d.iter().zip(&places);
        let here: Vec<f64> = here
            .filter(|(_, at)| **at == place)
            .map(|(d, _)| *d)
            .collect();
        medians.push(format!("{}: {:.3}", place + 1, median(&here)?.exp()));
    }
    Some(format!(
        "p = {p:.4}; ratio by the arm's place in the block: {}",
        medians.join(", ")
    ))
}

/// Flags a verdict that depends on one block. Only for decided cells: to flag an undecided one would invite leaving
/// out the block.
fn fragile(evidence: &Evidence<'_>) -> Option<String> {
    let (d, margin) = (evidence.d, evidence.margin);
    let all = evidence.effect.verdict(margin);
    if all == Verdict::Inconclusive || d.len() > LEAVE_OUT_UP_TO {
        return None;
    }
    if d.len() <= FEWEST_BLOCKS {
        return Some(format!(
            "{FEWEST_BLOCKS} blocks are the fewest that give a verdict: without any of them there is none"
        ));
    }
    let left_out: Vec<usize> = if d.len() <= LEAVE_EACH_OUT_UP_TO {
        (0..d.len()).collect()
    } else {
        let by_value = |a: &usize, b: &usize| d[*a].total_cmp(&d[*b]);
        let least = (0..d.len()).min_by(by_value)?;
        vec![least, (0..d.len()).max_by(by_value)?]
    };
    let launches = evidence.pairs.launches();
    let without = |place: usize| {
        let (mut blocks, mut launches) = (evidence.blocks.to_vec(), launches.to_vec());
        blocks.remove(place);
        launches.remove(place);
        effect::effect(&blocks, &launches).ok()
    };
    left_out.into_iter().find_map(|place| {
        let other = without(place)?.verdict(margin);
        (other != all).then(|| {
            let block = evidence.pairs.all[place].block;
            let other = match other {
                Verdict::Inconclusive => "inconclusive".to_owned(),
                other => other.to_string().replace('-', " "),
            };
            format!("without block {block}: {other}")
        })
    })
}

fn bimodal(evidence: &Evidence<'_>) -> Option<String> {
    let d = evidence.d;
    let gap = checks::largest_gap(d)?;
    let by = if d.len() < DIP_FROM {
        gap.is_split()
            .then(|| format!("{:.0} % of the range is empty", gap.share * 100.0))?
    } else {
        let dip = checks::dip(d)?;
        if dip * (d.len() as f64).sqrt() < DIP_WORTH_TESTING {
            return None;
        }
        let (dip, p) = checks::dip_p(d, DIP_DRAWS, evidence.seed)?;
        (p < FLAG_P).then(|| format!("dip {dip:.3}, p = {p:.4}"))?
    };
    let mut sorted = d.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = sorted.split_at(gap.below);
    Some(format!(
        "{by}; {} blocks around {:.3}, {} around {:.3}",
        low.len(),
        median(low)?.exp(),
        high.len(),
        median(high)?.exp()
    ))
}

fn outliers(evidence: &Evidence<'_>) -> Option<String> {
    let count = checks::outlier_count(evidence.d)?;
    (count.modified_z > 0 || count.tukey > 0).then(|| {
        format!(
            "{} by modified z, {} by Tukey's outer fence; all are kept",
            count.modified_z, count.tukey
        )
    })
}

/// Reports the mean with Student's t if it disagrees with the ranks.
fn tails(evidence: &Evidence<'_>) -> Option<String> {
    let by_t = mean_paired(evidence.d, LEVEL).ok()?.interval;
    let ranks = evidence.effect.exact;
    let apart = [
        by_t.point - ranks.point,
        by_t.low - ranks.low,
        by_t.high - ranks.high,
    ];
    let half = ranks.half_width();
    apart.iter().any(|distance| distance.abs() > half).then(|| {
        format!(
            "geometric mean {} by t, ranks say {}",
            as_ratio(&by_t),
            as_ratio(&ranks)
        )
    })
}

/// Reports the total of all slices if its interval misses that of the typical slice: a few slices carry the
/// difference.
fn rare_slices(evidence: &Evidence<'_>) -> Option<String> {
    let pairs = evidence.pairs;
    let is_sliced = pairs.all.iter().all(|pair| pair.env.0.turns.were_taken());
    let totals = is_sliced.then(|| {
        let better = evidence.metric.better;
        pairs.ln_ratios(better, |reading| reading.total)
    });
    let total = effect::interval(&totals??, pairs.launches()).ok()?;
    let typical = &evidence.effect.ci95;
    (total.low > typical.high || total.high < typical.low).then(|| {
        format!(
            "all slices together {}, typical {}",
            as_ratio(&total),
            as_ratio(typical)
        )
    })
}

fn coarse_values(evidence: &Evidence<'_>) -> Option<String> {
    (evidence.effect.ci95.half_width() <= 0.0).then(|| {
        "the interval has no width: a deterministic count, or steps too coarse to see the noise"
            .to_owned()
    })
}

fn replaced(evidence: &Evidence<'_>) -> Option<String> {
    let trials = evidence.pairs.trials();
    let count = trials.filter(|(kept, _)| kept.replaced).count();
    (count > 0).then(|| format!("{count} trials were repeated in their block; the last one counts"))
}

fn not_steady(evidence: &Evidence<'_>) -> Option<String> {
    let count = |side: &[Side<'_>]| side.iter().filter(|(_, it)| it.unsteady).count();
    let (of_base, of_env) = (evidence.pairs.base(), evidence.pairs.env());
    let (base, env) = (count(of_base), count(of_env));
    (base * 2 > of_base.len() || env * 2 > of_env.len()).then(|| {
        format!(
            "the series did not settle in {env} of {} trials of the arm and {base} of {} of the baseline",
            of_env.len(),
            of_base.len()
        )
    })
}
