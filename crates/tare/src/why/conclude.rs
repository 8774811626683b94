//! From a stored run of `why` to its dossier: verdict, ladder, findings, answer.
//!
//! Pure: the study's arms carry what was suspected, and everything else is derived from the trials, so that a
//! stored run is judged again like the day it was made.
//! What it cannot see: what came before the run; the first look stands in its notes.

use tare_model::dossier::{
    CheckItem, Dossier, DossierCell, DossierCounter, DossierFinding, DossierWhy, Span,
};
use tare_model::study::A_PRIME;
use tare_model::{ArmId, ArmSpec, CommandCall};
use tare_stats::{Interval, Verdict};

use super::counterfactual::{self, Status, Suspect, Trial};
use super::readings::{Readings, evidence, in_common, interval, share, span};
use super::{arm, ladder};
use crate::analyze::{self, RunData};
use crate::cause::{ArmEvidence, Case};
use crate::config::units;
use crate::parity::{self, Side};
use crate::workload::{self, user_command};

/// What creating and removing an environment takes.
const START_UP: &str = "start-up.total.time";

/// The arm that was asked about.
pub fn env_arm(run: &RunData) -> Option<&ArmSpec> {
    let study = &run.head.study;
    let mut arms = study.arms.iter();
    arms.find(|arm| is_asked_about(arm, &study.baseline))
}

/// Whether an arm is the one that was asked about.
pub(super) fn is_asked_about(arm: &ArmSpec, baseline: &ArmId) -> bool {
    arm.required && arm.id != *baseline && arm.id.as_str() != A_PRIME
}

/// The metric that was asked for.
fn metric(env: &ArmSpec) -> String {
    env.settings
        .text("command.metric")
        .unwrap_or(user_command::WALL)
        .to_owned()
}

/// What the causes suspect, from this run alone, as far as it is worth trying. What only starting costs is tried
/// where starting takes longer than the command and the command itself costs nothing more: it takes a start for
/// every trial.
pub fn suspects(run: &RunData, dossier: &Dossier) -> Vec<Trial> {
    let mut suspects = all_suspects(run, dossier);
    let Some(env) = env_arm(run) else {
        return suspects;
    };
    let metric = metric(env);
    let is_costlier = dossier.cells.iter().any(|cell| {
        cell.arm == env.id.as_str()
            && cell.metric == metric
            && Verdict::from_name(&cell.verdict)
                .is_some_and(|word| matches!(word, Verdict::MaterialCost | Verdict::Cost))
    });
    if is_costlier {
        suspects.retain(|trial| trial.suspect.metric == metric);
    }
    suspects
}

fn all_suspects(run: &RunData, dossier: &Dossier) -> Vec<Trial> {
    let Some(env) = env_arm(run) else {
        return Vec::new();
    };
    let readings = Readings::of(run);
    let baseline = evidence(run, &readings, run.head.study.baseline.as_str());
    let inside = evidence(run, &readings, env.id.as_str());
    let cells: Vec<DossierCell> = dossier
        .cells
        .iter()
        .filter(|cell| cell.arm == env.id.as_str())
        // Of the command only what was asked about: a cost that nobody asked for is no suspicion's cell.
        .filter(|cell| cell.metric == metric(env) || cell.metric.starts_with("start-up."))
        .cloned()
        .collect();
    let case = Case {
        host: &baseline.facts,
        baseline: &baseline,
        arm: &inside,
        cells: &cells,
    };
    let metric = metric(env);
    let mut suspects = counterfactual::suspects(&case, &metric, env);
    if !is_start_up_longer(&readings, env.id.as_str()) {
        suspects.retain(|trial| trial.suspect.metric == metric);
    }
    suspects
}

/// Whether creating and removing the environment takes longer than the command inside.
fn is_start_up_longer(readings: &Readings, env: &str) -> bool {
    let typical = |metric: &str| {
        let values: Vec<f64> = readings.values(env, metric).into_values().collect();
        tare_stats::median(&values)
    };
    match (typical(START_UP), typical(user_command::WALL)) {
        (Some(start_up), Some(wall)) => start_up > wall,
        _ => false,
    }
}

