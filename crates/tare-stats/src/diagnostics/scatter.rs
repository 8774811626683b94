//! Tests whether the differences of one comparison vary more from block to block than those of another.
//!
//! The distances of both from their medians, each in units of its standard deviation under noise alone, compared by
//! ranks (Mann & Whitney 1947 on distances, after Levene 1960 and Fligner & Killeen 1976), and the ratio of the
//! median distances.
//!
//! An interval that is wide because the machine is noisy becomes narrow on a quiet one; an interval that is wide
//! because the effect changes from block to block does not. The A/A control in the same blocks tells which it is.
//!
//! Limits: if the trials of one side are noisier than the others, that is reported as a moving effect.

use crate::mann_whitney::mann_whitney_p;
use crate::quantile::median;

/// The relative scatter of two comparisons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scatter {
    /// Median distance of the first over that of the second, in units of their noise.
    pub ratio: f64,
    /// The two-sided p-value of equal scatter.
    pub p: f64,
}

/// Compares the scatter of `d` with that of `of_copies`; `noise` holds the standard deviations of both if only equal
/// noise of single trials moves them. `None` with fewer than two values on a side, for values that are not finite,
/// and if half of the second are equal.
pub fn scatter(d: &[f64], of_copies: &[f64], noise: [f64; 2]) -> Option<Scatter> {
    let distances = |values: &[f64], unit: f64| -> Option<Vec<f64>> {
        let middle = median(values).filter(|middle| middle.is_finite())?;
        let distance = |value: &f64| (value - middle).abs() / unit;
        (values.len() > 1).then(|| values.iter().map(distance).collect())
    };
    let (one, other) = (distances(d, noise[0])?, distances(of_copies, noise[1])?);
    let below = median(&other).filter(|middle| *middle > 0.0)?;
    Some(Scatter {
        ratio: median(&one)? / below,
        p: mann_whitney_p(&one, &other)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::FLAG_P;
    use crate::random::Stream;

    /// Counts how many of 500 cells of `n` blocks are flagged as moving. The effect has the standard deviation
    /// `moves`, noise has 1, and a tenth of the trials takes `spikes` longer.
    fn alarms(n: usize, moves: f64, spikes: f64) -> usize {
        let found = (0..500).filter(|seed| {
            let mut random = Stream::new(*seed, n as u64, 11);
            let mut trial = || random.normal() + if random.unit() < 0.1 { spikes } else { 0.0 };
            let blocks: Vec<[f64; 3]> = (0..n).map(|_| [trial(), trial(), trial()]).collect();
            let d: Vec<f64> = blocks
                .iter()
                .map(|[host, copy, arm]| {
                    arm + moves * random.normal() - f64::midpoint(*host, *copy)
                })
                .collect();
            let copies: Vec<f64> = blocks.iter().map(|[host, copy, _]| copy - host).collect();
            let found = scatter(&d, &copies, [1.5_f64.sqrt(), 2.0_f64.sqrt()]).unwrap();
            found.p < FLAG_P && found.ratio > 2.0
        });
        found.count()
    }

    #[test]
    fn scatter_separates_moving_effect_from_noise() {
        for n in [6, 8, 12, 20, 40] {
            for spikes in [0.0, 5.0] {
                let noise = alarms(n, 0.0, spikes);
                assert!(noise <= 8, "{n} blocks, spikes of {spikes}: {noise}");
            }
        }
        for (n, moves, least) in [(12, 10.0, 375), (20, 5.0, 400), (20, 10.0, 480)] {
            let moving = alarms(n, moves, 0.0);
            assert!(moving > least, "{n} blocks, {moves}: {moving}");
        }
    }

    #[test]
    #[allow(clippy::float_cmp, reason = "a number by itself")]
    fn scatter_without_reference_raises_no_alarm() {
        let d = [0.0, 1.0, -1.0, 2.0];
        assert_eq!(scatter(&d, &[0.0; 4], [1.0; 2]), None);
        assert_eq!(scatter(&d, &[1.0], [1.0; 2]), None);
        assert_eq!(scatter(&[f64::NAN, 1.0], &d, [1.0; 2]), None);
        let same = scatter(&d, &d, [1.0; 2]).unwrap();
        assert_eq!(same.ratio, 1.0);
        assert!(same.p > 0.9);
    }
}
