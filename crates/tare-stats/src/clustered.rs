//! Signed-rank estimate, interval and test for blocks with two differences each: arm against baseline and arm against
//! A/A control.
//!
//! The differences u = ln(arm/host) and v = ln(arm/A′) of a block are not averaged. The estimate is the median of all
//! values and of the Walsh averages over *different* blocks. The test ranks |u − θ| and |v − θ| together, sums the
//! signed ranks of each block and flips the sign of each sum; the interval contains the θ that it does not reject.
//! Source: Rosner, Glynn & Lee, Biometrics 62, 2006.
//!
//! The mean of u and v is skewed if noise is one-sided, as it usually is. Three equal arms then look faster in 4–10 %
//! of intervals and slower in 0–1 %. Each difference alone is symmetric about the effect.
//!
//! The test does not change between two neighbouring Walsh averages of all values, so the ends are Walsh averages.
//! Ties count on both sides of θ and so can only make p larger. With one difference per block, everything equals
//! [`hodges_lehmann_at`].
//!
//! Limits: the null distribution depends on |S_b|, which changes with θ, so p and the interval can disagree slightly
//! at an end.

use crate::hodges_lehmann::{hodges_lehmann_at, with_pairs};
use crate::interval::{Estimate, Interval, Undetermined, at_each, check, enough, sorted};
use crate::lattice::lattice_cdf;
use crate::quantile::median_in_place;
use crate::selection::{Ranks, means_around, middle};
use crate::signed_rank::{ROUNDING, coin_cumulants, fewest_blocks, signed_rank_p};

/// Up to this number of blocks, tails are counted exactly; above it, the Edgeworth series errs by less than one step.
const EXACT_UP_TO: usize = 40;
/// Up to this number of values, the Walsh averages are listed.
const LIST_UP_TO: usize = 32;

/// The differences of one block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Differences {
    /// Against the baseline.
    pub first: f64,
    /// Against the A/A control, if it ran.
    pub second: Option<f64>,
}

impl Differences {
    /// Creates the differences of a block without an A/A control.
    pub const fn one(first: f64) -> Self {
        Self {
            first,
            second: None,
        }
    }

    /// Creates the differences of a block with an A/A control.
    pub const fn two(first: f64, second: f64) -> Self {
        Self {
            first,
            second: Some(second),
        }
    }

    /// Iterates over the one or two values.
    pub fn values(self) -> impl Iterator<Item = f64> {
        [Some(self.first), self.second].into_iter().flatten()
    }

    /// Returns the mean of both, for uses that need one number per block. Not for intervals.
    pub fn mean(self) -> f64 {
        self.second
            .map_or(self.first, |second| f64::midpoint(self.first, second))
    }

    /// Combines both with `of`, first with first and second with second; a missing second is replaced by the first.
    #[must_use]
    pub fn with(self, other: Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let second = match (self.second, other.second) {
            (None, None) => None,
            (one, two) => Some(of(one.unwrap_or(self.first), two.unwrap_or(other.first))),
        };
        Self {
            first: of(self.first, other.first),
            second,
        }
    }

    /// Applies `to` to each value.
    #[must_use]
    pub fn map(self, to: impl Fn(f64) -> f64) -> Self {
        Self {
            first: to(self.first),
            second: self.second.map(to),
        }
    }
}

/// Estimates the centre of the differences with its interval; blocks are the unit.
///
/// Needs six blocks at 95 % and five at 90 %, else [`Undetermined::TooFew`].
pub fn clustered(blocks: &[Differences], level: f64) -> Result<Estimate, Undetermined> {
    clustered_at(blocks, [level]).map(|[found]| found)
}

/// Same as [`clustered`] at several levels.
pub fn clustered_at<const N: usize>(
    blocks: &[Differences],
    levels: [f64; N],
) -> Result<[Estimate; N], Undetermined> {
    let Some(sample) = Sample::new(blocks) else {
        return hodges_lehmann_at(&firsts(blocks), levels);
    };
    for level in levels {
        check(&[&sample.values], level)?;
    }
    let point = sample.centre();
    with_pairs(&sample.values, |nth| {
        at_each(levels, |level| sample.at_level(point, level, nth))
    })
}

