//! Tests of answers to made-up outcomes.

use tare_model::dossier::{AnswerLine, DossierFinding, DossierRung};
use tare_model::{AnswerLabel, ArmId, Params, Status, WhyReason};

use super::super::conclude::tests::finding;
use super::super::observed;
use super::super::user_container::{CLAIM, IMAGE, PLAIN, SEVERAL};
use super::*;
use crate::testing as composed;
use crate::workload::user_command;

const SPENT: Spent = Spent {
    wall_ns: 20e9,
    block_ns: 2e9,
    n_blocks: 30,
};

fn arm(id: &str, settings: Params) -> ArmSpec {
    ArmSpec::new(ArmId::new(id).unwrap(), "docker", settings)
}

fn of_user() -> ArmSpec {
    arm("docker", Params::new().with(own_env::LIKE, "web"))
}

/// A comparison with a margin of 2 % and its verdict.
fn cell((low, point, high): (f64, f64, f64)) -> DossierCell {
    let verdict = match (low, high) {
        _ if low > 1.02 => Verdict::MaterialCost,
        _ if high < 1.0 / 1.02 => Verdict::MaterialGain,
        _ if low > 1.0 && high < 1.02 => Verdict::NegligibleCost,
        _ if low > 1.0 => Verdict::Cost,
        _ if high < 1.0 && low > 1.0 / 1.02 => Verdict::NegligibleGain,
        _ if high < 1.0 => Verdict::Gain,
        _ if low > 1.0 / 1.02 && high < 1.02 => Verdict::Equivalent,
        _ => Verdict::Inconclusive,
    };
    let around = |ms: f64| Some(Span::new(0.9e6 * ms, 1e6 * ms, 1.1e6 * ms));
    DossierCell {
        n_blocks: 30,
        margin: 0.02,
        unit: "ns".to_owned(),
        base: around(29.8),
        env: around(29.8 * point),
        ratio: Some(Span::new(low, point, high)),
        verdict,
        further_blocks: Some(40),
        ..composed::cell(user_command::WALL, point)
    }
}

fn headline_of(env: &ArmSpec, baseline: &str, metric: &str, cell: &DossierCell) -> Headline {
    let terms = Terms::for_metric(metric);
    let sides = Sides {
        env,
        baseline,
        terms,
    };
    headline(Some(cell), sides, &SPENT, false)
}

fn has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

#[test]
fn headline_follows_the_interval() {
    use WhyOutcome::{Cost, Gain, None as No, Undecided};
    let rows = [
        (
            (1.13, 1.15, 1.16),
            Cost,
            "1.15× slower in your container than outside (29.8 → 34.3 ms, 95 % CI 1.13–1.16).",
        ),
        (
            (1.02, 1.03, 1.05),
            Cost,
            "3 % slower in your container than outside (29.8 → 30.7 ms, 95 % CI 2–5 %).",
        ),
        (
            (10.0, 20.0, 30.0),
            Cost,
            "20.0× slower in your container than outside (29.8 ms → 596 ms, 95 % CI 10.00–30.00).",
        ),
        (
            (1.002, 1.012, 1.025),
            Undecided,
            "Inconclusive: 0–2 % slower in your container (95 % CI), which is not yet sure at 99 % confidence. `--budget ",
        ),
        (
            (0.97, 0.99, 0.999),
            No,
            "No slowdown: 0–3 % faster in your container (",
        ),
        (
            (0.714, 0.769, 0.80),
            Gain,
            "1.30× faster in your container than outside (29.8 → 22.9 ms, 95 % CI 1.25–1.40).",
        ),
        (
            (0.996, 1.0, 1.004),
            No,
            "No slowdown: between 0.4 % faster and 0.4 % slower in your container (",
        ),
        (
            (1.003, 1.005, 1.008),
            No,
            "No relevant slowdown: 0.3–0.8 % slower in your container, less than the 2 % that count",
        ),
        (
            (0.97, 1.01, 1.05),
            Undecided,
            "Inconclusive: between 3 % faster and 5 % slower in your container. `--budget 4m` should settle it.",
        ),
        (
            (0.4, 1.0, 3.0),
            Undecided,
            "Inconclusive: between 2.50× faster and 3.00× slower in your container: its runs differ too much.",
        ),
    ];
    for (interval, outcome, text) in rows {
        let shown = headline_of(&of_user(), IMAGE, user_command::WALL, &cell(interval));
        assert_eq!(shown.outcome, outcome, "{}", shown.text);
        assert!(shown.text.starts_with(text), "{}\n{text}", shown.text);
        let is_none = outcome == No;
        assert_eq!(is_none, shown.could_see.is_some(), "{}", shown.text);
    }
}