/// The dossier of an answer: of the run that ended it, with those before it ([`joined`](super::joined)).
pub fn conclude(run: &RunData) -> Dossier {
    let mut dossier = analyze::analyze(run, &workload::find);
    let Some(env) = env_arm(run) else {
        return dossier;
    };
    let readings = Readings::of(run);
    let id = env.id.as_str();
    let metric = metric(env);
    let baseline = run.head.study.baseline.as_str();
    let cell = dossier
        .cells
        .iter()
        .find(|cell| cell.arm == id && cell.metric == metric)
        .cloned();
    let unit = cell
        .as_ref()
        .map_or("ns", |cell| cell.unit.as_str())
        .to_owned();
    dossier.ladder = ladder::climbed(run, &readings, &metric, &unit, id);
    dossier.findings = findings(run, &readings, &dossier, env);
    let word = cell
        .as_ref()
        .and_then(|cell| Verdict::from_name(&cell.verdict));
    dossier
        .findings
        .retain(|finding| is_worth_telling(finding, word));
    let explained = explained(&dossier.findings, &metric_of_findings(run, &metric));
    let n_blocks = cell.as_ref().map_or(0, |cell| cell.n_blocks);
    let spent = Spent::of(run, baseline, id, n_blocks);
    let lives = interval(
        &readings
            .values(id, START_UP)
            .into_values()
            .collect::<Vec<_>>(),
    );
    let (mut outcome, mut answer, could_see) =
        answer(cell.as_ref(), env, &dossier, explained.as_ref(), &spent);
    if let Some(lives) = lives.filter(|_| is_start_up_longer(&readings, id)) {
        let wall: Vec<f64> = readings
            .values(id, user_command::WALL)
            .into_values()
            .collect();
        let wall = tare_stats::median(&wall).unwrap_or(lives.point);
        answer = format!(
            "start-up dominates: creating and removing `{id}` takes {:.1} times as long as the command itself; {answer}",
            lives.point / wall
        );
        if outcome != "cost" {
            outcome = "start-up";
        }
    }
    dossier.why = Some(DossierWhy {
        command: arm::texts(&env.settings, "command.argv"),
        arm: id.to_owned(),
        metric,
        carried: arm::texts(&env.settings, "command.carried"),
        outcome: outcome.to_owned(),
        answer,
        explained,
        could_see,
        start_up_ns: lives.map(span),
        counters: counters(&readings, baseline, id),
    });
    dossier
        .parity
        .extend(programs(run, &readings, baseline, id));
    dossier
}

/// Whether the command's program, and what interprets it, were the same bytes on both sides at the first look.
fn programs(run: &RunData, readings: &Readings, baseline: &str, env: &str) -> Vec<CheckItem> {
    let programs: Vec<String> = run
        .head
        .study
        .workloads
        .first()
        .and_then(|workload| CommandCall::from_args(&workload.params).ok())
        .and_then(|call| call.argv.first().cloned())
        .into_iter()
        .collect();
    let (there, here) = (
        evidence(run, readings, baseline),
        evidence(run, readings, env),
    );
    parity::same_programs(side(&there), side(&here), &programs)
}

fn side(evidence: &ArmEvidence) -> Side<'_> {
    Side {
        id: &evidence.arm,
        settings: &evidence.settings,
        facts: &evidence.facts,
        agent_sha256: None,
    }
}

/// Causes whose finding is about the metric that was asked for, rather than about start-up.
fn metric_of_findings(run: &RunData, metric: &str) -> Vec<String> {
    let noted = run
        .head
        .study
        .arms
        .iter()
        .flat_map(|arm| counterfactual::noted(&arm.settings));
    noted
        .filter(|suspect| suspect.metric == metric)
        .map(|suspect| suspect.cause)
        .collect()
}