/// Returns the one-sided p-values of "the centre is at most `theta`" and "at least `theta`"; `None` for no blocks or
/// values that are not finite.
pub fn clustered_tails(blocks: &[Differences], theta: f64) -> Option<[f64; 2]> {
    let finite = |block: &Differences| block.values().all(f64::is_finite);
    if blocks.is_empty() || !blocks.iter().all(finite) {
        return None;
    }
    let sample = Sample::sorted(blocks);
    Some(sample.tails(theta))
}

/// Returns the two-sided p-value of "the differences are symmetric about zero".
pub fn clustered_p(blocks: &[Differences]) -> Option<f64> {
    if blocks.iter().all(|block| block.second.is_none()) {
        return signed_rank_p(&firsts(blocks));
    }
    let [greater, less] = clustered_tails(blocks, 0.0)?;
    Some((2.0 * greater.min(less)).min(1.0))
}

fn firsts(blocks: &[Differences]) -> Vec<f64> {
    blocks.iter().map(|block| block.first).collect()
}

/// The side of a Walsh average on which the test is evaluated.
#[derive(Clone, Copy)]
enum Side {
    Above,
    Below,
}

/// All values, sorted, and the block of each.
struct Sample {
    values: Vec<f64>,
    blocks: Vec<usize>,
    n_blocks: usize,
    /// The Walsh averages of two values of one block, sorted.
    within: Vec<f64>,
}

impl Sample {
    /// Returns `None` if no block has two differences.
    fn new(blocks: &[Differences]) -> Option<Self> {
        let has_two = blocks.iter().any(|block| block.second.is_some());
        has_two.then(|| Self::sorted(blocks))
    }

    fn sorted(blocks: &[Differences]) -> Self {
        let places = blocks.iter().enumerate();
        let mut all: Vec<(f64, usize)> = places
            .flat_map(|(place, block)| block.values().map(move |value| (value, place)))
            .collect();
        all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let within: Vec<f64> = blocks
            .iter()
            .filter_map(|block| Some(f64::midpoint(block.first, block.second?)))
            .collect();
        let (values, of) = all.into_iter().unzip();
        Self {
            values,
            blocks: of,
            n_blocks: blocks.len(),
            within: sorted(&within),
        }
    }

    /// Returns the median of the values and of the Walsh averages over different blocks.
    fn centre(&self) -> f64 {
        let (d, m) = (&self.values, self.values.len());
        if m <= LIST_UP_TO {
            let mut walsh = d.clone();
            for i in 0..m {
                let others = (i + 1..m).filter(|j| self.blocks[i] != self.blocks[*j]);
                walsh.extend(others.map(|j| f64::midpoint(d[i], d[j])));
            }
            return median_in_place(&mut walsh).map_or(f64::NAN, |median| median + 0.0);
        }
        let count = m * (m + 1) / 2 - self.within.len();
        let mut ranks = Ranks::new(count, (d[0], d[m - 1]), |value| {
            let mut sweep = means_around(d, value);
            sweep.count -= self.within.partition_point(|mean| *mean <= value);
            sweep
        });
        middle(count, &mut |rank| ranks.nth(rank))
    }

    /// Finds the interval by bisecting the ranks of the Walsh averages.
    fn at_level(
        &self,
        point: f64,
        level: f64,
        nth: &mut dyn FnMut(usize) -> f64,
    ) -> Result<Estimate, Undetermined> {
        let alpha = 1.0 - level;
        enough(self.n_blocks, fewest_blocks(alpha))?;
        let limit = alpha / 2.0 * (1.0 + ROUNDING);
        let (low, below) = self.end(limit, Side::Above, nth);
        let (high, above) = self.end(limit, Side::Below, nth);
        Ok(Estimate {
            interval: Interval::new(low.min(point), point, high.max(point), level),
            n: self.n_blocks,
            coverage: 1.0 - below - above,
        })
    }

    /// Returns the outermost Walsh average that the test does not reject on its inner side, and the tail outside it.
    /// `Side::Above` searches for the lower end, `Side::Below` for the upper one.
    fn end(&self, limit: f64, side: Side, nth: &mut dyn FnMut(usize) -> f64) -> (f64, f64) {
        let count = self.values.len() * (self.values.len() + 1) / 2;
        let mut inwards = |rank: usize| match side {
            Side::Above => nth(rank),
            Side::Below => nth(count + 1 - rank),
        };
        // Outside all values on this end, all signs agree and the test rejects; outside them on the other end it does
        // not.
        let (mut rejected, mut accepted) = (0, count);
        let mut outside = 0.5_f64.powi(i32::try_from(self.n_blocks).unwrap_or(i32::MAX));
        while accepted - rejected > 1 {
            let rank = rejected + (accepted - rejected) / 2;
            let p = tails_of(&self.sums(inwards(rank), side))[side as usize];
            if p <= limit {
                (rejected, outside) = (rank, p);
            } else {
                accepted = rank;
            }
        }
        (inwards(accepted), outside)
    }

