//! Turns a stored run of `why` into its dossier: verdict, ladder, findings, answer.
//!
//! Pure: the study's arms carry what was suspected, and everything else is derived from the trials. A stored run is
//! therefore judged the same way at any time.
//! Limits: knows what came before the run only from its notes on the first look.

use std::collections::BTreeSet;

use tare_model::arm::WhyQuestion;
use tare_model::counter;
use tare_model::dossier::{
    CheckItem, Dossier, DossierCell, DossierCounter, DossierFinding, DossierWhy, Span,
};
use tare_model::study::A_PRIME;
use tare_model::{ArmId, ArmSpec, CommandCall, Status, StoppedBy};
use tare_stats::Verdict;

use super::answer::{Below, Sides, Spent, Terms, below, headline, start_up, userland};
use super::counterfactual::{self, SuspectTrial};
use super::ladder;
use super::readings::{Readings, evidence, interval, plain, span};
use super::user_container::applied;
use crate::analyze::{self, RunData};
use crate::cause::{ArmEvidence, Case};
use crate::parity::{self, Side};
use crate::workload::{self, user_command};

mod findings;

use findings::findings;

/// From this ratio on an inconclusive slowdown is worth a search for its cause.
pub(super) const WORTH_A_SEARCH: f64 = 1.1;

/// The metric of creating and removing an environment.
pub(super) const START_UP: &str = "start-up.total.time";

/// The arm that the question is about.
pub fn env_arm(run: &RunData) -> Option<&ArmSpec> {
    let study = &run.head.study;
    let mut arms = study.arms.iter();
    arms.find(|arm| is_asked_about(arm, &study.baseline))
}

/// Whether an arm is the one that the question is about.
pub(super) fn is_asked_about(arm: &ArmSpec, baseline: &ArmId) -> bool {
    arm.required && arm.id != *baseline && arm.id.as_str() != A_PRIME
}

/// The metric that was asked for.
fn metric(env: &ArmSpec) -> String {
    let asked = env.role.asked.as_ref();
    asked.map_or_else(
        || user_command::WALL.to_owned(),
        |asked| asked.metric.clone(),
    )
}

/// The suspects of this run that are worth a trial. Suspects of the start-up are tried only if the answer is about
/// it, as each trial needs a start.
pub(super) fn suspects(run: &RunData, dossier: &Dossier) -> Vec<SuspectTrial> {
    let Some(env) = env_arm(run) else {
        return Vec::new();
    };
    let readings = Readings::read(run);
    let baseline = evidence(run, &readings, run.head.study.baseline.as_str());
    let inside = evidence(run, &readings, env.id.as_str());
    let metric = metric(env);
    let cells: Vec<DossierCell> = dossier
        .cells
        .iter()
        .filter(|cell| cell.arm == env.id.as_str())
        // Of the command only the metric that was asked for: other slowdowns raise no suspicion.
        .filter(|cell| cell.metric == metric || cell.metric.starts_with("start-up."))
        .cloned()
        .collect();
    let case = Case {
        baseline: &baseline,
        arm: &inside,
        cells: &cells,
    };
    let mut suspects = counterfactual::suspects(&case, &metric, env);
    let cell = cells.iter().find(|cell| cell.metric == metric);
    if !has_start_up(&readings, env, cell) {
        suspects.retain(|trial| trial.suspect.metric == metric);
    }
    suspects
}

/// Whether the answer's total includes creating and removing the environment, so that shares are of start-up and
/// command together. Never for a printed number or CPU time.
fn has_start_up(readings: &Readings, env: &ArmSpec, cell: Option<&DossierCell>) -> bool {
    let typical =
        |metric: &str| tare_stats::median(&plain(&readings.values(env.id.as_str(), metric)));
    match (typical(START_UP), typical(user_command::WALL)) {
        (Some(start_up), Some(wall)) if metric(env) == user_command::WALL => {
            is_mostly_start_up(start_up / wall, cell.is_some_and(costs_more))
        }
        _ => false,
    }
}

/// Whether starting takes `times` as long as the command and dominates the answer. If the command itself
/// `costs_more`, that was the question, unless the command is negligible.
fn is_mostly_start_up(times: f64, costs_more: bool) -> bool {
    /// A command is negligible if starting takes this many times as long.
    const NEXT_TO_NOTHING: f64 = 10.0;
    times > if costs_more { NEXT_TO_NOTHING } else { 1.0 }
}

/// Whether the command itself is slower, or may be: a wide interval with a ratio that is worth a search.
fn costs_more(cell: &DossierCell) -> bool {
    match cell.verdict {
        Verdict::MaterialCost | Verdict::Cost => true,
        Verdict::Inconclusive => cell.ratio.is_some_and(|it| it.point >= WORTH_A_SEARCH),
        _ => false,
    }
}

