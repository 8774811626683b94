//! Tests how numbers of several instances and claims are decided: by intervals that include what blocks of one
//! launch, or consecutive blocks, have in common; and never by a range, or by a cell whose two sides are not
//! comparable.

use tare::analyze::{RunData, analyze};
use tare::report::html;
use tare_model::dossier::{Dossier, DossierClaim, Span};
use tare_model::{ClaimVerdict, ProbeReport, Spread, Trial};
use tare_stats::hodges_lehmann_paired;

use super::concurrency::{Crowd, arm, point, records_of, together};
use super::forms::{assert_lacks, assert_says};
use super::generator::{Plan, completed, find, is_of_arm, publication_of, rewrite};

/// Multiplies the cost of every instance in the trials that `which` picks.
fn times(run: &mut RunData, which: impl Fn(&Trial) -> bool, factor: impl Fn(&Trial) -> f64) {
    for data in run.trials.iter_mut().filter(|data| which(&data.trial)) {
        let factor = factor(&data.trial);
        let mut records = records_of(&data.outcome);
        for record in &mut records.instances {
            let mut report: ProbeReport = super::concurrency::report_of(&record.outcome);
            for value in report.series.iter_mut().flat_map(|it| &mut it.values) {
                *value *= factor;
            }
            record.outcome = completed(&report);
        }
        data.outcome = together(Spread::Processes, records.instances);
    }
}

/// A run with one and with four instances on the host; `factor` scales the four in each block.
fn crowd(factor: fn(u32) -> f64) -> RunData {
    let mut run = Crowd::with(|crowd| crowd.numbers = vec![1, 4]).run();
    let is_four = |trial: &Trial| is_of_arm("host")(trial) && trial.cell.instances == 4;
    times(&mut run, is_four, |trial| factor(trial.block));
    run
}

/// Returns the width of the stretch's interval relative to that of independent blocks.
fn widening(run: &RunData) -> f64 {
    let dossier = analyze(run, &find);
    let typical = |trial: &Trial, outcome| -> Vec<f64> {
        let records = records_of(outcome).instances;
        let values = records.iter().map(|record| {
            let report = super::concurrency::report_of(&record.outcome);
            let mut values = report.series[0].values.clone();
            values.sort_by(f64::total_cmp);
            f64::midpoint(values[19], values[20])
        });
        assert_eq!(trial.cell.instances as usize, records.len());
        values.collect()
    };
    let of_host = |instances: u32| -> Vec<f64> {
        let trials = run.trials.iter();
        let trials = trials.filter(|data| {
            is_of_arm("host")(&data.trial) && data.trial.cell.instances == instances
        });
        trials
            .map(|data| {
                let values = typical(&data.trial, &data.outcome);
                values.iter().sum::<f64>() / values.len() as f64
            })
            .collect()
    };
    let (four, one) = (of_host(4), of_host(1));
    let d: Vec<f64> = four.iter().zip(&one).map(|(a, b)| (a / b).ln()).collect();
    let plain = hodges_lehmann_paired(&d, 0.95).unwrap().interval;
    let reported = point(&dossier, "host", 4).stretch.unwrap();
    assert!((reported.point / plain.point.exp() - 1.0).abs() < 1e-9);
    (reported.high / reported.low).ln() / (plain.high - plain.low)
}

#[test]
fn interaction_interval_widens_with_dependence() {
    let independent = widening(&crowd(|_| 1.0));
    assert!((independent - 1.0).abs() < 1e-6, "{independent}");
    let slow = widening(&crowd(|block| (0.2 * (f64::from(block) / 3.0).sin()).exp()));
    assert!(slow > 1.2, "{slow}");
    let mut launches = crowd(|block| [1.0, 1.2, 0.9, 1.1][(block / 5) as usize]);
    for data in &mut launches.trials {
        data.trial.launch = data.trial.block / 5;
    }
    let launches = widening(&launches);
    assert!(launches > 1.5, "{launches}");
}

#[test]
fn doublings_of_each_arm_form_separate_family() {
    let mut run = Crowd::default().run();
    let mut other = run.clone();
    for data in &mut other.trials {
        if is_of_arm("box")(&data.trial) {
            data.trial.cell.arm = tare_model::ArmId::new("jail").unwrap();
        }
    }
    let mut jail = run.head.arms[2].clone();
    jail.spec.id = tare_model::ArmId::new("jail").unwrap();
    run.head.study.arms.push(jail.spec.clone());
    run.head.arms.push(jail);
    let of_jail = other.trials.into_iter();
    run.trials
        .extend(of_jail.filter(|data| is_of_arm("jail")(&data.trial)));
    let dossier = analyze(&run, &find);
    for name in ["box", "jail"] {
        let doubling = arm(&dossier, name).doubling.as_ref().unwrap();
        // With one question in the family, p stays unchanged.
        assert_eq!(doubling.q, doubling.p, "{name}");
    }
}

