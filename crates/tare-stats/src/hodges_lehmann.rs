//! The Hodges–Lehmann estimate (the median of all pairwise means) with its exact interval.
//!
//! For paired d, the median of the Walsh averages (d_i + d_j)/2, i ≤ j, with the interval between the k-th smallest
//! and the k-th largest of them, k from the signed-rank distribution. Source: Hodges & Lehmann 1963; interval after
//! Tukey and Walsh, see Hollander, Wolfe & Chicken, ch. 3 and 4.
//!
//! The default because it needs no random numbers and no normality, and one outlier moves it little. Over 32
//! simulated settings its nominal 95 % interval never covered less than 93.8 %; t and bootstraps of the mean fell
//! below 50 %.
//!
//! Limits: not the mean. With a heavy tail on one side, the mean overhead (the one on a bill) differs from this
//! typical overhead; see [`crate::mean`].

use crate::interval::{Estimate, Interval, Undetermined, at_each, check, sorted};
use crate::selection::{Ranks, means_around, middle};
use crate::signed_rank::{SignedRank, fewest_blocks};

/// Up to this many values, all Walsh averages are listed and sorted, which is faster and gives the same result.
const LIST_UP_TO: usize = 32;

/// Estimates the centre of paired differences with the exact signed-rank interval.
///
/// Pass `ln y_env − ln y_base` per block for a ratio (then [`Interval::exp`]), or raw differences for an absolute
/// overhead. Assumes that blocks are independent and d is symmetric about its centre; zeros are kept, ties make the
/// interval conservative. Needs n ≥ 6 at 95 % and n ≥ 5 at 90 %, else [`Undetermined::TooFew`]. If all values are
/// equal, the width is zero: the clock is too coarse to see the noise, not a sign of certainty. O(n log n), plus a
/// dozen sweeps over the values.
pub fn hodges_lehmann_paired(d: &[f64], level: f64) -> Result<Estimate, Undetermined> {
    hodges_lehmann_at(d, [level]).map(|[found]| found)
}

/// Same as [`hodges_lehmann_paired`] at several levels, sharing the common work.
pub fn hodges_lehmann_at<const N: usize>(
    d: &[f64],
    levels: [f64; N],
) -> Result<[Estimate; N], Undetermined> {
    for level in levels {
        check(&[d], level)?;
    }
    let (null, d) = (SignedRank::new(d.len()), sorted(d));
    with_pairs(&d, |nth| {
        at_each(levels, |level| at_level(&null, d.len(), level, nth))
    })
}

/// Calls `take` with a function that returns the Walsh average of a given rank. `d` is sorted.
pub(crate) fn with_pairs<T>(
    d: &[f64],
    take: impl FnOnce(&mut dyn FnMut(usize) -> f64) -> Result<T, Undetermined>,
) -> Result<T, Undetermined> {
    let count = d.len() * (d.len() + 1) / 2;
    if d.len() <= LIST_UP_TO {
        let mut walsh = Vec::with_capacity(count);
        for (i, &left) in d.iter().enumerate() {
            walsh.extend(d[i..].iter().map(|&right| f64::midpoint(left, right)));
        }
        walsh.sort_unstable_by(f64::total_cmp);
        return take(&mut |rank| walsh[rank - 1] + 0.0);
    }
    let ends = (d[0], d[d.len() - 1]);
    let mut ranks = Ranks::new(count, ends, |value| means_around(d, value));
    take(&mut |rank| ranks.nth(rank))
}

fn at_level(
    null: &SignedRank,
    n: usize,
    level: f64,
    nth: &mut dyn FnMut(usize) -> f64,
) -> Result<Estimate, Undetermined> {
    let alpha = 1.0 - level;
    let Some((k, coverage)) = null.interval_rank(alpha) else {
        return Err(Undetermined::TooFew {
            n,
            needed: fewest_blocks(alpha),
        });
    };
    let count = null.largest();
    Ok(Estimate {
        interval: Interval {
            point: middle(count, nth),
            low: nth(k),
            high: nth(count + 1 - k),
            level,
        },
        n,
        coverage,
    })
}

#[cfg(test)]
mod tests {
    use super::hodges_lehmann_paired;
    use crate::interval::sorted;
    use crate::random::Stream;
    use crate::signed_rank::SignedRank;

    #[test]
    #[allow(clippy::float_cmp, reason = "both find the same of the same numbers")]
    fn selection_and_sorting_give_the_same_bits() {
        let mut stream = Stream::new(7, 0, 0);
        for n in [6, 31, 32, 33, 50, 121] {
            // Rounded, so that ties and zeros occur.
            let d: Vec<f64> = (0..n)
                .map(|_| (stream.normal() * 20.0).round() / 16.0)
                .collect();
            let mut walsh = Vec::new();
            for i in 0..n {
                walsh.extend((i..n).map(|j| f64::midpoint(d[i], d[j])));
            }
            let walsh = sorted(&walsh);
            let (k, _) = SignedRank::new(n)
                .interval_rank(0.05)
                .expect("six are enough");
            let ours = hodges_lehmann_paired(&d, 0.95)
                .expect("six are enough")
                .interval;
            assert_eq!(ours.low, walsh[k - 1], "n = {n}");
            assert_eq!(ours.high, walsh[walsh.len() - k], "n = {n}");
            assert_eq!(
                ours.point,
                crate::median(&walsh).expect("not empty"),
                "n = {n}"
            );
        }
    }
}
