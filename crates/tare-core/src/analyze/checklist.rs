//! The reporting checklist: the rules that a program can check, checked on this dossier.
//!
//! Rules of Hoefler & Belli 2015 (HB), the SIGPLAN checklist of 2018 and Papadopoulos et al. 2021 (P). Each item is
//! computed from the cells, arms and failures of the same dossier, so that a report that breaks a rule says so
//! itself. Rules that need a statement by the author or a figure are not included.
//! Limits: does not check whether the workloads were well chosen.

use tare_model::dossier::{CheckItem, Dossier, DossierCell, Span};
use tare_model::fact;
use tare_model::{Better, CheckResult, Deviation, ResourceClass};
use tare_stats::Verdict;

use super::cell::counted;
use super::collect::Collector;
use super::diagnostics::{INCOMPLETE_BLOCKS, NO_RATIO, NOT_MEASURED, TOO_FEW_BLOCKS};

/// Flags of a missing, rather than doubtful, number.
const ABSENCES: &[&str] = &[NOT_MEASURED, TOO_FEW_BLOCKS, NO_RATIO, INCOMPLETE_BLOCKS];
/// Facts without which a result has no context.
const NEEDED_FACTS: &[&str] = &[fact::KERNEL_RELEASE, fact::CPU_MODEL];

/// Returns every item, filled in.
pub(crate) fn filled_in(dossier: &Dossier, collected: &Collector<'_>) -> Vec<CheckItem> {
    vec![
        absolute_values(dossier),
        cost_orientation(dossier),
        intervals(dossier),
        diagnostics(dossier),
        interval_of_the_ratio(dossier),
        facts(dossier),
        concurrency(dossier),
        bound(dossier),
        plan(dossier),
        aa(dossier),
        mde(dossier),
        many_cells(dossier),
        units(dossier),
        time(dossier),
        scope(dossier),
        failures(dossier, collected),
        side_costs(dossier, collected),
    ]
}

fn item(id: &str, result: CheckResult, detail: String) -> CheckItem {
    CheckItem {
        id: id.to_owned(),
        result,
        detail,
    }
}

fn judged(id: &str, holds: bool, detail: String) -> CheckItem {
    item(
        id,
        if holds {
            CheckResult::Pass
        } else {
            CheckResult::Fail
        },
        detail,
    )
}

fn all(dossier: &Dossier) -> impl Iterator<Item = &DossierCell> {
    dossier.cells.iter().chain(&dossier.aa)
}

fn ratios(dossier: &Dossier) -> impl Iterator<Item = (&DossierCell, Span)> {
    all(dossier).filter_map(|cell| Some((cell, cell.ratio?)))
}

/// HB1: an absolute value with every ratio, and the baseline named.
fn absolute_values(dossier: &Dossier) -> CheckItem {
    let total = ratios(dossier).count();
    let complete = ratios(dossier)
        .filter(|(cell, _)| cell.base.is_some() && cell.env.is_some() && !cell.baseline.is_empty())
        .count();
    judged(
        "absolute-values",
        complete == total,
        format!(
            "{complete} of {} have both values next to them",
            counted(total, "ratio")
        ),
    )
}

/// HB3: rates are inverted before anything is summarised. Checked by the signs: a cost in a rate is a smaller rate.
fn cost_orientation(dossier: &Dossier) -> CheckItem {
    let mut rates = 0;
    let mut wrong = 0;
    for (cell, ratio) in ratios(dossier) {
        let Some(difference) = cell.difference else {
            continue;
        };
        let is_rate = cell.better == Better::Higher;
        rates += u32::from(is_rate);
        let (low, high) = if is_rate {
            (-difference.high, -difference.low)
        } else {
            (difference.low, difference.high)
        };
        wrong += u32::from(low > 0.0 && ratio.high < 1.0 || high < 0.0 && ratio.low > 1.0);
    }
    judged(
        "cost-orientation",
        wrong == 0,
        format!(
            "{rates} cells are rates and turned over; {wrong} cells have a ratio against the sign of their difference"
        ),
    )
}

