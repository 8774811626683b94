//! Tests the first lines of an answer: an inconclusive metric is no proof of no overhead, and an arm that Tare made
//! for a trial says what for.

use tare::report::terminal::{Style, brief, table};
use tare_model::Verdict;
use tare_model::dossier::{Dossier, Flag, Span};

use super::forms::{answer_of_why, assert_lacks, assert_says, huge, made_of, text_of};
use super::generator::{Effect, Plan};
use super::snapshots::ordinary;

/// Wide enough that no sentence is broken.
const WIDE: Style = Style {
    width: 2_000,
    colour: false,
};

fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    let mut lines = text.lines();
    let found = lines.find(|line| line.starts_with(begin));
    found.unwrap_or_else(|| panic!("no line begins with {begin}: {text}"))
}

/// Six metrics of an arm, all with this verdict.
fn six(verdict: Verdict) -> Dossier {
    let mut dossier = huge(6, 12);
    for (number, cell) in dossier.cells.iter_mut().enumerate() {
        cell.verdict = verdict;
        cell.ratio = Some(Span::new(0.95, 1.04, 1.2 + number as f64));
        "count".clone_into(&mut cell.unit);
    }
    dossier
}

#[test]
fn inconclusive_is_never_reported_as_no_cost() {
    let dossier = six(Verdict::Inconclusive);
    let arm = dossier.cells[0].arm.clone();
    let drawn = brief(&dossier, WIDE).replace('\u{a0}', " ");
    let answer = line(&drawn, &format!("{arm}: "));
    assert_says(answer, "no overhead shown");
    assert_says(answer, "6 of 6 inconclusive");
    // The widest of them, with both ends.
    assert_says(answer, "size=5, between 5.0 % less and 6.2× more)");
    assert_says(&drawn, "tare resume");
    let dossier = six(Verdict::Equivalent);
    let drawn = brief(&dossier, WIDE);
    let answer = line(&drawn, &format!("{arm}: "));
    assert_says(answer, "no overhead;");
    assert_lacks(&drawn, "tare resume");
}

#[test]
fn costs_failing_correction_are_counted_separately() {
    let mut dossier = six(Verdict::MaterialCost);
    let arm = dossier.cells[0].arm.clone();
    for cell in &mut dossier.cells[1..] {
        cell.q = Some(0.2);
        cell.flags.push(Flag {
            id: "not-significant-after-correction".to_owned(),
            detail: "p = 0.0400 by itself, q = 0.2000 among the 6 cells of the arm".to_owned(),
        });
    }
    for form in [brief, table] {
        let drawn = form(&dossier, WIDE).replace('\u{a0}', " ");
        let answer = line(&drawn, &format!("{arm}: "));
        let slower = &answer[..answer.find(';').unwrap()];
        assert!(
            slower.contains("more") && !slower.contains(" and "),
            "{answer}"
        );
        assert!(!slower.contains(','), "{answer}");
        assert_says(answer, "5 of 6 not significant after correction");
    }
    let drawn = brief(&dossier, WIDE);
    let rows = |sign: &str| drawn.lines().filter(|line| line.starts_with(sign)).count();
    assert_eq!((rows("▲ "), rows("~ ")), (1, 5), "{drawn}");
    // None of them holds: that does not prove the absence of overhead.
    let first = &mut dossier.cells[0];
    (first.verdict, first.q) = (Verdict::Equivalent, None);
    let drawn = brief(&dossier, WIDE);
    let answer = line(&drawn, &format!("{arm}: "));
    assert_says(answer, "no overhead shown");
}

#[test]
fn no_overhead_needs_every_metric_decided() {
    let plan = Plan::default().workloads(["integer", "syscall", "stream", "files"]);
    let mut dossier = plan.trial_noise(0.002).dossier();
    let answer = |dossier: &Dossier| line(&brief(dossier, WIDE), "box").to_owned();
    let whole = answer(&dossier);
    assert!(whole.starts_with("box: no overhead;"), "{whole}");
    let mut missing = dossier.cells[0].clone();
    missing.metric = "fs.create.time".to_owned();
    (missing.ratio, missing.verdict, missing.n_blocks) = (None, Verdict::Inconclusive, 3);
    dossier.cells.push(missing);
    let reported = answer(&dossier);
    assert!(
        reported.starts_with("box: no overhead shown;"),
        "{reported}"
    );
    assert_says(&reported, "1 with too few blocks");
}