/// The dossier of an answer: its last run joined with the earlier ones ([`joined`](super::joined)).
pub fn conclude(run: &RunData) -> Dossier {
    let mut dossier = analyze::analyze(run, &workload::find);
    let Some(env) = env_arm(run) else {
        return dossier;
    };
    let readings = Readings::read(run);
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
    let word = cell.as_ref().map(|cell| cell.verdict);
    let has_start_up = has_start_up(&readings, env, cell.as_ref());
    dossier.findings = findings(run, &readings, &dossier, env, has_start_up);
    dossier
        .findings
        .retain(|finding| is_worth_telling(finding, word));
    let explained = explained(&dossier.findings, &metric_of_findings(run, &metric));
    let n_blocks = cell.as_ref().map_or(0, |cell| cell.n_blocks);
    let spent = Spent::new(run, baseline, id, n_blocks);
    let lives = interval(&readings.values(id, START_UP));
    let sides = Sides {
        env,
        baseline,
        terms: Terms::for_metric(&metric),
    };
    let mut shown = headline(cell.as_ref(), sides, &spent, explained.is_some());
    if let Some(lives) = lives.filter(|_| has_start_up) {
        shown = start_up(&shown, lives.point, sides);
    }
    let ladder = dossier.ladder.as_ref();
    let (reason, lines) = below(&Below {
        outcome: shown.outcome,
        env,
        arms: &run.head.study.arms,
        findings: &dossier.findings,
        explained: explained.as_ref(),
        userland: ladder.and_then(|ladder| userland(ladder, baseline)),
        ladder,
        is_interrupted: run.head.stopped_by == StoppedBy::Interrupted,
        terms: sides.terms,
        spent: &spent,
    });
    let asked = env.role.asked.clone().unwrap_or_default();
    dossier.why = Some(DossierWhy {
        carried: carried(&asked, cell.as_ref())
            .into_iter()
            .chain(started_once(run, id))
            .collect(),
        command: asked.argv,
        arm: id.to_owned(),
        metric,
        outcome: shown.outcome,
        answer: shown.text,
        reason,
        lines,
        explained,
        could_see: shown.could_see,
        start_up_ns: lives.map(span),
        applied: applied::judged(&run.head.study.arms, &dossier, &readings, (baseline, id)),
        counters: counters(&readings, baseline, id),
    });
    dossier
        .parity
        .extend(programs(run, &readings, baseline, id));
    dossier
}

/// How the command was carried into the environment, and how it ran.
fn carried(asked: &WhyQuestion, cell: Option<&DossierCell>) -> Vec<String> {
    let mut lines = asked.carried.clone();
    if cell.is_some_and(|cell| cell.in_turn) {
        lines.push("stopped every few milliseconds, in turn with its copies elsewhere".to_owned());
    } else if let Some(why) = &asked.in_one_go {
        lines.push(format!("run uninterrupted, because it {why}"));
    }
    lines
}

/// A warning if arms were started only once: their intervals do not include the variation between starts.
fn started_once(run: &RunData, env: &str) -> Option<String> {
    let n_launches = |arm: &str| {
        let trials = run.trials.iter().map(|data| &data.trial);
        let of_arm = trials.filter(|trial| trial.cell.arm.as_str() == arm);
        of_arm
            .map(|trial| trial.launch)
            .collect::<BTreeSet<u32>>()
            .len()
    };
    let is_tried = |arm: &&ArmSpec| {
        arm.id.as_str() != env && (!arm.role.suspects.is_empty() || arm.role.rung.is_some())
    };
    let mut tried = run.head.study.arms.iter().filter(is_tried);
    let what = if n_launches(env) == 1 {
        "each side"
    } else if tried.any(|arm| n_launches(arm.id.as_str()) == 1) {
        "some of what was tried"
    } else {
        return None;
    };
    Some(format!(
        "{what} was started once, so that intervals do not hold what differs from one start to the next"
    ))
}

/// Whether the command's program and its interpreter were the same bytes on both sides at the first look.
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

/// Causes whose finding is about the metric that was asked for, not the start-up.
fn metric_of_findings(run: &RunData, metric: &str) -> Vec<String> {
    let noted = run
        .head
        .study
        .arms
        .iter()
        .flat_map(|arm| &arm.role.suspects);
    noted
        .filter(|suspect| suspect.metric == metric)
        .map(|suspect| suspect.cause.clone())
        .collect()
}

/// Whether a finding belongs in an answer with this verdict. A command without a slowdown has no cause: what was
/// suspected at the first look was noise. An inconclusive answer lists what was tried. Start-up findings are separate
/// from the command and always listed.
fn is_worth_telling(finding: &DossierFinding, word: Option<Verdict>) -> bool {
    match word {
        Some(Verdict::MaterialCost | Verdict::Cost | Verdict::MaterialGain | Verdict::Gain) => true,
        _ if finding.cause.starts_with("startup.") => true,
        None | Some(Verdict::Inconclusive) => {
            finding.arm.is_some() && finding.status != Status::Refuted
        }
        Some(_) => false,
    }
}