/// HB5, P1: every ratio has a number of blocks and an interval that contains its point.
fn intervals(dossier: &Dossier) -> CheckItem {
    let total = ratios(dossier).count();
    let sound = ratios(dossier)
        .filter(|(cell, ratio)| {
            cell.n_blocks as usize >= super::FEWEST_BLOCKS
                && ratio.low <= ratio.point
                && ratio.point <= ratio.high
        })
        .count();
    let blocks = ratios(dossier).map(|(cell, _)| cell.n_blocks);
    judged(
        "intervals",
        sound == total,
        format!(
            "{sound} of {} have an exact signed-rank interval at 95 %; fewest blocks: {}",
            counted(total, "ratio"),
            blocks
                .min()
                .map_or_else(|| "none".to_owned(), |fewest| fewest.to_string())
        ),
    )
}

/// HB6: no normality is assumed, and the diagnostics are shown.
fn diagnostics(dossier: &Dossier) -> CheckItem {
    let examined = ratios(dossier).count();
    let doubtful = |cell: &DossierCell| {
        let mut flags = cell.flags.iter();
        flags.any(|flag| !ABSENCES.contains(&flag.id.as_str()))
    };
    let flagged = ratios(dossier).filter(|(cell, _)| doubtful(cell)).count();
    if examined == 0 {
        return item(
            "diagnostics",
            CheckResult::NotKnown,
            "there is no ratio to examine".to_owned(),
        );
    }
    judged(
        "diagnostics",
        true,
        format!(
            "{} examined, {flagged} with remarks",
            counted(examined, "cell")
        ),
    )
}

/// HB7: the interval is that of the ratio itself; two overlapping intervals are never compared.
fn interval_of_the_ratio(dossier: &Dossier) -> CheckItem {
    let claims = all(dossier).filter(|cell| cell.verdict != Verdict::Inconclusive);
    let without = claims.filter(|cell| cell.ratio.is_none()).count();
    judged(
        "interval-of-the-ratio",
        without == 0,
        format!("{without} verdicts stand without an interval of their ratio"),
    )
}

/// HB9, P3: the facts needed to interpret the result are known for every arm.
fn facts(dossier: &Dossier) -> CheckItem {
    let mut missing = Vec::new();
    for arm in dossier.arms.iter().filter(|arm| arm.available) {
        let names = NEEDED_FACTS.iter();
        let unknown = names.filter(|name| !arm.facts.contains_key(**name));
        missing.extend(unknown.map(|name| format!("{}: {name}", arm.id)));
        if arm.agent_sha256.is_none() {
            missing.push(format!("{}: hash of the agent", arm.id));
        }
    }
    let detail = if missing.is_empty() {
        "kernel, processor and the agent's hash are recorded for every arm".to_owned()
    } else {
        format!("not recorded: {}", missing.join(", "))
    };
    judged("facts", missing.is_empty(), detail)
}

/// HB10: several concurrent instances are reported as such.
fn concurrency(dossier: &Dossier) -> CheckItem {
    let most = all(dossier).map(|cell| cell.instances).max().unwrap_or(1);
    if most <= 1 {
        return item(
            "concurrency",
            CheckResult::NotKnown,
            "one instance at a time everywhere".to_owned(),
        );
    }
    judged(
        "concurrency",
        true,
        format!("up to {most} instances at once; their number is part of the cell"),
    )
}

/// HB11: a bound; the bare host is one.
fn bound(dossier: &Dossier) -> CheckItem {
    let baseline = dossier.arms.iter().find(|arm| arm.baseline);
    let is_host = baseline.is_some_and(|arm| arm.driver == "host");
    let what = baseline.map_or("none", |arm| arm.driver.as_str());
    judged(
        "bound",
        is_host,
        format!("the baseline's driver is `{what}`"),
    )
}

/// P1, P6: the plan was hashed before the first trial, and deviations are reported. Blocks added after an end are in
/// no plan.
fn plan(dossier: &Dossier) -> CheckItem {
    let hash = &dossier.study.plan_sha256;
    let is_hash = hash.len() == 64 && hash.bytes().all(|digit| digit.is_ascii_hexdigit());
    let carried_out = if dossier.complete {
        "carried out"
    } else {
        "NOT carried out to its end"
    };
    let mut deviations = dossier.deviations.iter();
    let was_extended = deviations.any(|it| it.kind == Deviation::Extended);
    let message: Vec<String> = dossier
        .deviations
        .iter()
        .map(|deviation| format!("; {}", deviation.detail))
        .collect();
    judged(
        "plan",
        is_hash && dossier.complete && !was_extended,
        format!(
            "plan `{}…`, seed {}: {carried_out}, stopped by {}{}",
            hash.chars().take(12).collect::<String>(),
            dossier.study.seed,
            dossier.stopped_by,
            message.concat()
        ),
    )
}