/// One finding for each suspect, proved ones first.
fn findings(
    run: &RunData,
    readings: &Readings,
    dossier: &Dossier,
    env: &ArmSpec,
) -> Vec<DossierFinding> {
    let baseline = run.head.study.baseline.as_str();
    let mut judged: Vec<(Status, f64, DossierFinding)> = Vec::new();
    let cells = |suspect: &Suspect| -> Vec<u32> {
        (0..)
            .zip(&dossier.cells)
            .filter(|(_, cell)| cell.arm == env.id.as_str() && cell.metric == suspect.metric)
            .map(|(index, _)| index)
            .collect()
    };
    let mut add = |status: Status, suspect: &Suspect, mut finding: DossierFinding| {
        finding.cells = cells(suspect);
        let weight = finding
            .share
            .map_or(suspect.likelihood - 1.0, |share| share.point);
        judged.push((status, weight, finding));
    };
    let mut noted: Vec<String> = Vec::new();
    for spec in &run.head.study.arms {
        for suspect in counterfactual::noted(&spec.settings) {
            noted.push(suspect.cause.clone());
            if spec.id == env.id {
                add(
                    Status::Untested,
                    &suspect,
                    counterfactual::untested(&suspect),
                );
                continue;
            }
            let data = run.head.arms.iter().find(|arm| arm.spec.id == spec.id);
            let (status, mut finding) = counterfactual::judged(
                &suspect,
                spec.id.as_str(),
                baseline,
                env.id.as_str(),
                readings,
            );
            if let Some(reason) = data
                .filter(|arm| !arm.available)
                .and_then(|arm| arm.reason.clone())
            {
                finding.tried = Some(format!("{}: not available here: {reason}", suspect.tried));
            }
            add(status, &suspect, finding);
        }
    }
    // What a kept environment saves is measured without an arm of its own.
    let is_left = |cause: &String| noted.is_empty() || (cause == KEPT && !noted.contains(cause));
    let left = all_suspects(run, dossier).into_iter();
    for trial in left.filter(|trial| is_left(&trial.suspect.cause)) {
        let suspect = Suspect {
            tried: match &trial.arm {
                Some(_) => format!("{}: not tried yet", trial.suspect.tried),
                None => trial.suspect.tried.clone(),
            },
            ..trial.suspect
        };
        add(
            Status::Untested,
            &suspect,
            counterfactual::untested(&suspect),
        );
    }
    for (status, weight, finding) in &mut judged {
        let kept = (finding.cause == KEPT)
            .then(|| kept(readings, baseline, env.id.as_str()))
            .flatten();
        if let Some((removed, share)) = kept {
            *status = counterfactual::status(Some(&removed), Some(&share));
            // Behind what the command itself costs.
            *weight = share.point - 1.0;
            status.name().clone_into(&mut finding.status);
            finding.effect = Some(span(removed));
            finding.share = Some(span(share));
            finding.arm = Some(env.id.to_string());
            finding.tried = Some(
                "the command in an environment that is kept, as in all trials here, instead of a new one each time; the share is that of start-up and command together"
                    .to_owned(),
            );
        }
    }
    judged.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    let mut findings: Vec<DossierFinding> =
        judged.into_iter().map(|(_, _, finding)| finding).collect();
    narrower_first(&mut findings, |arm| {
        let study = &run.head.study;
        let spec = study.arms.iter().find(|spec| spec.id.as_str() == arm);
        // The environment's own arm switches nothing off.
        spec.filter(|spec| spec.id != env.id).is_some_and(|spec| {
            spec.driver == env.driver && arm::own(&spec.settings) == arm::own(&env.settings)
        })
    });
    findings
}

