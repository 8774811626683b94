//! Tests every estimator at n = 0, 1, 2, with equal values, ties, an infinite value: it answers or
//! says why not, and never gives `NaN`.

mod common;

use common::interval_at;
use tare_stats::diagnostics::{
    autocorrelation, dip, dip_p, integrated_time, kruskal_wallis, largest_gap, ljung_box,
    mann_kendall, modified_z, order_effect, outlier_count, theil_sen,
};
use tare_stats::{
    BlockOrders, Interval, ScalingLaw, Undetermined, Verdict, benjamini_hochberg, block_bootstrap,
    detectable_effect, fit_scaling, further_blocks, hodges_lehmann_paired, jain, mann_whitney_p,
    mean_paired, median, mser5, signed_rank_p, verdict, williams_rows,
};

const BROKEN: [f64; 3] = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];

fn too_few<T: std::fmt::Debug>(result: Result<T, Undetermined>) -> (usize, usize) {
    match result {
        Err(Undetermined::TooFew { n, needed }) => (n, needed),
        other => panic!("{other:?}"),
    }
}

#[test]
fn too_few_values_say_how_many_are_needed() {
    for n in 0..6 {
        let d = vec![0.5; n];
        assert_eq!(too_few(hodges_lehmann_paired(&d, 0.95)), (n, 6));
    }
    assert!(hodges_lehmann_paired(&[0.5; 6], 0.95).is_ok());
    assert_eq!(too_few(hodges_lehmann_paired(&[0.5; 4], 0.90)), (4, 5));
    assert_eq!(too_few(hodges_lehmann_paired(&[0.5; 7], 0.99)), (7, 8));
    assert_eq!(too_few(mean_paired(&[1.0], 0.95)), (1, 2));
    assert_eq!(too_few(block_bootstrap(9, |_| 0.0, 0.95, 99, 1)), (9, 10));
}

#[test]
fn tiny_samples_never_reach_significance() {
    assert_eq!(signed_rank_p(&[]), None);
    assert_eq!(signed_rank_p(&[3.0]), Some(1.0));
    assert_eq!(signed_rank_p(&[3.0, 2.0]), Some(0.5));
    assert_eq!(mann_whitney_p(&[], &[1.0]), None);
    assert_eq!(mann_whitney_p(&[1.0], &[2.0]), Some(1.0));
    assert_eq!(mann_kendall(&[1.0]), None);
    assert_eq!(mann_kendall(&[1.0, 2.0]).map(|trend| trend.p), Some(1.0));
    assert_eq!(order_effect(&[1.0, 2.0], &[0, 1]), Some(1.0));
    assert_eq!(order_effect(&[1.0, 2.0], &[0, 0]), None);
    assert_eq!(median(&[]), None);
    assert_eq!(
        (median(&[4.0]), median(&[4.0, 5.0])),
        (Some(4.0), Some(4.5))
    );
    assert_eq!(
        (dip(&[]), dip(&[1.0]), dip(&[1.0, 2.0])),
        (None, Some(0.5), Some(0.25))
    );
    assert_eq!(
        (
            largest_gap(&[1.0]),
            theil_sen(&[1.0]),
            autocorrelation(&[1.0], 0)
        ),
        (None, None, None)
    );
    assert_eq!(mser5(&[9.0, 1.0]).map(|cut| cut.drop), Some(0));
    assert_eq!(williams_rows(0), Vec::<Vec<usize>>::new());
    assert_eq!(williams_rows(1), [[0]]);
    assert_eq!(BlockOrders::new(0, 1).order(5), Vec::<usize>::new());
    assert_eq!(benjamini_hochberg(&[]), Some(vec![]));
}

#[test]
fn equal_values_give_width_zero_and_no_alarm() {
    let x = [0.25; 12];
    let interval = interval_at(&x, 0.95);
    assert_eq!(
        (interval.low, interval.point, interval.high),
        (0.25, 0.25, 0.25)
    );
    let interval = mean_paired(&x, 0.95).unwrap().interval;
    assert_eq!((interval.low, interval.high), (0.25, 0.25));
    assert_eq!(signed_rank_p(&[0.0; 12]), Some(1.0));
    assert_eq!(mann_whitney_p(&x, &x), Some(1.0));
    assert_eq!(
        (
            autocorrelation(&x, 3),
            ljung_box(&x, 2),
            integrated_time(&x)
        ),
        (None, None, None)
    );
    assert_eq!(
        mann_kendall(&x).map(|trend| (trend.s, trend.p)),
        Some((0, 1.0))
    );
    assert_eq!(
        kruskal_wallis(&[x.to_vec(), x.to_vec(), x.to_vec()]),
        Some((0.0, 1.0))
    );
    assert_eq!(largest_gap(&x), None);
    assert_eq!(dip(&x), Some(1.0 / 24.0));
    assert_eq!(dip_p(&x, 20, 1).map(|(_, p)| p), Some(1.0));
    assert_eq!(modified_z(&x), Some(vec![0.0; 12]));
    assert_eq!(
        outlier_count(&x).map(|count| (count.modified_z, count.tukey)),
        Some((0, 0))
    );
    assert_eq!(
        mser5(&[1.0; 60]).map(|cut| (cut.drop, cut.hit_limit)),
        Some((0, false))
    );
    let sum = |index: &[usize]| index.iter().map(|i| x[*i]).sum();
    let drawn = block_bootstrap(12, sum, 0.95, 99, 1).unwrap();
    assert_eq!((drawn.low, drawn.high), (3.0, 3.0));
}