/// P6: the baseline was compared with itself.
fn aa(dossier: &Dossier) -> CheckItem {
    let cells = dossier.aa.iter().filter(|cell| cell.ratio.is_some());
    let cells: Vec<&DossierCell> = cells.collect();
    let compared = cells.len();
    let alarms = false_alarms(dossier);
    if compared == 0 {
        return judged(
            "a-a",
            false,
            "the baseline was not compared with itself".to_owned(),
        );
    }
    let allowed = alarms_allowed(&cells);
    judged(
        "a-a",
        alarms <= allowed,
        format!(
            "{} of {}, {allowed} are allowed by chance",
            counted(alarms, "false positive"),
            counted(compared, "cell")
        ),
    )
}

/// Returns the number of A′ cells that claim a difference.
pub fn false_alarms(dossier: &Dossier) -> usize {
    let alarm = |cell: &&DossierCell| cell.verdict.is_difference();
    dossier.aa.iter().filter(alarm).count()
}

/// Returns how many of these comparisons of equal things may be called different: the 97.5 % point of chance. Numbers
/// from the same trials are right or wrong together; only those from different trials are independent draws.
pub fn alarms_allowed(cells: &[&DossierCell]) -> usize {
    const RATE: f64 = 0.05;
    const POINT: f64 = 0.975;
    let of_same_trials = |a: &DossierCell, b: &DossierCell| {
        (&a.workload, &a.params, a.instances, &a.path)
            == (&b.workload, &b.params, b.instances, &b.path)
    };
    let is_first = |place: &usize| {
        !cells[..*place]
            .iter()
            .any(|cell| of_same_trials(cell, cells[*place]))
    };
    // Probability of each number of alarms, workload by workload.
    let mut likely = vec![1.0];
    for first in (0..cells.len()).filter(is_first) {
        let n = cells
            .iter()
            .filter(|cell| of_same_trials(cell, cells[first]))
            .count();
        let mut with = vec![0.0; likely.len() + n];
        for (alarms, p) in likely.iter().enumerate() {
            with[alarms] += p * (1.0 - RATE);
            with[alarms + n] += p * RATE;
        }
        likely = with;
    }
    let mut below = 0.0;
    let most = likely.iter().position(|p| {
        below += p;
        below >= POINT
    });
    most.unwrap_or(cells.len())
}

/// P6: an undecided comparison states which difference could have been detected.
fn mde(dossier: &Dossier) -> CheckItem {
    let undecided = ratios(dossier).filter(|(cell, _)| cell.verdict == Verdict::Inconclusive);
    let (told, silent): (Vec<_>, Vec<_>) = undecided.partition(|(cell, _)| cell.mde.is_some());
    judged(
        "detectable-effect",
        silent.is_empty(),
        format!(
            "{} reported, {} without",
            counted(told.len(), "detectable effect"),
            silent.len()
        ),
    )
}

/// P6: the family of the correction for multiple comparisons.
fn many_cells(dossier: &Dossier) -> CheckItem {
    let family = dossier.cells.iter().filter(|cell| cell.p.is_some()).count();
    let adjusted = dossier.cells.iter().filter(|cell| cell.q.is_some()).count();
    judged(
        "many-cells",
        family == adjusted,
        format!(
            "Benjamini–Hochberg, q = 0.05, within each arm, {adjusted} primary cells in all; A′ is outside, and verdicts of equivalence are not corrected"
        ),
    )
}

/// P7: every cell has a unit and a direction.
fn units(dossier: &Dossier) -> CheckItem {
    let without = all(dossier).filter(|cell| cell.unit.is_empty());
    let without = without.count();
    judged(
        "units",
        without == 0,
        format!("{without} cells lack a unit or a direction"),
    )
}

/// P8: what the experiment cost.
fn time(dossier: &Dossier) -> CheckItem {
    judged(
        "cost-of-the-run",
        dossier.cost.wall_s > 0.0,
        format!(
            "{:.0} s, {}",
            dossier.cost.wall_s,
            counted(dossier.cost.trials as usize, "trial")
        ),
    )
}

