//! Tests the clustered signed rank: against an independent computation, and with three equal arms on each side
//! separately.
//!
//! Why each side: an interval that errs only downwards covers 95 % and still calls equal arms faster twice as often
//! as promised. The check must also detect today's alternative, the mean of both copies.
//!
//! Limits: noise within one block; the diagnostics cover dependence between blocks.

mod common;

use common::{assert_close, fixture, numbers};
use proptest::prelude::*;
use serde_json::Value;
use tare_stats::{
    Differences, Stream, clustered, clustered_at, clustered_p, clustered_tails,
    hodges_lehmann_paired, signed_rank_p,
};

const TIGHT: f64 = 1e-9;

fn blocks(case: &Value) -> Vec<Differences> {
    let (u, v) = (numbers(&case["u"]), numbers(&case["v"]));
    u.into_iter()
        .zip(v)
        .map(|(u, v)| Differences::two(u, v))
        .collect()
}

#[test]
fn clustered_values_agree_with_the_fixture() {
    let all: Value = serde_json::from_str(&fixture("clustered.json")).expect("JSON");
    let cases = all["cases"].as_array().expect("cases");
    assert!(cases.len() >= 6);
    for case in cases {
        let (name, d) = (case["name"].as_str().expect("a name"), blocks(case));
        let [at95, at90] = clustered_at(&d, [0.95, 0.90]).expect("six blocks");
        assert_close(at95.interval.point, &case["estimate"], TIGHT, name);
        for (ours, theirs) in [
            (at95.interval.low, "low"),
            (at95.interval.high, "high"),
            (at90.interval.low, "low90"),
            (at90.interval.high, "high90"),
        ] {
            assert_close(ours, &case[theirs], TIGHT, &format!("{name}, {theirs}"));
        }
        let [greater, less] = clustered_tails(&d, 0.0).expect("finite");
        if name == "by hand" {
            // Magnitudes tie there, which counts on both sides.
            let p = case["p"].as_f64().expect("a number");
            let ours = clustered_p(&d).expect("finite");
            assert!(p <= ours && ours < 2.0 * p, "{ours} and {p}");
        } else {
            assert_close(greater, &case["greater"], TIGHT, name);
            assert_close(less, &case["less"], TIGHT, name);
            assert_close(clustered_p(&d).expect("finite"), &case["p"], TIGHT, name);
        }
    }
}

#[test]
fn clustered_rejects_insufficient_or_nan_blocks() {
    let five = [Differences::two(1.0, 2.0); 5];
    assert!(clustered(&five, 0.95).is_err() && clustered(&five, 0.90).is_ok());
    let six = [Differences::two(1.0, f64::NAN); 6];
    assert!(clustered(&six, 0.95).is_err() && clustered_p(&six).is_none());
    assert!(clustered(&[], 0.95).is_err() && clustered_tails(&[], 0.0).is_none());
    // Counts that never differ: no width, and no alarm.
    let equal = [Differences::two(0.0, 0.0); 12];
    let found = clustered(&equal, 0.95).expect("twelve blocks").interval;
    assert_eq!((found.low, found.point, found.high), (0.0, 0.0, 0.0));
    assert_eq!(clustered_p(&equal), Some(1.0));
}

fn of_two(n: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Differences>> {
    let value = || (-64_i32..64).prop_map(|value| f64::from(value) / 8.0);
    let block = (value(), proptest::option::weighted(0.8, value()));
    let block = block.prop_map(|(first, second)| Differences { first, second });
    proptest::collection::vec(block, n)
}

proptest! {
    #[test]
    fn exchanged_arms_mirror_the_clustered_interval(d in of_two(6..60)) {
        let mirrored: Vec<_> = d.iter().map(|block| block.map(|value| -value)).collect();
        let (before, after) = (clustered(&d, 0.95).unwrap().interval, clustered(&mirrored, 0.95).unwrap().interval);
        prop_assert_eq!((after.low, after.point, after.high), (-before.high, -before.point, -before.low));
        prop_assert_eq!(clustered_p(&d), clustered_p(&mirrored));
        prop_assert!(before.contains(before.point));
    }

    #[test]
    fn one_difference_a_block_is_the_signed_rank(d in proptest::collection::vec(-4_000_i32..4_000, 6..60)) {
        let values: Vec<f64> = d.iter().map(|value| f64::from(*value) / 8.0).collect();
        let ones: Vec<_> = values.iter().map(|value| Differences::one(*value)).collect();
        prop_assert_eq!(clustered(&ones, 0.95), hodges_lehmann_paired(&values, 0.95));
        prop_assert_eq!(clustered_p(&ones), signed_rank_p(&values));
        // The general computation gives the same if no magnitudes tie.
        let mut magnitudes: Vec<i32> = d.iter().map(|value| value.abs()).collect();
        magnitudes.sort_unstable();
        prop_assume!(magnitudes[0] > 0 && magnitudes.windows(2).all(|two| two[0] < two[1]));
        let [greater, less] = clustered_tails(&ones, 0.0).unwrap();
        let p = (2.0 * greater.min(less)).min(1.0);
        let off = (p - signed_rank_p(&values).unwrap()).abs();
        prop_assert!(off < if values.len() > 40 { 1e-4 } else { 1e-9 }, "{}", off);
    }

    #[test]
    fn a_shift_moves_the_clustered_interval(d in of_two(6..60), shift in -32_i32..32) {
        let by = f64::from(shift) / 8.0;
        let moved: Vec<_> = d.iter().map(|block| block.map(|value| value + by)).collect();
        let (before, after) = (clustered(&d, 0.95).unwrap().interval, clustered(&moved, 0.95).unwrap().interval);
        prop_assert_eq!((after.low, after.point, after.high), (before.low + by, before.point + by, before.high + by));
    }
}

/// The noise of one reading on the log scale.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Normal,
    Delays(f64),
    SlowLaunches(f64),
    Spikes,
    /// Spikes upwards as often as downwards.
    EvenSpikes,
}

