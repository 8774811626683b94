//! Checks our functions against the golden values of the method: 1e-9 everywhere except the scalability fit (1e-3),
//! whose optimum is flat.
//!
//! The values come from an independent implementation in NumPy and SciPy, so a formula that was misread here shows.
//!
//! Limits: a formula misread in both.

mod common;

use common::{assert_close, golden, interval_at, numbers};
use serde_json::Value;
use tare_model::{whole_place, whole_size};
use tare_stats::{
    Interval, SignedRank, diagnostics, hodges_lehmann_paired, mser5, signed_rank_p, verdict,
    williams_rows,
};

const TIGHT: f64 = 1e-9;

fn arms(golden: &Value) -> (Vec<f64>, Vec<f64>) {
    (
        numbers(&golden["inputs"]["A"]),
        numbers(&golden["inputs"]["B"]),
    )
}

fn assert_bounds(ours: &Interval, point: &Value, theirs: &Value) {
    assert_close(ours.point, point, TIGHT, "point");
    assert_close(ours.low, &theirs["lo"], TIGHT, "low");
    assert_close(ours.high, &theirs["hi"], TIGHT, "high");
}

#[test]
fn paired_intervals_agree() {
    let golden = golden();
    let d = numbers(&golden["d"]);
    for (name, level) in [("hl95", 0.95), ("hl90", 0.90)] {
        let ours = hodges_lehmann_paired(&d, level).expect("twelve blocks");
        assert_bounds(&ours.interval, &golden[name]["est"], &golden[name]);
        assert_close(ours.coverage, &golden[name]["coverage"], TIGHT, name);
    }
    assert_close(
        signed_rank_p(&d).expect("twelve blocks"),
        &golden["wilcoxon"]["p"],
        TIGHT,
        "p",
    );
}

#[test]
fn signed_rank_ranks_agree() {
    let golden = golden();
    let mut compared = 0;
    for (alpha, table) in golden["signed_rank_k"]
        .as_object()
        .expect("a table by alpha")
    {
        let alpha: f64 = alpha.parse().expect("a number");
        for (n, expected) in table.as_object().expect("a table by n") {
            let n: usize = n.parse().expect("a number");
            let k = whole_size(expected[0].as_u64().expect("a rank"));
            match SignedRank::new(n).interval_rank(alpha) {
                None => assert_eq!(k, 0, "n = {n}"),
                Some((ours, coverage)) => {
                    assert_eq!(ours, k, "n = {n}, alpha = {alpha}");
                    assert_close(coverage, &expected[1], TIGHT, "coverage");
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 45);
}

#[test]
fn verdicts_agree() {
    let golden = golden();
    let d = numbers(&golden["d"]);
    let ci95 = interval_at(&d, 0.95);
    let ci90 = interval_at(&d, 0.90);
    for (margin, expected) in golden["verdict"].as_object().expect("a table by margin") {
        let margin: f64 = margin.parse().expect("a number");
        assert_eq!(
            verdict(&ci95, &ci90, margin).name(),
            expected.as_str().expect("a name"),
            "{margin}"
        );
    }
}

#[test]
fn diagnostics_agree() {
    let golden = golden();
    let (a, _) = arms(&golden);
    let ar = numbers(&golden["inputs"]["ar"]);

    let trend = diagnostics::mann_kendall(&a).expect("finite");
    assert_eq!(trend.s, golden["mk"]["S"].as_i64().expect("a count"));
    assert_close(trend.z, &golden["mk"]["z"], TIGHT, "z");
    assert_close(trend.p, &golden["mk"]["p"], TIGHT, "p");
    assert_close(
        diagnostics::theil_sen(&a).expect("finite"),
        &golden["theil_sen"],
        TIGHT,
        "slope",
    );

    let r = diagnostics::autocorrelation(&a, 5).expect("finite");
    for (ours, theirs) in r.iter().zip(numbers(&golden["acf"])) {
        assert!((ours - theirs).abs() < TIGHT);
    }
    for (x, lags, name) in [(&a, 3, "lb3"), (&ar, 10, "lb10_ar")] {
        let ours = diagnostics::ljung_box(x, lags).expect("finite");
        assert_close(ours.q, &golden[name]["Q"], TIGHT, name);
        assert_close(ours.p, &golden[name]["p"], TIGHT, name);
    }
    assert_close(
        diagnostics::integrated_time(&ar).expect("finite"),
        &golden["tau_ar"],
        TIGHT,
        "tau",
    );
    for (ours, theirs) in diagnostics::modified_z(&a)
        .expect("finite")
        .iter()
        .zip(numbers(&golden["modz"]))
    {
        assert!((ours - theirs).abs() < TIGHT);
    }
    let warm = mser5(&numbers(&golden["inputs"]["warm"])).expect("finite");
    assert_eq!(warm.drop as u64, golden["mser5"].as_u64().expect("a count"));
}

#[test]
fn multiplicity_agrees() {
    let golden = golden();
    let ours =
        tare_stats::benjamini_hochberg(&numbers(&golden["inputs"]["bh"])).expect("probabilities");
    for (ours, theirs) in ours.iter().zip(numbers(&golden["bh"])) {
        assert!((ours - theirs).abs() < TIGHT);
    }
}

#[test]
fn parametric_intervals_agree() {
    let golden = golden();
    let d = numbers(&golden["d"]);
    let ours = tare_stats::mean_paired(&d, 0.95)
        .expect("twelve blocks")
        .interval;
    assert_bounds(&ours, &golden["t"]["mean"], &golden["t"]);
}

#[test]
fn scaling_agrees() {
    let golden = golden();
    let jain = tare_stats::jain(&numbers(&golden["inputs"]["jain"])).expect("rates");
    assert_close(jain, &golden["jain"], TIGHT, "fairness");

    let (n, x) = (
        numbers(&golden["inputs"]["usl_N"]),
        numbers(&golden["inputs"]["usl_X"]),
    );
    let fit =
        tare_stats::fit_scaling(tare_stats::ScalingLaw::Universal, &n, &x).expect("eight sizes");
    assert_close(fit.gamma, &golden["usl"]["gamma"], 1e-3, "gamma");
    assert_close(fit.alpha, &golden["usl"]["alpha"], 1e-5, "alpha");
    assert_close(fit.beta, &golden["usl"]["beta"], 1e-6, "beta");
    assert_close(
        fit.peak(32.0).expect("inside"),
        &golden["usl"]["n_peak"],
        1e-3,
        "peak",
    );
}

#[test]
fn williams_squares_agree() {
    for (n, rows) in golden()["williams"].as_object().expect("a table by n") {
        let n: usize = n.parse().expect("a number");
        let expected: Vec<Vec<usize>> = rows
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| numbers(row).into_iter().map(whole_place).collect())
            .collect();
        assert_eq!(williams_rows(n), expected, "n = {n}");
    }
}