/// The share of the slowdown that confirmed causes explain. For several causes the points and the ends of the
/// intervals are summed, which may be too wide but never too narrow.
fn explained(findings: &[DossierFinding], about: &[String]) -> Option<Span> {
    let mut arms: Vec<&str> = Vec::new();
    let mut shares = Vec::new();
    for finding in findings {
        let is_confirmed = finding.status == Status::Confirmed;
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
    Some(shares[1..].iter().fold(first, |sum, share| {
        Span::new(
            sum.low + share.low,
            sum.point + share.point,
            sum.high + share.high,
        )
    }))
}

fn counters(readings: &Readings, baseline: &str, env: &str) -> Vec<DossierCounter> {
    const TOLD: [&str; 24] = tare_model::rows! {
        counter::CHILDREN_USER, counter::CHILDREN_SYS, counter::RUN_DELAY, counter::THROTTLED,
        counter::NR_THROTTLED, counter::STEAL, counter::PRESSURE_CPU, counter::PRESSURE_MEMORY,
        counter::PRESSURE_IO, counter::MEMORY_LIMIT_HITS, counter::MINFLT, counter::MAJFLT, counter::NVCSW,
        counter::NIVCSW, counter::SYSCR, counter::SYSCW, counter::READ_BYTES, counter::WRITE_BYTES,
        counter::CHARGED_CPU, counter::CHARGED_THROTTLED, counter::CHARGED_NR_THROTTLED,
        counter::CHARGED_MEMORY_LIMIT_HITS, counter::CHARGED_READ, counter::CHARGED_WRITE,
    };
    let [base, env] = [baseline, env].map(|arm| readings.of_command(arm));
    TOLD.iter()
        .map(|name| DossierCounter {
            name: name
                .strip_prefix(counter::CHILDREN)
                .unwrap_or(name)
                .to_owned(),
            base: base.get(*name).copied(),
            env: env.get(*name).copied(),
        })
        .filter(|counter| counter.base.is_some() || counter.env.is_some())
        .collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::findings::{narrower_first, resize};
    use super::*;
    use crate::cause::queries;
    use crate::testing as composed;
    use tare_model::arm::Suspect;

    pub(crate) fn finding(cause: &str, status: Status, arm: &str, point: f64) -> DossierFinding {
        DossierFinding {
            cause: cause.into(),
            status,
            cells: Vec::new(),
            claim: String::new(),
            evidence: Vec::new(),
            effect: None,
            advice: String::new(),
            price: String::new(),
            share: Some(Span::new(point - 0.1, point, point + 0.1)),
            arm: Some(arm.into()),
            tried: None,
        }
    }

    #[test]
    fn finding_reports_final_cost_instead_of_first() {
        let cell = |ratio: f64| composed::cell("command.wall.time", ratio);
        let size = queries::clause(&cell(2.12));
        let suspect = Suspect {
            size: size.clone(),
            ..Suspect::default()
        };
        let suspected = DossierFinding {
            claim: format!("A quota stops it, and {size}."),
            evidence: vec![format!("seen: {size}"), "a quota".to_owned()],
            ..finding("a", Status::Confirmed, "off-1", 0.6)
        };
        let mut shown = suspected.clone();
        resize(&mut shown, &suspect, &cell(1.61));
        let now = "`command.wall.time` is 61 % slower";
        assert_eq!(shown.claim, format!("A quota stops it, and {now}."));
        assert_eq!(
            shown.evidence,
            [format!("seen: {now}"), "a quota".to_owned()]
        );
        // Without a ratio the text stays unchanged.
        let mut kept = suspected.clone();
        let none = DossierCell {
            ratio: None,
            ..cell(1.61)
        };
        resize(&mut kept, &suspect, &none);
        assert_eq!(kept, suspected);
    }

    #[test]
    fn start_up_counts_only_if_command_costs_little() {
        // A script of a third of a second in a container that takes half a second to create.
        assert!(!is_mostly_start_up(1.3, true));
        assert!(is_mostly_start_up(1.3, false));
        assert!(is_mostly_start_up(200.0, true));
        assert!(!is_mostly_start_up(0.7, false));
        for (verdict, point, costs) in [
            (Verdict::MaterialCost, 1.03, true),
            (Verdict::Inconclusive, 1.3, true),
            (Verdict::Inconclusive, 1.05, false),
            (Verdict::Equivalent, 1.0, false),
        ] {
            let cell = DossierCell {
                verdict,
                ..composed::cell("command.wall.time", point)
            };
            assert_eq!(costs_more(&cell), costs, "{verdict:?} {point}");
        }
    }

    #[test]
    fn narrower_switch_precedes_if_it_explains_as_much() {
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
        assert_eq!(first(0.60, Status::Confirmed), "narrow");
        // One that may explain less than the rest, and one that is not proved.
        assert_eq!(first(0.55, Status::Confirmed), "wide");
        assert_eq!(first(0.93, Status::Supported), "wide");
        narrower_first(&mut [], |_| true);
    }

    #[test]
    fn explained_share_counts_each_confirmed_arm_once() {
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
