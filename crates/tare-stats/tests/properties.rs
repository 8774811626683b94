//! Tests properties that hold for every input, not only for the examples.
//!
//! Symmetries (order, shift, scale, exchange of arms) reveal an off-by-one in a rank or a sign in a formula without a
//! reference.
//!
//! Limits: an estimator that is consistently wrong in a symmetric way.

mod common;

use common::interval_at;
use proptest::prelude::*;
use tare_stats::{
    BlockOrders, Stream, Verdict, benjamini_hochberg, closed_rows, hodges_lehmann_at,
    hodges_lehmann_paired, holm, mean_paired, median, quantile, signed_rank_p, verdict,
    williams_rows,
};

/// Multiples of 1/8, so that shifts and sums are exact and ties occur.
fn coarse(least: usize, most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(
        (-80_i32..80).prop_map(|eighths| f64::from(eighths) / 8.0),
        least..most,
    )
}

fn fine(least: usize, most: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1.0_f64..1.0, least..most)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_does_not_matter(mut d in coarse(6, 60), seed: u64) {
        let before = hodges_lehmann_paired(&d, 0.95).unwrap();
        let p = signed_rank_p(&d);
        Stream::new(seed, 0, 0).shuffle(&mut d);
        prop_assert_eq!(before, hodges_lehmann_paired(&d, 0.95).unwrap());
        prop_assert_eq!(p, signed_rank_p(&d));
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "sums and means of eighths are exact")]
    fn a_shift_moves_the_interval(d in coarse(6, 60), shift in -40_i32..40) {
        let before = interval_at(&d, 0.95);
        let moved: Vec<f64> = d.iter().map(|value| value + f64::from(shift)).collect();
        let after = interval_at(&moved, 0.95);
        prop_assert_eq!(after.low, before.low + f64::from(shift));
        prop_assert_eq!(after.point, before.point + f64::from(shift));
        prop_assert_eq!(after.high, before.high + f64::from(shift));
    }

    #[test]
    fn a_scale_stretches_the_interval(d in fine(6, 60), power in -6_i32..6) {
        let factor = 2.0_f64.powi(power);
        let before = interval_at(&d, 0.95);
        let scaled: Vec<f64> = d.iter().map(|value| value * factor).collect();
        let after = interval_at(&scaled, 0.95);
        prop_assert_eq!((after.low, after.high), (before.low * factor, before.high * factor));
    }

    #[test]
    fn exchanged_arms_mirror_the_interval(d in coarse(6, 60)) {
        let before = interval_at(&d, 0.95);
        let mirrored: Vec<f64> = d.iter().map(|value| -value).collect();
        let after = interval_at(&mirrored, 0.95);
        prop_assert_eq!((after.low, after.point, after.high), (-before.high, -before.point, -before.low));
        // On the ratio scale: reciprocal.
        let product = before.exp().point * after.exp().point;
        prop_assert!((product - 1.0).abs() < 1e-12);
        prop_assert_eq!(signed_rank_p(&d), signed_rank_p(&mirrored));
    }

    #[test]
    fn exchanged_arms_mirror_the_verdict(d in coarse(6, 40), margin in 0.0_f64..3.0) {
        let mirrored: Vec<f64> = d.iter().map(|value| -value).collect();
        let of = |d: &[f64]| {
            let [at95, at90] = hodges_lehmann_at(d, [0.95, 0.90]).unwrap();
            verdict(&at95.interval, &at90.interval, margin)
        };
        prop_assert_eq!(of(&d).mirrored(), of(&mirrored));
    }

    #[test]
    fn an_interval_contains_its_point(d in fine(6, 60)) {
        for interval in [
            interval_at(&d, 0.95),
            mean_paired(&d, 0.95).unwrap().interval,
        ] {
            prop_assert!(interval.contains(interval.point), "{:?}", interval);
        }
    }

    #[test]
    fn a_higher_level_is_wider(d in fine(12, 60), low in 0.5_f64..0.99, more in 0.0_f64..1.0) {
        let high = low + (0.99 - low) * more;
        let narrow = hodges_lehmann_paired(&d, low).unwrap();
        let wide = hodges_lehmann_paired(&d, high).unwrap();
        prop_assert!(wide.interval.low <= narrow.interval.low && narrow.interval.high <= wide.interval.high);
        prop_assert!(wide.coverage >= high - 1e-9 && narrow.coverage >= low - 1e-9);
    }

    /// Coarse values: with ties and zeros a p-value and its interval can disagree.
    #[test]
    fn p_and_interval_agree_about_zero(d in coarse(6, 40), offset in -24_i32..24) {
        let d: Vec<f64> = d.iter().map(|value| value + f64::from(offset) / 8.0).collect();
        let interval = interval_at(&d, 0.95);
        prop_assert_eq!(signed_rank_p(&d).unwrap() <= 0.05, !interval.contains(0.0));
    }

    #[test]
    fn quantiles_rise_within_the_range(x in fine(1, 50), p in 0.0_f64..1.0, q in 0.0_f64..1.0) {
        let (low, high) = (quantile(&x, p.min(q)).unwrap(), quantile(&x, p.max(q)).unwrap());
        prop_assert!(low <= high);
        prop_assert!(quantile(&x, 0.0).unwrap() <= low && high <= quantile(&x, 1.0).unwrap());
        prop_assert_eq!(median(&x), quantile(&x, 0.5));
    }

    #[test]
    fn every_block_runs_every_arm_once(n in 0_usize..9, seed: u64, block in 0_usize..1_000) {
        let mut order = BlockOrders::new(n, seed).order(block);
        order.sort_unstable();
        prop_assert_eq!(order, (0..n).collect::<Vec<_>>());
    }

    #[test]
    fn adjusted_p_values_keep_their_order(p in prop::collection::vec(0.0_f64..=1.0, 1..40)) {
        let adjusted = benjamini_hochberg(&p).unwrap();
        for i in 0..p.len() {
            prop_assert!(adjusted[i] >= p[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }

    /// A wider margin never turns a smaller difference into a material one.
    #[test]
    fn a_wider_margin_makes_no_difference_material(d in coarse(6, 40), margin in 0.0_f64..1.0) {
        let ci95 = interval_at(&d, 0.95);
        let ci90 = interval_at(&d, 0.90);
        let is_material = |v| matches!(v, Verdict::MaterialCost | Verdict::MaterialGain);
        let (tight, loose) = (verdict(&ci95, &ci90, margin), verdict(&ci95, &ci90, 2.0 * margin));
        prop_assert!(is_material(tight) || !is_material(loose));
        prop_assert_eq!(tight.is_difference(), loose.is_difference());
    }
}

#[test]
fn closed_rows_never_let_an_arm_follow_itself() {
    for n in 2..9 {
        let mut orders = std::collections::BTreeSet::new();
        for seed in 0..40 {
            let rows = closed_rows(n, seed);
            let slices: Vec<usize> = rows.concat();
            let next = slices.iter().cycle().skip(1);
            assert!(
                slices.iter().zip(next).all(|(arm, next)| arm != next),
                "{n}: {rows:?}"
            );
            if n > 2 {
                // The rows are those of a square, so that neighbours within them are balanced.
                let (mut ours, mut square) = (rows.clone(), Vec::new());
                let orders = BlockOrders::new(n, seed);
                square.extend((0..orders.cycle_len()).map(|row| orders.order(row)));
                ours.sort();
                square.sort();
                assert_eq!(ours, square, "n = {n}");
            }
            orders.insert(rows);
        }
        assert!(orders.len() > 1, "n = {n}: the seed changes nothing");
    }
    assert_eq!(closed_rows(1, 7), [[0]]);
    assert!(closed_rows(0, 7).is_empty());
}

#[test]
fn neighbours_are_balanced_in_a_williams_square() {
    for n in 2..10 {
        let mut count = vec![vec![0; n]; n];
        for row in williams_rows(n) {
            for pair in row.windows(2) {
                count[pair[0]][pair[1]] += 1;
            }
        }
        let expected = if n % 2 == 0 { 1 } else { 2 };
        for (left, row) in count.iter().enumerate() {
            for (right, seen) in row.iter().enumerate() {
                assert_eq!(
                    *seen,
                    if left == right { 0 } else { expected },
                    "{left} then {right} of {n}"
                );
            }
        }
    }
}

#[test]
fn williams_rows_balance_order_of_every_arm_pair() {
    for n in 2..10 {
        let rows = williams_rows(n);
        for left in 0..n {
            for right in 0..left {
                let is_first = |row: &&Vec<usize>| {
                    let place = |arm| row.iter().position(|it| *it == arm);
                    place(left) < place(right)
                };
                let firsts = rows.iter().filter(is_first).count();
                assert_eq!(2 * firsts, rows.len(), "{left} and {right} of {n}");
            }
        }
    }
}

#[test]
fn every_cycle_of_blocks_uses_every_row_once() {
    for n in [2, 3, 4, 5] {
        let orders = BlockOrders::new(n, 42);
        let cycle = orders.cycle_len();
        let rows = |from: usize| {
            let mut rows: Vec<_> = (from..from + cycle)
                .map(|block| orders.order(block))
                .collect();
            rows.sort();
            rows
        };
        let mut distinct = rows(0);
        distinct.dedup();
        assert_eq!(distinct.len(), cycle);
        assert_eq!(rows(0), rows(7 * cycle));
    }
}

/// Every later version must draw stored plans identically: these numbers may not change. They were computed a second
/// time with NumPy's PCG64.
#[test]
fn streams_and_orders_are_value_stable() {
    let mut stream = Stream::new(42, 1, 2);
    let bits: Vec<u64> = (0..3).map(|_| stream.bits()).collect();
    assert_eq!(
        bits,
        [
            9_595_540_743_843_208_848,
            16_440_924_877_656_230_851,
            7_413_941_266_197_980_049
        ]
    );
    let below: Vec<usize> = (0..8).map(|_| stream.below(10)).collect();
    assert_eq!(below, [4, 4, 1, 2, 8, 9, 1, 0]);
    let orders = BlockOrders::new(4, 42);
    let first: Vec<Vec<usize>> = (0..5).map(|block| orders.order(block)).collect();
    assert_eq!(
        first,
        [
            [2, 3, 1, 0],
            [1, 2, 0, 3],
            [3, 0, 2, 1],
            [0, 1, 3, 2],
            [1, 2, 0, 3]
        ]
    );
    let mut letters: Vec<char> = "abcdefgh".chars().collect();
    Stream::new(42, 0x0073_6875_6666_6c65, 8).shuffle(&mut letters);
    assert_eq!(letters.iter().collect::<String>(), "ehfdgabc");
}

#[test]
fn bounded_numbers_are_even() {
    let mut stream = Stream::new(3, 0, 0);
    let mut count = [0_u32; 7];
    for _ in 0..70_000 {
        count[stream.below(7)] += 1;
    }
    // Five standard deviations of a binomial with p = 1/7.
    assert!(
        count.iter().all(|hits| hits.abs_diff(10_000) < 465),
        "{count:?}"
    );
}

#[test]
fn holm_steps_down() {
    assert_eq!(holm(&[0.04]), Some(vec![0.04]));
    assert_eq!(holm(&[0.03, 0.01, 0.04]), Some(vec![0.06, 0.03, 0.06]));
    assert_eq!(holm(&[0.9, 0.8]), Some(vec![1.0, 1.0]));
    assert_eq!((holm(&[]), holm(&[f64::NAN])), (Some(vec![]), None));
}