impl Noise {
    fn draw(self, stream: &mut Stream) -> f64 {
        let (usual, chance) = (stream.normal(), stream.unit());
        let spike = |stream: &mut Stream| 0.02 * ((1.0 - stream.unit()).powf(-1.0 / 1.5) - 1.0);
        match self {
            Self::Normal => 0.01 * usual,
            Self::Delays(sigma) => (0.03 * (sigma * usual).exp()).ln_1p(),
            Self::SlowLaunches(share) => 0.005 * usual + if chance < share { 0.1 } else { 0.0 },
            Self::Spikes if chance < 0.1 => 0.005 * usual + spike(stream),
            Self::EvenSpikes if chance < 0.1 => {
                let spike = spike(stream);
                0.005 * usual + if stream.below(2) == 0 { spike } else { -spike }
            }
            Self::Spikes | Self::EvenSpikes => 0.005 * usual,
        }
    }
}

/// Returns the fractions of 95 % intervals that call an arm slower and faster, although it equals both copies and
/// only its noise is `scale` times as large. `judge` gives both one-sided p-values.
fn alarms(
    noise: Noise,
    scale: f64,
    n: usize,
    judge: impl Fn(&[Differences]) -> [f64; 2],
) -> [f64; 2] {
    const REPETITIONS: u32 = 3_000;
    let mut stream = Stream::new(11, 0, 0);
    let mut count = [0_u32; 2];
    for _ in 0..REPETITIONS {
        let block = |_| {
            let arm = scale * noise.draw(&mut stream);
            let copies = [noise.draw(&mut stream), noise.draw(&mut stream)];
            Differences::two(arm - copies[0], arm - copies[1])
        };
        let d: Vec<_> = (0..n).map(block).collect();
        for (count, p) in count.iter_mut().zip(judge(&d)) {
            *count += u32::from(p <= 0.025);
        }
    }
    count.map(|count| f64::from(count) / f64::from(REPETITIONS))
}

/// The error rate allowed on each side.
fn allowed(n: usize) -> f64 {
    if n < 20 { 0.05 } else { 0.035 }
}

#[test]
fn three_equal_arms_alarm_on_neither_side() {
    let alike = [
        Noise::Normal,
        Noise::Delays(1.0),
        Noise::Delays(1.5),
        Noise::SlowLaunches(0.1),
        Noise::SlowLaunches(0.33),
        Noise::Spikes,
    ];
    // One-sided noise of another size in the arm is an effect, not noise.
    let even = [Noise::Normal, Noise::EvenSpikes];
    let all = alike
        .map(|noise| (noise, 1.0))
        .into_iter()
        .chain(even.map(|noise| (noise, 4.0)));
    let mut wrong = Vec::new();
    for (noise, scale) in all {
        for n in [8, 10, 20, 40] {
            let sides = alarms(noise, scale, n, |d| {
                clustered_tails(d, 0.0).expect("finite")
            });
            if sides.iter().any(|share| *share > allowed(n)) {
                wrong.push(format!("{noise:?} × {scale}, n = {n}: {sides:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn mean_of_two_copies_fails_false_alarm_check() {
    for n in [20, 40] {
        let [slower, faster] = alarms(Noise::Delays(1.5), 1.0, n, |d| {
            let means: Vec<_> = d
                .iter()
                .map(|block| Differences::one(block.mean()))
                .collect();
            clustered_tails(&means, 0.0).expect("finite")
        });
        assert!(
            faster > allowed(n) && slower < 0.02,
            "n = {n}: {slower} and {faster}"
        );
    }
}