/// Puts first, of those that are confirmed, the one that changes only the command, where what the widest switch
/// removes beyond it is no more than it removes itself. A switch of the environment may take the other mechanism
/// away too: processors of its own instead of a quota also make the command's pools smaller. What smaller pools
/// alone remove, under the quota as it is, is none of the quota's.
fn narrower_first(findings: &mut [DossierFinding], keeps_environment: impl Fn(&str) -> bool) {
    let is_narrow =
        |finding: &DossierFinding| finding.arm.as_deref().is_some_and(&keeps_environment);
    let share = |finding: &DossierFinding| finding.share.map_or(0.0, |share| share.point);
    let n_confirmed = findings
        .iter()
        .take_while(|finding| finding.status == Status::Confirmed.name())
        .count();
    let confirmed = &mut findings[..n_confirmed];
    let Some(most) = confirmed.first().map(share) else {
        return;
    };
    let narrow = confirmed
        .iter()
        .position(|finding| is_narrow(finding) && share(finding) >= most - share(finding));
    if let Some(place) = narrow {
        confirmed[..=place].rotate_right(1);
    }
}

/// The cause that is switched off by keeping an environment: every run tries that.
const KEPT: &str = "startup.docker-run-constant";

/// What goes when the environment is kept instead of made for each run of the command, and its share of what
/// both together cost more than on the host. `None` where start-up was not measured.
fn kept(readings: &Readings, baseline: &str, env: &str) -> Option<(Interval, Interval)> {
    let started = readings.differences(baseline, env, START_UP);
    let longer = readings.differences(baseline, env, user_command::WALL);
    let (started, longer) = in_common(&started, &longer);
    let total: Vec<f64> = started.iter().zip(&longer).map(|(a, b)| a + b).collect();
    Some((interval(&started)?, share(&started, &total)?))
}

/// Whether a finding belongs to an answer with this verdict. A command that costs nothing more has no cause: what
/// was suspected at the first look was noise. Where nothing is decided, what was tried is told. What starting an
/// environment costs stands beside the command and is told in any case.
fn is_worth_telling(finding: &DossierFinding, word: Option<Verdict>) -> bool {
    match word {
        Some(Verdict::MaterialCost | Verdict::Cost) => true,
        _ if finding.cause.starts_with("startup.") => true,
        None | Some(Verdict::Inconclusive) => {
            finding.arm.is_some() && finding.status != Status::Refuted.name()
        }
        Some(_) => false,
    }
}

/// The share of the cost that what is confirmed explains; of several, their sum, with the sums of the ends: that
/// is wider than it need be, and never too narrow.
fn explained(findings: &[DossierFinding], about: &[String]) -> Option<Span> {
    let mut arms: Vec<&str> = Vec::new();
    let mut shares = Vec::new();
    for finding in findings {
        let is_confirmed = finding.status == Status::Confirmed.name();
        let (Some(share), Some(arm)) = (finding.share, finding.arm.as_deref()) else {
            continue;
        };
        // Two causes that one arm switches off are one measurement.
        if is_confirmed && about.contains(&finding.cause) && !arms.contains(&arm) {
            arms.push(arm);
            shares.push(share);
        }
    }
    let first = *shares.first()?;
    Some(shares[1..].iter().fold(first, |sum, share| Span {
        point: sum.point + share.point,
        low: sum.low + share.low,
        high: sum.high + share.high,
        level: None,
    }))
}

fn counters(readings: &Readings, baseline: &str, env: &str) -> Vec<DossierCounter> {
    const TOLD: [&str; 24] = [
        "children_user_ns",
        "children_sys_ns",
        "run_delay_ns",
        "throttled_ns",
        "nr_throttled",
        "steal_ticks",
        "pressure_cpu_ns",
        "pressure_memory_ns",
        "pressure_io_ns",
        "memory_limit_hits",
        "minflt",
        "majflt",
        "nvcsw",
        "nivcsw",
        "syscr",
        "syscw",
        "read_bytes",
        "write_bytes",
        "charged_cpu_ns",
        "charged_throttled_ns",
        "charged_nr_throttled",
        "charged_memory_limit_hits",
        "charged_read_bytes",
        "charged_write_bytes",
    ];
    let of = |arm: &str| {
        let mut all = readings.counters(arm);
        all.remove(workload::Workload::id(&user_command::ENTRY))
            .unwrap_or_default()
    };
    let (base, env) = (of(baseline), of(env));
    TOLD.iter()
        .map(|name| DossierCounter {
            name: name.strip_prefix("children_").unwrap_or(name).to_owned(),
            base: base.get(*name).copied(),
            env: env.get(*name).copied(),
        })
        .filter(|counter| counter.base.is_some() || counter.env.is_some())
        .collect()
}