/// SIGPLAN: claims no wider than the evidence. The report's last sentence is made of these.
fn scope(dossier: &Dossier) -> CheckItem {
    let baseline = dossier.arms.iter().find(|arm| arm.baseline);
    let fact = |name| baseline.and_then(|arm| arm.facts.get(name));
    match (fact(fact::CPU_MODEL), fact(fact::KERNEL_RELEASE)) {
        (Some(cpu), Some(kernel)) => judged(
            "scope",
            true,
            format!("this machine ({cpu}), kernel {kernel}"),
        ),
        _ => judged(
            "scope",
            false,
            "the machine or its kernel is not recorded, so that the claim has no place".to_owned(),
        ),
    }
}

/// SIGPLAN: nothing is omitted silently.
fn failures(dossier: &Dossier, collected: &Collector<'_>) -> CheckItem {
    let listed: u32 = dossier.failures.iter().map(|failure| failure.trials).sum();
    let counted_trials = collected.tally.total();
    judged(
        "failures",
        listed == counted_trials,
        format!("{listed} of {counted_trials} trials without a value are listed with their reason"),
    )
}

/// SIGPLAN: costs other than speed.
fn side_costs(dossier: &Dossier, collected: &Collector<'_>) -> CheckItem {
    let class_of = |cell: &DossierCell| {
        let groups = collected.groups.values();
        let mut workloads = groups.filter_map(|group| group.workload);
        let workload = workloads.find(|workload| workload.id() == cell.workload)?;
        let mut metrics = workload.metrics().iter();
        metrics
            .find(|metric| metric.id == cell.metric)
            .map(|metric| metric.class)
    };
    let mut beside = Vec::new();
    if ratios(dossier).any(|(cell, _)| class_of(cell) == Some(ResourceClass::StartUp)) {
        beside.push("start-up");
    }
    if ratios(dossier).any(|(cell, _)| cell.unit == "B") {
        beside.push("memory");
    }
    if !beside.is_empty() {
        let detail = format!("measured in addition to speed: {}", beside.join(", "));
        return judged("side-costs", true, detail);
    }
    // "Requested but not measured" differs from "not requested".
    let is_side_cost = |name: &str| {
        let found = (collected.placing.find)(name);
        found.is_some_and(|workload| {
            let mut metrics = workload.metrics().iter();
            metrics
                .any(|metric| metric.class == ResourceClass::StartUp || metric.unit.symbol() == "B")
        })
    };
    let missed = dossier.failures.iter().find(|failure| {
        let name = failure.workload.as_deref();
        name.is_some_and(is_side_cost)
    });
    let detail = match missed {
        Some(failure) => format!(
            "start-up or memory was to be measured and could not be: `{}` in `{}`: {}",
            failure.workload.as_deref().unwrap_or_default(),
            failure.arm,
            failure.reason
        ),
        None if dossier.cells.iter().all(|cell| cell.ratio.is_none()) => {
            "nothing could be compared, start-up and memory neither".to_owned()
        }
        None => "this study asks for neither start-up nor memory; the workload `start-up` measures the former".to_owned(),
    };
    judged("side-costs", false, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cell;

    #[test]
    fn aa_alarms_of_the_same_trials_count_as_one_draw() {
        let cells = |n: i64, of_each: usize| -> Vec<DossierCell> {
            (0..n)
                .flat_map(|value| {
                    let mut cell = cell("cpu.integer.time", 1.0);
                    cell.params = cell.params.with("threads", value);
                    vec![cell; of_each]
                })
                .collect()
        };
        let allowed = |n: i64, of_each: usize| {
            let cells = cells(n, of_each);
            alarms_allowed(&cells.iter().collect::<Vec<_>>())
        };
        for n in [1u8, 7, 28] {
            let chance = tare_stats::binomial_quantile(0.975, n.into(), 0.05).unwrap();
            assert_eq!(allowed(n.into(), 1) as u64, chance, "{n}");
        }
        // 28 numbers of seven workloads, two of which may be alarms.
        assert_eq!(allowed(7, 4), 4 * allowed(7, 1));
        assert_eq!(allowed(0, 1), 0);
    }
}