#[test]
fn one_broken_value_is_refused_everywhere() {
    for broken in BROKEN {
        let mut x: Vec<f64> = (0..12).map(f64::from).collect();
        x[7] = broken;
        assert_eq!(
            hodges_lehmann_paired(&x, 0.95),
            Err(Undetermined::NotFinite)
        );
        assert_eq!(mean_paired(&x, 0.95), Err(Undetermined::NotFinite));
        let sum = |index: &[usize]| index.iter().map(|i| x[*i]).sum();
        assert_eq!(
            block_bootstrap(12, sum, 0.95, 99, 1),
            Err(Undetermined::NotFinite)
        );
        assert_eq!((signed_rank_p(&x), mann_whitney_p(&x, &x)), (None, None));
        assert_eq!(median(&x), None);
        assert_eq!(
            (autocorrelation(&x, 2), mann_kendall(&x), theil_sen(&x)),
            (None, None, None)
        );
        assert_eq!(
            (dip(&x), largest_gap(&x), modified_z(&x), mser5(&x)),
            (None, None, None, None)
        );
        assert_eq!(jain(&x), None);
    }
}

#[test]
fn levels_outside_of_zero_to_one_are_refused() {
    let x = [0.1, 0.2, 0.4, 0.5, 0.7, 0.9, 1.0];
    for level in [0.0, 1.0, -0.5, 95.0, f64::NAN] {
        let refused = |result| matches!(result, Err(Undetermined::OutOfDomain { .. }));
        assert!(refused(
            hodges_lehmann_paired(&x, level).map(|e| e.interval)
        ));
        assert!(refused(mean_paired(&x, level).map(|e| e.interval)));
    }
    assert_eq!(benjamini_hochberg(&[0.1, f64::NAN]), None);
}

fn interval(low: f64, high: f64) -> Interval {
    Interval::new(low, f64::midpoint(low, high), high, 0.95)
}

#[test]
fn every_row_of_the_verdict_table_is_reached() {
    let margin = 0.02;
    let table = [
        ((0.03, 0.05), (0.032, 0.048), Verdict::MaterialCost),
        ((0.005, 0.018), (0.006, 0.017), Verdict::NegligibleCost),
        ((0.005, 0.05), (0.008, 0.045), Verdict::Cost),
        ((-0.01, 0.01), (-0.008, 0.008), Verdict::Equivalent),
        // The 90 % interval alone decides equivalence.
        ((-0.021, 0.01), (-0.018, 0.008), Verdict::Equivalent),
        ((-0.01, 0.03), (-0.008, 0.025), Verdict::Inconclusive),
        // Bounds on zero and on the margin prove nothing.
        ((0.0, 0.03), (0.0, 0.025), Verdict::Inconclusive),
        ((0.02_f64.ln_1p(), 0.05), (0.025, 0.04), Verdict::Cost),
    ];
    for ((low, high), (low90, high90), expected) in table {
        assert_eq!(
            verdict(&interval(low, high), &interval(low90, high90), margin),
            expected
        );
        let mirrored = verdict(&interval(-high, -low), &interval(-high90, -low90), margin);
        assert_eq!(mirrored, expected.mirrored());
    }
    let clear = interval(0.03, 0.05);
    for margin in [-0.1, f64::NAN, f64::INFINITY] {
        assert_eq!(verdict(&clear, &clear, margin), Verdict::Inconclusive);
    }
    assert_eq!(
        verdict(&interval(f64::NAN, 1.0), &clear, 0.02),
        Verdict::Inconclusive
    );
    for verdict in Verdict::ALL {
        assert_eq!(Verdict::from_name(verdict.name()), Some(verdict));
    }
}

#[test]
fn blocks_grow_with_the_square_of_the_width() {
    assert_eq!(further_blocks(10, 0.02, 0.01), Some(30));
    assert_eq!(further_blocks(10, 0.01, 0.02), Some(0));
    assert_eq!(further_blocks(10, 0.01, 0.0), None);
    assert_eq!(detectable_effect(&interval(-0.01, 0.01), 1), None);
    // Half-width 0.01 at n = 20: 0.01·(2.0930 + 0.8610)/2.0930 on the ln scale.
    let effect = detectable_effect(&interval(-0.01, 0.01), 20).unwrap();
    assert!((effect - 0.014_114_f64.exp_m1()).abs() < 1e-5, "{effect}");
}

#[test]
fn best_scaling_separates_laws() {
    let n = [1.0_f64, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let amdahl: Vec<f64> = n
        .iter()
        .map(|n| 50.0 * n / (1.0 + 0.1 * (n - 1.0)) * (1.0 + 0.01 * n.sin()))
        .collect();
    let fit = tare_stats::best_scaling(&n, &amdahl).unwrap();
    assert_eq!((fit.law, fit.beta), (ScalingLaw::Amdahl, 0.0));
    assert!((fit.alpha - 0.1).abs() < 0.01, "{fit:?}");
    assert_eq!(fit.peak(64.0), None);
    // Better than proportional: the bounds bind and the linear law remains.
    let faster: Vec<f64> = n.iter().map(|n| 50.0 * n.powf(1.05)).collect();
    let fit = fit_scaling(ScalingLaw::Universal, &n, &faster).unwrap();
    assert_eq!((fit.alpha, fit.beta), (0.0, 0.0));
    assert_eq!(
        too_few(fit_scaling(ScalingLaw::Linear, &n[..5], &amdahl[..5])),
        (5, 6)
    );
}
