//! Checks small formulas against values computed by hand.
//!
//! They are too simple for a reference implementation, and each has a sign, a constant or a side that is easily
//! swapped.

use tare_stats::diagnostics::{effective_size, largest_gap, order_effect, outlier_count, widening};
use tare_stats::{Interval, ScalingLaw, efficiency, fit_scaling, makespan, stretch};

fn assert_near(ours: f64, expected: f64) {
    assert!((ours - expected).abs() < 1e-6, "{ours} is not {expected}");
}

#[test]
fn widening_keeps_the_sides_apart() {
    let skewed = Interval::new(0.9, 1.0, 1.3, 0.95);
    let wide = skewed.widened(2.0);
    assert_near(wide.low, 0.8);
    assert_near(wide.high, 1.6);
    assert_near(wide.half_width(), 0.4);
    assert_eq!((wide.point, wide.level), (1.0, 0.95));
    for factor in [1.0, 0.5, f64::NAN] {
        assert_eq!(skewed.widened(factor), skewed);
    }
    assert_eq!((widening(4.0), widening(0.3)), (2.0, 1.0));
    assert_eq!(
        (effective_size(40, 4.0), effective_size(40, 0.5)),
        (10.0, 40.0)
    );
}

#[test]
fn makespan_stretch_and_efficiency_are_quotients() {
    assert_eq!(makespan(&[1.0, 0.5, 0.75], &[4.0, 3.0, 6.0]), Some(5.5));
    assert_eq!(makespan(&[1.0], &[]), None);
    assert_eq!((stretch(3.0, 2.0), stretch(3.0, 0.0)), (Some(1.5), None));
    assert_eq!(
        (efficiency(300.0, 4, 100.0), efficiency(300.0, 0, 100.0)),
        (Some(0.75), None)
    );
}

#[test]
fn a_gap_splits_only_with_company_on_both_sides() {
    let two = largest_gap(&[1.0, 9.0, 2.0, 10.0, 1.5]).unwrap();
    assert_eq!((two.below, two.above, two.is_split()), (3, 2, true));
    assert_near(two.share, 7.0 / 9.0);
    let lone = largest_gap(&[1.0, 2.0, 1.5, 10.0]).unwrap();
    assert_eq!((lone.above, lone.is_split()), (1, false));
    let barely = largest_gap(&[0.0, 2.2, 7.8, 10.0]).unwrap();
    assert!(barely.is_split());
    let even = largest_gap(&[0.0, 2.5, 7.5, 10.0]).unwrap();
    assert_eq!((even.share, even.is_split()), (0.5, false));
}

#[test]
fn akaike_charges_for_parameters() {
    let n = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let x = [1.1, 1.9, 3.1, 3.9, 5.1, 5.9];
    // γ = Σnx/Σn² = 90.7/91.
    let fit = fit_scaling(ScalingLaw::Linear, &n, &x).unwrap();
    assert_near(fit.gamma, 90.7 / 91.0);
    // Residual Σx² − γΣnx; two parameters with the spread: 6 ln(RSS/6) + 4 + 12/3.
    let residual = 90.46 - 90.7 * 90.7 / 91.0;
    assert_near(fit.residual, residual);
    assert_near(fit.aicc, 6.0 * (residual / 6.0).ln() + 4.0 + 4.0);
}

#[test]
fn order_effect_separates_positions() {
    // Every value at position 1 is larger: p = 2/C(10, 5) = 2/252.
    let d = [1.0, 6.0, 2.0, 7.0, 3.0, 8.0, 4.0, 9.0, 5.0, 10.0];
    let two = order_effect(&d, &[0, 1, 0, 1, 0, 1, 0, 1, 0, 1]).unwrap();
    assert_near(two, 2.0 / 252.0);
    let three = order_effect(&d[..9], &[0, 1, 2, 0, 1, 2, 0, 1, 2]).unwrap();
    assert!(three > 0.3, "{three}");
}

#[test]
fn outliers_begin_at_three_and_a_half() {
    // Median 0 and MAD 1, so z = 0.6745·5 = 3.37 and 0.6745·5.3 = 3.57.
    let count = outlier_count(&[-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1.0, 5.0, -5.3]).unwrap();
    assert_eq!(count.modified_z, 1);
}