#[test]
fn page_avoids_confidence_label_for_few_blocks() {
    let page = |blocks: u32| {
        let dossier = Crowd::with(|crowd| crowd.blocks = blocks).dossier();
        let page = html::page(&dossier);
        let at = page.find("id=\"instances\"").unwrap();
        page[at..at + page[at..].find("</section>").unwrap()].to_owned()
    };
    let few = page(4);
    assert_lacks(&few, "95 %");
    assert!(few.contains("range, which holds the typical value with 88 % only"));
    assert_says(&few, "(range, 88 % only)");
    let enough = page(20);
    assert_says(&enough, "whiskers: 95 % interval");
    assert_lacks(&enough, "range,");
}

/// Returns the only claim of a run with this rule.
fn claim(mut run: RunData, rule: &str) -> DossierClaim {
    let publication = format!(
        r#"
quantity = [{{ name = "work", label = "Work", metric = "cpu.integer.time" }}]
claim = [{{ id = "it", published = "It is so.", at = "a place", rule = {{ {rule}, quantity = "work", arm = "box", at_least = 0.5 }} }}]
"#
    );
    run.head.study.publication = Some(publication_of(&publication));
    let mut dossier: Dossier = analyze(&run, &find);
    super::schema::assert_fits(&dossier);
    dossier.claims.remove(0)
}

#[test]
fn growth_with_few_complete_blocks_decides_no_claim() {
    let growth = "kind = \"growth\", instances = 4";
    let mut run = Crowd::default().run();
    assert_eq!(claim(run.clone(), growth).verdict, ClaimVerdict::Holds);
    run.trials
        .retain(|data| data.trial.cell.instances != 1 || data.trial.block < 5);
    let few = claim(run, growth);
    assert_eq!(few.verdict, ClaimVerdict::NotTestable);
    assert_says(&few.because, "fewer than 6 blocks");
}

#[test]
fn incomparable_cell_makes_claim_not_testable() {
    let cost = "kind = \"cost\"";
    let run = Plan::default().run();
    assert_eq!(claim(run.clone(), cost).verdict, ClaimVerdict::Holds);
    let mut throttled = run.clone();
    rewrite(&mut throttled, is_of_arm("box"), |report| {
        report.counters.insert("throttled_ns".to_owned(), 3e6);
    });
    let reported = claim(throttled.clone(), cost);
    assert_eq!(reported.verdict, ClaimVerdict::NotTestable);
    assert_says(&reported.because, "the arm was stopped for");
    // If the study asks for a quota, throttling by it is part of the overhead.
    let asked = &mut throttled.head.arms[2].spec.settings;
    *asked = asked.clone().with("cpus", 0.5);
    assert_eq!(claim(throttled, cost).verdict, ClaimVerdict::Holds);
    let mut void = run;
    rewrite(&mut void, is_of_arm("box"), |report| {
        report.checksum = Some("0badc0de0badc0de".to_owned());
    });
    let reported = claim(void, cost);
    assert_eq!(reported.verdict, ClaimVerdict::NotTestable);
    assert_says(&reported.because, "checksum");
}

/// Here every interval is as wide as its ends say; none is a point.
#[test]
fn instance_shares_stay_within_one_when_widened() {
    let mut run = crowd(|_| 1.0);
    // In every second run of blocks, one instance is held back.
    for data in &mut run.trials {
        let is_held = data.trial.block / 5 % 2 == 1 && data.trial.cell.instances == 4;
        if !(is_held && is_of_arm("host")(&data.trial)) {
            continue;
        }
        let mut records = records_of(&data.outcome);
        let last = records.instances.last_mut().unwrap();
        let mut report = super::concurrency::report_of(&last.outcome);
        for value in report.series.iter_mut().flat_map(|it| &mut it.values) {
            *value *= 9.0;
        }
        last.outcome = completed(&report);
        data.outcome = together(Spread::Processes, records.instances);
    }
    let dossier = analyze(&run, &find);
    let Span { low, high, .. } = point(&dossier, "host", 4).fairness.unwrap();
    assert!(0.0 <= low && low < high && high <= 1.0, "{low} {high}");
}
