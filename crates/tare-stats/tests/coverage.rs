//! Tests that the default interval covers 95 %, and shows where an easier analysis fails.
//!
//! A formula can be implemented as written and still fail its purpose. Few repetitions here; the development command
//! runs many.
//!
//! Limits: cannot detect a shortfall below the resolution of a few hundred repetitions, or noise that is neither
//! simulated nor in the recorded trials.

mod common;
#[path = "common/simulation.rs"]
mod simulation;

use common::{fixture, interval_at};
use simulation::{Noise, coverage, sequential_coverage, verdict_counts};
use tare_stats::diagnostics::launches;
use tare_stats::{Stream, Verdict, binomial_quantile, special};

/// Returns the 0.1 % quantile of the observed fraction in `reps` repetitions with a coverage of `promised`.
fn at_least(promised: f64, reps: usize) -> f64 {
    binomial_quantile(0.001, reps as u64, promised).expect("in the domain") as f64 / reps as f64
}

#[test]
fn the_interval_covers_in_every_noise_model() {
    let reps = 600;
    for model in Noise::ALL {
        for n in [6, 10, 20, 40] {
            let share = coverage(model, n, reps, 2_026);
            let least = at_least(0.935, reps);
            assert!(share >= least, "{model:?} at n = {n}: {share} < {least}");
        }
    }
}

#[test]
fn the_precision_rule_keeps_coverage() {
    let reps = 300;
    for model in [Noise::Normal, Noise::Modes, Noise::Drift] {
        let share = sequential_coverage(model, 0.05, 60, reps, 5);
        assert!(share >= at_least(0.93, reps), "{model:?}: {share}");
    }
}

/// An effect of exactly the margin is neither material nor equivalent; the two levels (2.5 % and 5 %) bound false
/// claims of either.
#[test]
fn verdicts_on_the_margin_are_seldom_wrong() {
    let (margin, reps) = (0.02_f64, 1_000);
    let share = |effect: f64, claim: Verdict| {
        let counts = verdict_counts(Noise::Spikes, effect, margin, 40, reps, 8);
        counts[claim as usize] as f64 / reps as f64
    };
    let most = |promised: f64| 1.0 - at_least(1.0 - promised, reps);
    let on_margin = margin.ln_1p();
    let wrongly_material = share(on_margin, Verdict::MaterialCost);
    assert!(wrongly_material <= most(0.025), "{wrongly_material}");
    let wrongly_equivalent = share(on_margin, Verdict::Equivalent);
    assert!(wrongly_equivalent <= most(0.05), "{wrongly_equivalent}");
    // And they are made where they are true.
    let equivalent = share(0.0, Verdict::Equivalent);
    assert!(equivalent > 0.9, "{equivalent}");
    let material = share(2.0 * on_margin, Verdict::MaterialCost);
    assert!(material > 0.8, "{material}");
}

/// The same check must reject what does not cover 95 %.
#[test]
fn narrower_interval_fails_coverage_check() {
    let reps = 2_000;
    let mut stream = Stream::new(9, 0, 0);
    let mut hits = 0;
    for _ in 0..reps {
        let d = Noise::Normal.log_ratios(10, &mut stream);
        hits += i32::from(interval_at(&d, 0.90).contains(0.0));
    }
    let share = f64::from(hits) / reps as f64;
    assert!(share < at_least(0.935, reps), "{share}");
}

/// Whether Welch's test of two samples of ten finds a difference at 5 %.
fn welch_alarms(a: &[f64], b: &[f64]) -> bool {
    let part = |x: &[f64]| {
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let variance = x.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
        (mean, variance / n, n - 1.0)
    };
    let ((mean_a, error_a, df_a), (mean_b, error_b, df_b)) = (part(a), part(b));
    let df = (error_a + error_b).powi(2) / (error_a.powi(2) / df_a + error_b.powi(2) / df_b);
    let t = ((mean_b - mean_a) / (error_a + error_b).sqrt()).abs();
    2.0 * special::t_upper(t, df) < 0.05
}

/// Identical code, timed 8 824 times: every alarm is false.
#[test]
fn blocking_keeps_false_alarm_rate_sequences_do_not() {
    let text = fixture("aa_trials.csv");
    let mut columns = [Vec::new(), Vec::new()];
    for line in text.lines().skip(1) {
        for (column, field) in columns.iter_mut().zip(line.split(',')) {
            column.push(field.parse::<f64>().expect("a duration").ln());
        }
    }
    let windows = 4_000;
    for (column, name) in columns.iter().zip(["cpu", "memory"]) {
        assert_eq!(column.len(), 8_824);
        let mut stream = Stream::new(1, 0, 0);
        let (mut sequential, mut blocked) = (0, 0);
        for _ in 0..windows {
            let start = stream.below(column.len() - 20);
            let window = &column[start..start + 20];
            sequential += u32::from(welch_alarms(&window[..10], &window[10..]));
            let d: Vec<f64> = window
                .chunks_exact(2)
                .map(|pair| {
                    if stream.below(2) == 0 {
                        pair[1] - pair[0]
                    } else {
                        pair[0] - pair[1]
                    }
                })
                .collect();
            let interval = interval_at(&d, 0.95);
            blocked += u32::from(!interval.contains(0.0));
        }
        let rate = |alarms: u32| f64::from(alarms) / f64::from(windows);
        assert!(
            rate(sequential) > 0.10,
            "{name}, sequential: {}",
            rate(sequential)
        );
        assert!(
            (0.03..=0.07).contains(&rate(blocked)),
            "{name}, blocked: {}",
            rate(blocked)
        );
    }
}

/// Blocks of one launch share the effect of that start. Treated as independent, fifteen blocks of three launches
/// cover in six to nine cases of ten, and sixteen of two in five to eight.
#[test]
fn launches_that_differ_are_inside_the_interval() {
    let reps = 600;
    for (sizes, wanted) in [
        (vec![8, 8], 0.82),
        (vec![5, 5, 5], 0.93),
        (vec![5; 6], 0.93),
        (vec![4; 10], 0.93),
    ] {
        let of: Vec<u32> = (0..)
            .zip(&sizes)
            .flat_map(|(launch, size)| vec![launch; *size])
            .collect();
        for share in [0.0, 0.2, 0.5, 0.8_f64] {
            let covered = (0..reps)
                .filter(|rep| {
                    let mut noise = Stream::new(7, 1, *rep as u64);
                    let starts: Vec<f64> = sizes
                        .iter()
                        .map(|_| noise.normal() * share.sqrt())
                        .collect();
                    let block = |launch: &u32| {
                        starts[*launch as usize] + noise.normal() * (1.0 - share).sqrt()
                    };
                    let d: Vec<f64> = of.iter().map(block).collect();
                    let factor = launches(&d, &of).map_or(1.0, |found| found.factor);
                    let exact = interval_at(&d, 0.95);
                    exact.widened(factor).contains(0.0)
                })
                .count();
            let covered = covered as f64 / reps as f64;
            assert!(
                covered >= at_least(wanted, reps),
                "{sizes:?}, {share}: {covered}"
            );
        }
    }
}