#[test]
fn headline_without_slowdown_names_detectable_effect() {
    let cell = cell((0.98, 0.99, 1.0));
    let shown = headline_of(&of_user(), IMAGE, user_command::WALL, &cell);
    let text = &shown.text;
    let end = "(30 blocks; could have detected 1 %).";
    assert!(text.ends_with(end), "{text}");
}

#[test]
fn headline_names_metric_and_sides() {
    let cell = cell((1.13, 1.15, 1.16));
    let docker = arm("docker", Params::new());
    let shown =
        |env: &ArmSpec, base: &str, metric: &str| headline_of(env, base, metric, &cell).text;
    let text = shown(&docker, HOST, user_command::CPU);
    assert!(
        text.starts_with("1.15× more CPU time in `docker` than on the host ("),
        "{text}"
    );
    let text = shown(&of_user(), PLAIN, user_command::COST);
    assert!(
        text.starts_with("1.15× worse in your container than in a plain container ("),
        "{text}"
    );
}

#[test]
fn runs_that_were_ended_give_a_lower_bound() {
    let mut cell = cell((3.0, 4.0, 5.0));
    cell.flags.push(tare_model::dossier::Flag {
        id: CUT_OFF.to_owned(),
        detail: String::new(),
    });
    let shown = headline_of(&of_user(), IMAGE, user_command::WALL, &cell);
    assert!(
        shown.text.starts_with("At least 3.00× slower in your"),
        "{}",
        shown.text
    );
}

#[test]
fn headline_reports_start_up_separately_from_program() {
    let shown = headline_of(
        &arm("docker", Params::new()),
        HOST,
        user_command::WALL,
        &cell((0.99, 1.0, 1.01)),
    );
    let docker = arm("docker", Params::new());
    let sides = Sides {
        env: &docker,
        baseline: HOST,
        terms: Terms::for_metric(user_command::WALL),
    };
    let shown = start_up(&shown, 310e6, sides);
    assert_eq!(
        shown.text,
        "The program itself runs at the same speed; starting and removing `docker` takes 310 ms."
    );
    assert_eq!(shown.outcome, WhyOutcome::StartUp);
}

#[test]
fn another_userland_is_a_line_of_its_own() {
    let ladder = |arm: &str, low: f64| DossierLadder {
        base: Some(Span::new(9.0, 10.0, 11.0)),
        ..ladder_of(arm, low, 5.0)
    };
    let shown = |arm: &str, low: f64| userland(&ladder(arm, low), "image");
    assert!(
        shown("image", 4.0)
            .unwrap()
            .contains("1.50× slower than the host's")
    );
    assert_eq!(shown("image", -1.0), None);
    assert_eq!(shown("plain", 4.0), None);
}

/// A difference of the user's container.
fn difference(id: &str, status: Status, point: f64) -> DossierFinding {
    let is_tried = status != Status::Untested;
    DossierFinding {
        claim: format!("`--{id}`{CLAIM}"),
        advice: format!("drop --{id}"),
        price: "nothing".to_owned(),
        arm: is_tried.then(|| format!("proof-{id}")),
        tried: Some(format!("a container like it without `--{id}`")),
        ..finding(&format!("own.{id}"), status, "", point)
    }
}

fn nothing_below(outcome: WhyOutcome, env: &ArmSpec) -> Below<'_> {
    Below {
        outcome,
        env,
        arms: &[],
        findings: &[],
        explained: None,
        userland: None,
        ladder: None,
        is_interrupted: false,
        terms: Terms::for_metric(user_command::WALL),
        spent: &SPENT,
    }
}

/// A ladder of the one step `arm`, which adds from `low` on and typically `point`.
fn ladder_of(arm: &str, low: f64, point: f64) -> DossierLadder {
    DossierLadder {
        arm: "docker".to_owned(),
        metric: user_command::WALL.to_owned(),
        unit: "ns".to_owned(),
        base: None,
        env: None,
        total: None,
        rungs: vec![DossierRung {
            title: arm.to_owned(),
            arm: arm.to_owned(),
            adds: Some(Span::new(low, point, point + 1.0)),
            note: None,
        }],
        sum: None,
        sum_span: None,
        agrees: None,
        together: Vec::new(),
    }
}

fn below_of(outcome: WhyOutcome, findings: &[DossierFinding]) -> (Option<WhyReason>, String) {
    let env = of_user();
    let mut shares = findings.iter().filter(|it| it.status == Status::Confirmed);
    let explained = shares.find_map(|it| it.share);
    let (reason, lines) = below(&Below {
        arms: std::slice::from_ref(&env),
        findings,
        explained: explained.as_ref(),
        ..nothing_below(outcome, &env)
    });
    let line = |it: &AnswerLine| format!("{}: {}", it.label, it.text);
    (
        reason,
        lines.iter().map(line).collect::<Vec<_>>().join("\n"),
    )
}