#[test]
fn too_few_blocks_for_correction_reported_once() {
    // Six blocks give at best p = 1/32, and five metrics require 1/100.
    let plan = Plan::default()
        .workloads(["integer", "syscall", "stream", "files"])
        .blocks(6);
    let plan = plan.with("box", "cpu.integer.time", Effect::Times(10.0));
    let drawn = brief(&plan.dossier(), WIDE);
    let rows = &drawn[drawn.find("box against host").unwrap()..];
    assert!(!line(rows, "▲ cpu integer").contains('?'), "{rows}");
    let answer = line(&drawn, "box: ");
    assert_says(
        answer,
        "6 blocks are too few to confirm a single difference",
    );
    assert_lacks(&drawn, "“?”");
}

#[test]
fn startup_cost_is_shown_as_added_time_not_ratio() {
    let mut dossier = six(Verdict::Equivalent);
    let arm = dossier.cells[0].arm.clone();
    for (cell, ms) in dossier.cells.iter_mut().zip([110.0, 70.0]) {
        "start-up.total.time".clone_into(&mut cell.metric);
        "ns".clone_into(&mut cell.unit);
        cell.verdict = Verdict::MaterialCost;
        cell.ratio = Some(Span::new(100.0, 159.0, 219.0));
        cell.difference = Some(Span::new(0.9e6 * ms, 1e6 * ms, 1.1e6 * ms));
    }
    let drawn = brief(&dossier, WIDE).replace('\u{a0}', " ");
    let answer = line(&drawn, &format!("{arm}: "));
    assert_says(answer, "no overhead after start-up");
    assert_says(answer, "each start adds 110 ms");
    assert!(!answer.contains('×'), "{answer}");
    for style in [WIDE, Style { width: 80, ..WIDE }] {
        for drawn in [brief(&dossier, style), table(&dossier, style)] {
            let drawn = drawn.replace('\u{a0}', " ");
            assert_says(&drawn, "+110 [99, 121] ms");
            assert_lacks(&drawn, "159");
        }
    }
}

#[test]
fn too_few_blocks_answer_has_values_and_next_step() {
    let plan = ordinary().blocks(3);
    let dossier = plan.dossier();
    let style = Style { width: 80, ..WIDE };
    let drawn = brief(&dossier, style).replace('\n', " ");
    assert_says(
        &drawn,
        "docker: inconclusive: 3 blocks, and an interval needs 6",
    );
    assert_says(&drawn, "values: host → docker");
    assert_says(&drawn, "narrower: `tare resume");
    let cell = dossier.cells.iter().find(|cell| cell.arm == "docker");
    let value = cell.and_then(|cell| cell.env).unwrap().point;
    assert!(
        drawn.contains(&format!("→ {value:.2} ns")),
        "{value}: {drawn}"
    );
}

#[test]
fn aa_control_line_explains_its_result() {
    let trust = |plan: &Plan| {
        let drawn = table(&plan.dossier(), WIDE);
        line(&drawn, "A/A control A′ (host against itself): ").to_owned()
    };
    let quiet = trust(&ordinary());
    assert_says(&quiet, "no false positive in");
    assert_says(&quiet, "shown equal");
    let short = brief(&ordinary().dossier(), WIDE);
    let short = line(&short, "A/A control (host): no false positive in ");
    assert_says(short, "chance gives up to");
    // Where nothing is shown equal, the short form says so as well.
    let noisy = ordinary().trial_noise(0.3);
    for drawn in [trust(&noisy), brief(&noisy.dossier(), WIDE)] {
        assert_says(&drawn, "none shown equal");
        assert_says(&drawn, "more blocks");
    }
}

#[test]
fn trial_arm_is_labelled_with_tested_cause() {
    let dossier = answer_of_why();
    let wanted = "off-5 (to try cpu.cfs-quota-throttle)";
    for form in ["html", "latex", "markdown", "svg"] {
        let text = text_of(made_of(form, &dossier, &[]));
        assert!(text.contains(wanted), "{form}");
    }
}

#[test]
fn answer_fits_on_one_screen() {
    let style = Style { width: 80, ..WIDE };
    for arms in [vec!["container"], vec!["container", "docker"]] {
        let mut plan = Plan::default()
            .workloads(["integer", "syscall", "stream", "files"])
            .arms(arms.clone());
        for arm in &arms {
            plan = plan.with(arm, "fs.create.time", Effect::Times(2.0));
        }
        let drawn = brief(&plan.dossier(), style);
        assert!(drawn.lines().count() <= 24, "{drawn}");
        for arm in arms {
            assert_says(&drawn, &format!("{arm}: "));
            assert_says(&drawn, &format!("{arm} against host"));
        }
    }
}