    /// Returns P(T ≥ t) and P(T ≤ t) at `theta`; if `theta` is a Walsh average, the larger of its two sides.
    fn tails(&self, theta: f64) -> [f64; 2] {
        let (below, above) = (self.sums(theta, Side::Below), self.sums(theta, Side::Above));
        if below == above {
            return tails_of(&below);
        }
        let (below, above) = (tails_of(&below), tails_of(&above));
        [below[0].max(above[0]), below[1].max(above[1])]
    }

    /// Returns the sum of the signed ranks of each block, doubled if ties make half ranks.
    fn sums(&self, theta: f64, side: Side) -> Vec<isize> {
        let d = &self.values;
        // A value equal to θ is negative just above θ and positive just below.
        let split = match side {
            Side::Above => d.partition_point(|value| *value <= theta),
            Side::Below => d.partition_point(|value| *value < theta),
        };
        let (mut left, mut right, mut rank) = (split, split, 0_isize);
        let mut sums = vec![0_isize; self.n_blocks];
        while left > 0 || right < d.len() {
            let positive = left == 0
                || right < d.len()
                    && match side {
                        Side::Above => f64::midpoint(d[left - 1], d[right]) <= theta,
                        Side::Below => f64::midpoint(d[left - 1], d[right]) < theta,
                    };
            let (run, sign) = if positive {
                let value = d[right];
                let start = right;
                while right < d.len() && d[right] <= value {
                    right += 1;
                }
                (start..right, 1)
            } else {
                let (value, end) = (d[left - 1], left);
                while left > 0 && d[left - 1] >= value {
                    left -= 1;
                }
                (left..end, -1)
            };
            let ties = isize::try_from(run.len()).unwrap_or(isize::MAX);
            // Twice the average of the ranks rank + 1 to rank + ties.
            let doubled = 2 * rank + ties + 1;
            for place in run {
                sums[self.blocks[place]] += sign * doubled;
            }
            rank += ties;
        }
        if sums.iter().all(|sum| sum % 2 == 0) {
            for sum in &mut sums {
                *sum /= 2;
            }
        }
        sums
    }
}

/// Returns P(T ≥ t) and P(T ≤ t), where t is the total of these sums and the sign of each is a fair coin.
fn tails_of(sums: &[isize]) -> [f64; 2] {
    let heights = || sums.iter().map(|sum| sum.unsigned_abs());
    let most: usize = heights().sum();
    // T = 2W − most, where W is the sum of the coins that show heads.
    let heads: usize = sums.iter().map(|sum| sum.max(&0).unsigned_abs()).sum();
    let w = heads.min(most - heads);
    let (tail, other) = if most == 0 {
        (1.0, 1.0)
    } else if sums.len() > EXACT_UP_TO {
        let series = |w: f64| lattice_cdf(w, most as f64 / 2.0, coin_cumulants(heights()));
        (series(w as f64), 1.0 - series(w as f64 - 1.0))
    } else {
        let (tail, at_it) = counted(heights(), w);
        (tail, (1.0 - tail + at_it).min(1.0))
    };
    if heads > most - heads {
        [tail, other]
    } else {
        [other, tail]
    }
}

/// Returns P(W ≤ w) and P(W = w) for W = Σ h·B with fair coins B, adding one coin at a time.
fn counted(heights: impl Iterator<Item = usize>, w: usize) -> (f64, f64) {
    let mut p = vec![0.0; w + 1];
    p[0] = 1.0;
    let (mut scale, mut reached) = (1.0, 0);
    for height in heights.filter(|height| *height > 0) {
        scale *= 0.5;
        if height > w {
            continue;
        }
        reached = (reached + height).min(w);
        for sum in (height..=reached).rev() {
            p[sum] += p[sum - height];
        }
    }
    (p.iter().sum::<f64>() * scale, p[w] * scale)
}