#[test]
fn answer_lines_follow_finding_statuses() {
    use Status::{Confirmed, Likely, Refuted, Supported, Undecided, Untested};
    let cost = |findings: &[DossierFinding]| below_of(WhyOutcome::Cost, findings);
    let cpus = |status| difference("cpus", status, 0.97);
    let begins = |text: &str, part: &str| assert!(text.starts_with(part), "{text}");
    let env = difference("env", Refuted, 0.02);
    assert_eq!(
        cost(&[cpus(Confirmed), env.clone()]),
        (
            Some(WhyReason::Confirmed),
            "cause: `--cpus`: confirmed; without it the slowdown goes away: 97 % of it [87, 107]\nfix: drop --cpus\nprice: nothing\nruled-out: `--env`".to_owned()
        )
    );
    // A pair is not listed again after its members.
    let all = [
        cpus(Confirmed),
        env.clone(),
        difference("dns", Refuted, 0.0),
    ];
    let with_pair = |pair: &str| {
        let pair = difference(pair, Refuted, 0.0);
        let (_, text) = cost(&[&all[..], &[pair]].concat());
        text
    };
    assert_eq!(with_pair("env+dns"), cost(&all).1);
    assert_ne!(with_pair("env+init"), cost(&all).1);
    let both = difference("dns", Confirmed, 0.5);
    assert_eq!(cost(&[cpus(Confirmed), both]).0, Some(WhyReason::Together));
    let (reason, text) = cost(&[difference("cpus", Supported, 0.3)]);
    assert_eq!(reason, Some(WhyReason::Partly));
    begins(&text, "cause: `--cpus`: a part of it; without it");
    let (_, text) = cost(&[cpus(Supported)]);
    begins(
        &text,
        "cause: `--cpus`: not proved within the time; without it",
    );
    // Its members are not tested alone, which comes first the next time.
    let [one, other, dns] = ["cpus", "init", "dns"].map(|id| difference(id, Untested, 0.0));
    let (_, text) = cost(&[difference("cpus+init", Supported, 0.99), dns, one, other]);
    has(&text, "; without them the slowdown goes away: 99 % of it");
    has(&text, "\nnot-tested: `--dns`\n");
    assert!(text.ends_with(": `--cpus`, `--init`"), "{text}");
    let likely = DossierFinding {
        tried: Some("without it the command fails".to_owned()),
        ..cpus(Likely)
    };
    let (reason, text) = cost(&[likely, env.clone()]);
    assert_eq!(reason, Some(WhyReason::Eliminated));
    assert!(text.starts_with("cause: `--cpus`: likely: everything else was ruled out; without it the command fails\nfix: "), "{text}");
    has(&text, "ruled-out: `--env` (2 % of it [-8, 12])");
    let (reason, text) = cost(&[cpus(Undecided), difference("dns", Untested, 0.0), env]);
    assert_eq!(reason, Some(WhyReason::SeveralLeft));
    assert!(text.starts_with("cause: not found yet: 2 differences are left, everything else was ruled out\nruled-out: "), "{text}");
    has(
        &text,
        "\nundecided: `--cpus`\nnot-tested: `--dns`\nnext: `--budget ",
    );
    let set = DossierFinding {
        cause: SEVERAL.to_owned(),
        ..difference("cpus", Supported, 0.99)
    };
    let (reason, text) = cost(&[set, difference("dns", Undecided, 0.0)]);
    assert_eq!(reason, Some(WhyReason::SeveralLeft));
    assert!(text.starts_with("cause: not found yet: several differences together cause 99 % [89, 109] of the slowdown\nundecided: `--dns`\n"), "{text}");
    let (reason, text) = cost(&[cpus(Untested)]);
    assert_eq!(reason, Some(WhyReason::NotFound));
    begins(&text, "cause: not found yet: there was no time");
}

#[test]
fn untested_causes_are_never_the_cause() {
    for status in [Status::Untested, Status::Undecided, Status::Refuted] {
        for cause in ["cpu.cfs-quota-throttle", "own.cpus"] {
            let finding = DossierFinding {
                cause: cause.to_owned(),
                ..difference("cpus", status, 0.3)
            };
            let (_, text) = below_of(WhyOutcome::Cost, &[finding]);
            let mut lines = text.lines();
            let first = lines.next().unwrap();
            assert!(first.starts_with("cause: not found yet"), "{text}");
            assert!(
                !first.contains("cpus") && !first.contains("quota"),
                "{text}"
            );
        }
    }
}

