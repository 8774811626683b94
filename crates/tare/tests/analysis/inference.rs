//! Tests the basis of a verdict: many cells, single blocks, launches of the arms, and values that give the ratio.

use tare::analyze::analyze;
use tare::report::terminal::{brief, table};
use tare_model::dossier::{Dossier, DossierDeviation};
use tare_model::{Better, CheckResult, Deviation, Trial, Verdict};

use super::forms::assert_says;
use super::forms::{file_of, made_of, text_of, words};
use super::generator::{Effect, Plan, cell, find, has, is_of_arm, of_width, rewrite, take_turns};

const INTEGER: &str = "cpu.integer.time";

#[test]
fn chance_finding_among_many_is_marked() {
    // Five metrics an arm without any effect: the family is the arm's.
    let marked = (0..60).any(|seed| {
        let dossier = Plan::default()
            .arms(["a01", "a02"])
            .workloads(["integer", "syscall", "stream", "files"])
            .blocks(12)
            .seed(seed)
            .dossier();
        assert!(dossier.aa.iter().all(|cell| cell.q.is_none()));
        for arm in ["a01", "a02"] {
            let of_arm = || dossier.cells.iter().filter(|cell| cell.arm == arm);
            let p: Vec<f64> = of_arm().map(|cell| cell.p.unwrap()).collect();
            let q: Vec<f64> = of_arm().map(|cell| cell.q.unwrap()).collect();
            assert_eq!(p.len(), 5);
            assert_eq!(tare_stats::benjamini_hochberg(&p).unwrap(), q);
        }
        dossier.cells.iter().any(|cell| {
            let is_marked = has(cell, "not-significant-after-correction");
            assert!(!is_marked || (cell.p.unwrap() <= 0.05 && cell.q.unwrap() > 0.05));
            is_marked
        })
    });
    assert!(marked, "no seed gave a false finding");
}

#[test]
fn tenfold_cost_survives_unpassable_correction() {
    // Six blocks give at best p = 1/32, and five metrics require 1/100.
    let plan = Plan::default()
        .workloads(["integer", "syscall", "stream", "files"])
        .blocks(6);
    let dossier = plan.with("box", INTEGER, Effect::Times(10.0)).dossier();
    let found = cell(&dossier, "box", INTEGER);
    assert_eq!(found.verdict, Verdict::MaterialCost);
    assert!(found.q.unwrap() > 0.05);
    assert!(!has(found, "not-significant-after-correction"));
    let reported = table(&dossier, of_width(200));
    assert_eq!(
        reported
            .replace('\n', " ")
            .matches("6 blocks are too few to confirm a single difference")
            .count(),
        1,
        "{reported}"
    );
    // The headline counts it correctly.
    assert_says(&reported, "1 not significant after correction");
}

#[test]
fn one_block_can_make_a_verdict_fragile() {
    let fragile = |n_blocks: u32, seed: u64| {
        let plan = Plan::default().blocks(n_blocks).seed(seed);
        plan.with("box", INTEGER, Effect::Times(1.022)).dossier()
    };
    let mut n_fragile = 0;
    for seed in 0..30 {
        let dossier = fragile(10, seed);
        let found = cell(&dossier, "box", INTEGER);
        if has(found, "fragile") {
            // Never on an inconclusive cell: removing blocks until it is decided would be cherry-picking.
            assert_ne!(found.verdict, Verdict::Inconclusive);
            let flag = found
                .flags
                .iter()
                .find(|flag| flag.id == "fragile")
                .unwrap();
            let words = format!("would be `{}`", found.verdict);
            assert!(!flag.detail.contains(&words), "{flag:?}");
            n_fragile += 1;
        }
    }
    assert!(n_fragile > 3, "{n_fragile}");
    // At the minimum number of blocks none can be removed.
    let six = Plan::default().blocks(6);
    let dossier = six.with("box", INTEGER, Effect::Times(3.0)).dossier();
    assert!(has(cell(&dossier, "box", INTEGER), "fragile"));
}

#[test]
fn the_values_of_a_row_give_its_ratio() {
    for seed in 0..20 {
        let dossier = Plan::default()
            .workloads(["integer", "stream", "files"])
            .blocks(9)
            .trial_noise(0.3)
            .seed(seed)
            .dossier();
        for cell in dossier.cells.iter().chain(&dossier.aa) {
            let (base, env) = (cell.base.unwrap(), cell.env.unwrap());
            let quotient = match cell.better {
                Better::Lower => env.point / base.point,
                Better::Higher => base.point / env.point,
            };
            let ratio = cell.ratio.unwrap().point;
            assert!((quotient / ratio - 1.0).abs() < 1e-9, "{cell:?}");
        }
    }
}