/// The outcome, the answer in a sentence, and what could have been seen.
fn answer(
    cell: Option<&DossierCell>,
    env: &ArmSpec,
    dossier: &Dossier,
    explained: Option<&Span>,
    spent: &Spent,
) -> (&'static str, String, Option<f64>) {
    let id = env.id.as_str();
    let Some(cell) = cell else {
        return (
            "undecided",
            format!("nothing could be compared with `{id}`"),
            None,
        );
    };
    let percent = |fraction: f64| format!("{:.1} %", fraction * 100.0);
    let Some(ratio) = cell.ratio else {
        return (
            "undecided",
            format!(
                "{} block{} of host and `{id}` are too few for an interval: it takes six, which `--budget {}` holds",
                cell.n_blocks,
                if cell.n_blocks == 1 { "" } else { "s" },
                units::at_least(spent.budget_ns(SIX))
            ),
            None,
        );
    };
    let word = Verdict::from_name(&cell.verdict).unwrap_or(Verdict::Inconclusive);
    match word {
        Verdict::MaterialCost | Verdict::Cost => {
            let what = match dossier.findings.first() {
                Some(finding) if finding.status == Status::Confirmed.name() => {
                    format!("mostly because of {}", finding.cause)
                }
                Some(finding) if finding.status == Status::Supported.name() => {
                    format!("part of it because of {}", finding.cause)
                }
                Some(finding) if finding.status == Status::Untested.name() => {
                    format!("perhaps because of {}, which was not tried", finding.cause)
                }
                _ => "and no rule here explains it; the ladder says where it arises".to_owned(),
            };
            let rest = explained.map_or_else(String::new, |share| {
                let left = (1.0 - share.point).max(0.0);
                if left < 0.05 {
                    "; that explains all of it".to_owned()
                } else {
                    format!("; {:.0} % of it stays unexplained", left * 100.0)
                }
            });
            (
                "cost",
                format!(
                    "the command costs {:.2} times as much in `{id}` [{:.2}, {:.2}], {what}{rest}",
                    ratio.point, ratio.low, ratio.high
                ),
                None,
            )
        }
        Verdict::Gain | Verdict::MaterialGain => (
            "none",
            format!(
                "no cost found: the command costs less in `{id}`, {:.3} times as much [{:.3}, {:.3}]; that is an order effect, another program or another clock more often than a gift",
                ratio.point, ratio.low, ratio.high
            ),
            None,
        ),
        Verdict::Equivalent | Verdict::NegligibleCost | Verdict::NegligibleGain => {
            let could_see = (ratio.high - 1.0).max(0.0);
            (
                "none",
                format!(
                    "no cost found in `{id}`: at most {}, and more than that would have been seen",
                    percent(could_see)
                ),
                Some(could_see),
            )
        }
        Verdict::Inconclusive => {
            let more = more_time(cell, spent);
            let text = if ratio.high / ratio.low.max(f64::MIN_POSITIVE) < WIDE {
                format!(
                    "undecided: the command costs between {:.2} and {:.2} times as much in `{id}`{more}",
                    ratio.low, ratio.high
                )
            } else {
                format!(
                    "nothing can be said about `{id}`: the command differs so much between runs that it costs between {:.2} and {:.2} times as much there{more}",
                    ratio.low, ratio.high
                )
            };
            ("undecided", text, cell.mde)
        }
    }
}

/// An interval whose ends are so many times apart says nothing.
const WIDE: f64 = 4.0;

/// The blocks that an interval takes.
const SIX: u32 = analyze::FEWEST_BLOCKS as u32;

/// What the answer took so far.
#[derive(Debug, Clone, Copy)]
struct Spent {
    wall_ns: f64,
    /// One block of the two sides.
    block_ns: f64,
    n_blocks: u32,
}

