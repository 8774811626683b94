//! Checks special functions and estimators against SciPy and second computations, each with a separate tolerance
//! (`fixtures/stats/make.py`).
//!
//! The golden values check formulas on one example; these check the functions behind every formula, in the corners
//! where libraries regress.
//!
//! Limits: only the arguments in the file.

mod common;

use common::{assert_close, fixture, numbers};
use serde_json::Value;
use tare_model::{whole_part, whole_size};
use tare_stats::{diagnostics, special};

fn reference() -> Value {
    serde_json::from_str(&fixture("reference.json")).expect("reference.json is JSON")
}

fn rows(value: &Value) -> &Vec<Value> {
    let rows = value.as_array().expect("rows");
    assert!(!rows.is_empty());
    rows
}

/// Compares relative to the expected value, however small.
fn assert_relative(ours: f64, expected: f64, tolerance: f64, what: &str) {
    let off = (ours - expected).abs();
    assert!(
        off <= tolerance * expected.abs(),
        "{what}: {ours:e} is not {expected:e}"
    );
}

#[test]
fn special_functions_agree() {
    let reference = reference();
    // A row holds the arguments and, last, the function's result.
    let agree = |name: &str, tolerance: f64, ours: fn(&[f64]) -> f64| {
        for row in rows(&reference[name]).iter().map(numbers) {
            let (expected, arguments) = row.split_last().expect("a row");
            let what = format!("{name}({arguments:?})");
            assert_relative(ours(arguments), *expected, tolerance, &what);
        }
    };
    agree("normal_cdf", 1e-10, |of| special::normal_cdf(of[0]));
    agree("normal_quantile", 1e-12, |of| {
        special::normal_quantile(of[0])
    });
    agree("t_upper", 1e-11, |of| special::t_upper(of[0], of[1]));
    agree("t_quantile", 1e-11, |of| special::t_quantile(of[0], of[1]));
    agree("chi_squared_upper", 1e-11, |of| {
        special::chi_squared_upper(of[0], of[1])
    });
    agree("beta_regularized", 1e-11, |of| {
        special::beta_regularized(of[0], of[1], of[2])
    });
    agree("binomial_cdf", 1e-11, |of| {
        special::binomial_cdf(whole_part(of[0]), whole_part(of[1]), of[2])
    });
}

#[test]
fn binomial_quantiles_agree() {
    let reference = reference();
    for row in rows(&reference["acceptance"]).iter().map(numbers) {
        let ours = [0.025, 0.975].map(|p| {
            tare_stats::binomial_quantile(p, whole_part(row[0]), 0.05).expect("in the domain")
        });
        assert_eq!(ours, [row[1], row[2]].map(whole_part), "{row:?}");
    }
}

#[test]
fn rank_tests_agree_with_enumeration() {
    let reference = reference();
    for row in rows(&reference["signed_rank_p"]) {
        let ours = tare_stats::signed_rank_p(&numbers(&row[0])).expect("finite");
        assert_close(ours, &row[1], 1e-12, "signed rank");
    }
    for row in rows(&reference["mann_whitney_p"]) {
        let (a, b) = (numbers(&row[0]), numbers(&row[1]));
        assert_close(
            tare_stats::mann_whitney_p(&a, &b).expect("finite"),
            &row[2],
            1e-12,
            "Mann-Whitney",
        );
    }
    for row in rows(&reference["kruskal_wallis"]) {
        let groups: Vec<Vec<f64>> = rows(&row[0]).iter().map(numbers).collect();
        let (h, p) = diagnostics::kruskal_wallis(&groups).expect("finite");
        assert_close(h, &row[1], 1e-11, "H");
        assert_close(p, &row[2], 1e-11, "p");
    }
}

/// From 257 on, ours is a series and theirs is exact counting.
#[test]
fn ranks_of_large_samples_agree_with_counting() {
    for row in rows(&reference()["signed_rank_k"]) {
        let n = whole_size(row[0].as_u64().expect("a count"));
        let (k, coverage) = tare_stats::SignedRank::new(n)
            .interval_rank(0.05)
            .expect("enough blocks");
        assert_eq!(k as u64, row[1].as_u64().expect("a rank"), "n = {n}");
        assert_close(
            coverage,
            &row[2],
            if n <= 256 { 1e-12 } else { 1e-9 },
            "coverage",
        );
    }
}

#[test]
fn dips_agree() {
    let reference = reference();
    for row in rows(&reference["dip"]) {
        assert_close(
            diagnostics::dip(&numbers(&row[0])).expect("finite"),
            &row[1],
            1e-12,
            "dip",
        );
    }
    let mut p_values = Vec::new();
    for row in rows(&reference["dip_p"]) {
        let (_, p) = diagnostics::dip_p(&numbers(&row[0]), 1_000, 3).expect("finite");
        // Three standard errors of both simulations, at p = ½.
        assert_close(p, &row[1], 0.05, "p");
        p_values.push(p);
    }
    assert!(
        p_values[0] > 0.05 && p_values[1] < 0.01,
        "one mode and two: {p_values:?}"
    );
}

#[test]
fn the_rest_agrees() {
    let reference = reference();
    let row = &reference["quantile"];
    let x = numbers(&row[0]);
    for pair in rows(&row[1]).iter().map(numbers) {
        assert_relative(
            tare_stats::quantile(&x, pair[0]).expect("finite"),
            pair[1],
            1e-14,
            "quantile",
        );
    }
    let row = &reference["theil_sen_slope"];
    let ours = diagnostics::theil_sen_slope(&numbers(&row[0]), &numbers(&row[1])).expect("finite");
    assert_close(ours, &row[2], 1e-12, "slope");
}

#[test]
fn integrated_time_and_outliers_agree() {
    let reference = reference();
    let row = &reference["integrated_time"];
    let ours = diagnostics::integrated_time(&numbers(&row[0])).expect("finite");
    assert_close(ours, &row[1], 1e-11, "integrated time");

    let row = &reference["outlier_count"];
    let ours = diagnostics::outlier_count(&numbers(&row[0])).expect("finite");
    assert_eq!(
        (ours.modified_z as u64, ours.tukey as u64),
        (row[1].as_u64().unwrap(), row[2].as_u64().unwrap())
    );
}

#[test]
fn bootstraps_agree_within_monte_carlo_error() {
    let row = &reference()["bootstrap"];
    let x = numbers(&row[0]);
    let mean = |index: &[usize]| index.iter().map(|i| x[*i]).sum::<f64>() / index.len() as f64;
    let ours =
        tare_stats::block_bootstrap(x.len(), mean, 0.95, 100_000, 11).expect("enough blocks");
    // The standard error of a bound is √(α(1 − α)/B)/f, here about 0.008; three of them.
    for (ours, theirs) in [ours.low, ours.high]
        .iter()
        .zip(numbers(&row[1]["percentile"]))
    {
        assert!((ours - theirs).abs() < 0.025, "{ours} is not {theirs}");
    }
}