#[test]
fn differing_launches_widen_interval_one_is_flagged() {
    let mut run = Plan::default().blocks(15).run();
    let once = {
        let mut run = run.clone();
        for data in &mut run.trials {
            data.trial.launch = 0;
        }
        analyze(&run, &find)
    };
    let once = cell(&once, "box", INTEGER);
    assert!(has(once, "one-launch"));
    // Each launch of the box has a different level.
    for data in &mut run.trials {
        data.trial.launch = data.trial.block / 5;
    }
    for (launch, factor) in (0..).zip([1.0, 1.3, 1.1]) {
        let is_here = |trial: &Trial| is_of_arm("box")(trial) && trial.launch == launch;
        rewrite(&mut run, is_here, |report| {
            for value in &mut report.series[0].values {
                *value *= factor;
            }
        });
    }
    let found = analyze(&run, &find);
    let found = cell(&found, "box", INTEGER);
    assert!(has(found, "launches-differ"), "{:?}", found.flags);
    assert_eq!(found.verdict, Verdict::Inconclusive);
    assert!(found.p.unwrap() > 0.05);
}

#[test]
fn arms_that_are_the_same_have_no_quantile_shift() {
    // For whole trials and for slices, where an arm's value is the baseline's times a ratio.
    for in_turn in [false, true] {
        let mut shifts = [0.0, 0.0];
        let seeds = 0..40_u64;
        for seed in seeds.clone() {
            let plan = Plan {
                block_noise: 0.0,
                observations: 8,
                ..Plan::default().trial_noise(0.05).blocks(40).seed(seed)
            };
            let mut run = plan.run();
            if in_turn {
                take_turns(&mut run);
            }
            let dossier = analyze(&run, &find);
            let found = cell(&dossier, "box", INTEGER);
            assert_eq!(found.in_turn, in_turn);
            let side = |side: usize| {
                let blocks = found.blocks.iter();
                let mut values: Vec<f64> = blocks.map(|block| block.alone()[side]).collect();
                values.sort_by(f64::total_cmp);
                values
            };
            let (base, env) = (side(0), side(1));
            for (shift, share) in shifts.iter_mut().zip([0.1, 0.9]) {
                let at = |values| tare_stats::quantile(values, share).unwrap().ln();
                *shift += (at(&env) - at(&base)) / 40.0;
            }
        }
        // The mean of two copies compared with one arm would give 1.8 % at either end; the error of these means is
        // 0.2 %.
        let is_none = shifts.iter().all(|shift: &f64| shift.abs() < 0.007);
        assert!(is_none, "{in_turn}: {shifts:?}");
    }
}

#[test]
fn added_blocks_are_reported_and_fail_plan_check() {
    let mut run = Plan::default().run();
    let planned = |dossier: &Dossier| {
        let mut items = dossier.checklist.iter();
        items.find(|item| item.id == "plan").unwrap().clone()
    };
    assert_eq!(planned(&analyze(&run, &find)).result, CheckResult::Pass);
    let deviation = |kind, detail: &str| DossierDeviation {
        kind,
        detail: detail.to_owned(),
    };
    run.head.deviations = vec![deviation(Deviation::Resumed, "it was interrupted")];
    let resumed = planned(&analyze(&run, &find));
    assert_eq!(resumed.result, CheckResult::Pass);
    assert!(resumed.detail.ends_with("; it was interrupted"));
    let added = deviation(Deviation::Extended, "blocks were added to it");
    run.head.deviations.push(added);
    let dossier = analyze(&run, &find);
    super::schema::assert_fits(&dossier);
    assert_eq!(planned(&dossier).result, CheckResult::Fail);
    let style = of_width(500);
    let mut reported = vec![
        ("brief", brief(&dossier, style)),
        ("table", table(&dossier, style)),
    ];
    for form in ["html", "markdown"] {
        reported.push((form, text_of(made_of(form, &dossier, &[]))));
    }
    reported.push(("latex", file_of("latex", &dossier, "method.tex")));
    for (form, text) in reported {
        for words in ["it was interrupted", "blocks were added to it"] {
            let words = format!("Not as planned: {words}.");
            assert!(text.contains(&words), "{form}: {text}");
        }
    }
}

#[test]
fn wide_row_from_moving_effect_is_not_called_noise() {
    let flagged = |dossier: &Dossier| has(cell(dossier, "box", INTEGER), "effect-moves");
    let quiet = Plan::default().trial_noise(0.003).blocks(16);
    let mut run = quiet.run();
    rewrite(&mut run, is_of_arm("box"), |report| {
        // A different effect in each block, derived from the block's first value.
        let first = report.series[0].values[0];
        let share = (first * 1e4).fract() - 0.5;
        for value in &mut report.series[0].values {
            *value *= (0.4 * share).exp();
        }
    });
    let moving = analyze(&run, &find);
    assert!(flagged(&moving), "{:?}", cell(&moving, "box", INTEGER));
    let style = of_width(120);
    let short = words(&brief(&moving, style));
    assert_says(&short, ", moves");
    assert_says(&short, "“moves”:");
    let full = words(&table(&moving, style));
    assert_says(&full, "the effect itself moves");
    assert_says(&full, "MOVES: the effect itself");
    let page = tare::report::html::page(&moving);
    assert_says(&page, ", moves");
    // Noise that all arms share is the machine's, and a precise row needs no reason.
    assert!(!flagged(&quiet.dossier()));
    for seed in 0..20 {
        let noisy = Plan::default().trial_noise(0.1).blocks(16).seed(seed);
        assert!(!flagged(&noisy.dossier()), "{seed}");
    }
}