#[test]
fn gain_is_explained_like_a_slowdown() {
    let (reason, text) = below_of(
        WhyOutcome::Gain,
        &[difference("cpus", Status::Confirmed, 1.0)],
    );
    assert_eq!(reason, Some(WhyReason::Confirmed));
    assert!(
        text.contains("without it the speed-up goes away: 100 % of it"),
        "{text}"
    );
}

#[test]
fn answer_without_cost_has_no_lines() {
    for outcome in [WhyOutcome::None, WhyOutcome::Undecided, WhyOutcome::StartUp] {
        let findings = [difference("cpus", Status::Undecided, 0.3)];
        assert_eq!(below_of(outcome, &findings), (None, String::new()));
    }
}

#[test]
fn start_of_the_container_is_a_line() {
    let mut env = of_user();
    env.role.asked = Some(tare_model::arm::WhyQuestion {
        life_ns: Some(310_000_000),
        carried: vec![format!(
            "{}`/data` (the command may write there)",
            own_env::ALIKE
        )],
        ..tare_model::arm::WhyQuestion::default()
    });
    let below_env = |env: &ArmSpec| below(&nothing_below(WhyOutcome::None, env)).1;
    let lines = below_env(&env);
    assert_eq!(lines.len(), 2);
    has(
        &lines[0].text,
        "starting and removing the container took 310 ms",
    );
    // What both sides share may be slow on both.
    has(&lines[1].text, "`/data` (the command may write there)");
    env.role.asked.as_mut().unwrap().first_run = Some(tare_model::arm::FirstRun {
        first_ns: 900_000_000,
        next_ns: 200_000_000,
        written: vec![("/usr/lib".into(), 12), ("/tmp/one".into(), 1)],
    });
    let text = below_env(&env).remove(1).text;
    has(&text, "900 ms in a new container, 200 ms in its next run");
    has(&text, "12 files in `/usr/lib`, `/tmp/one`");
    env.role.asked.as_mut().unwrap().first_run = None;
    let mut carry = |note: &str, text: &str| {
        let asked = env.role.asked.as_mut().unwrap();
        asked.carried.push(format!("{note}{text}"));
        below_env(&env)
    };
    let lines = carry(own_env::NOT_REMOVED, "`--user 1000`: it protects you");
    assert_eq!(lines.len(), 3);
    has(&lines[2].text, "`--user 1000`: it protects you");
    let lines = carry(own_env::NOT_MEASURED, "`/nas` lies on `nfs4`");
    has(&lines.last().unwrap().text, "`/nas` lies on `nfs4`");
    // The part of the start-up that causes it was searched for.
    let lines = carry(own_env::STARTING, "4.1 s and 4 s; without `-p` 0.4 s");
    has(&lines[0].text, "without `-p` 0.4 s");
    // The first line says whether both sides do the same work.
    let lines = carry(observed::COMPLAINT, "inside only: `no such file`");
    assert_eq!(lines[0].label, AnswerLabel::Work);
    has(&lines[0].text, "inside only: `no such file`");
}

#[test]
fn causes_of_the_catalogue_have_a_title() {
    let finding = DossierFinding {
        cause: "cpu.cfs-quota-throttle".to_owned(),
        ..difference("cpus", Status::Confirmed, 0.97)
    };
    let (_, text) = below_of(WhyOutcome::Cost, &[finding]);
    assert!(
        text.starts_with("cause: a processor quota stops "),
        "{text}"
    );
    assert!(
        text.contains("(cpu.cfs-quota-throttle): confirmed"),
        "{text}"
    );
    assert_eq!(AnswerLabel::Cause.to_string(), "cause");
}

#[test]
fn answer_reports_equally_slow_plain_container() {
    let shown = |ladder: DossierLadder| {
        let ladder = DossierLadder {
            total: Some(Span::new(9.0, 10.0, 11.0)),
            ..ladder
        };
        let env = of_user();
        let (_, lines) = below(&Below {
            findings: &[difference("cpus", Status::Untested, 0.0)],
            ladder: Some(&ladder),
            ..nothing_below(WhyOutcome::Cost, &env)
        });
        lines[0].text.clone()
    };
    assert!(shown(ladder_of(PLAIN, 8.0, 9.0)).contains("90 % of it is in every container"));
    for other in [ladder_of(PLAIN, 1.0, 2.0), ladder_of("rung-1", 8.0, 9.0)] {
        assert!(!shown(other).contains("every container"));
    }
}