impl Spent {
    fn of(run: &RunData, baseline: &str, env: &str, n_blocks: u32) -> Self {
        let mean = |arm: &str| {
            let trials = run.trials.iter();
            let of_arm = trials.filter(|data| data.trial.cell.arm.as_str() == arm);
            let times: Vec<f64> = of_arm.map(|data| data.host_elapsed_ns as f64).collect();
            times.iter().sum::<f64>() / times.len().max(1) as f64
        };
        Self {
            wall_ns: run.head.wall_s * 1e9,
            block_ns: mean(baseline) + mean(env),
            n_blocks,
        }
    }

    /// What so many blocks would take: those of the two sides, and everything else as it was.
    fn budget_ns(&self, n_blocks: u32) -> u64 {
        /// Looking at the command once on either side comes before it.
        const LOOK: f64 = 5e9;
        let others_ns = (self.wall_ns - f64::from(self.n_blocks) * self.block_ns).max(0.0);
        (LOOK + others_ns + 1.3 * f64::from(n_blocks) * self.block_ns) as u64
    }
}

/// How much more it would take.
fn more_time(cell: &DossierCell, spent: &Spent) -> String {
    /// So many times as many blocks are no advice.
    const MOST: u32 = 100;
    match cell.further_blocks {
        Some(blocks) if blocks / MOST > cell.n_blocks.max(1) => {
            "; give the command more to do, or a quieter machine".to_owned()
        }
        Some(blocks) if blocks > 0 => format!(
            "; `--budget {}` would tell more",
            units::at_least(spent.budget_ns(cell.n_blocks.saturating_add(blocks)))
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(cause: &str, status: Status, arm: &str, point: f64) -> DossierFinding {
        DossierFinding {
            cause: cause.into(),
            status: status.name().into(),
            cells: Vec::new(),
            claim: String::new(),
            evidence: Vec::new(),
            effect: None,
            advice: String::new(),
            price: String::new(),
            share: Some(Span {
                point,
                low: point - 0.1,
                high: point + 0.1,
                level: None,
            }),
            arm: Some(arm.into()),
            tried: None,
        }
    }

    #[test]
    fn a_switch_that_leaves_the_environment_alone_goes_first_where_it_explains_as_much() {
        let first = |narrow: f64, status: Status| {
            let mut findings = vec![
                finding("wide", Status::Confirmed, "off-1", 0.96),
                finding("other", Status::Confirmed, "off-3", 0.95),
                finding("narrow", status, "off-2", narrow),
            ];
            narrower_first(&mut findings, |arm| arm == "off-2");
            let mut left: Vec<String> = findings[1..].iter().map(|it| it.cause.clone()).collect();
            left.sort();
            assert_eq!(left.len(), 2, "{left:?}");
            findings[0].cause.clone()
        };
        assert_eq!(first(0.93, Status::Confirmed), "narrow");
        assert_eq!(first(0.55, Status::Confirmed), "narrow");
        // The lesser part of the cost, and one that was not proved.
        assert_eq!(first(0.45, Status::Confirmed), "wide");
        assert_eq!(first(0.93, Status::Supported), "wide");
        narrower_first(&mut [], |_| true);
    }

    #[test]
    fn what_is_explained_counts_each_arm_once_and_only_what_is_confirmed() {
        let about = ["a", "b", "c", "d"].map(str::to_owned);
        let findings = [
            finding("a", Status::Confirmed, "off-1", 0.6),
            finding("b", Status::Confirmed, "off-1", 0.6),
            finding("c", Status::Confirmed, "off-2", 0.5),
            finding("d", Status::Refuted, "off-3", 0.5),
            finding("start-up", Status::Confirmed, "off-4", 0.5),
        ];
        let share = explained(&findings, &about).unwrap();
        assert!((share.point - 1.1).abs() < 1e-9, "{share:?}");
        assert!((share.low - 0.9).abs() < 1e-9, "{share:?}");
        assert_eq!(explained(&findings[3..], &about), None);
    }
}
