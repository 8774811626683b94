//! Bootstrap intervals over blocks, for statistics without an exact interval.
//!
//! Draws blocks with replacement and recomputes the statistic; the interval is the percentile interval or
//! bias-corrected and accelerated (BCa; Efron 1987).
//!
//! Resampling block *indices* keeps iterations, requests and arms of a block together; no other resampling respects
//! the design.
//!
//! Limits: in simulation, ten blocks at nominal 95 % covered 90 % for a mean of normal values and 40 % with rare
//! spikes. So the level is nominal, the interval never decides a verdict, and fewer than ten blocks are refused.

use crate::interval::{Interval, Undetermined, check, mean};
use crate::quantile::quantile_of_sorted;
use crate::random::Stream;
use crate::special::{normal_cdf, normal_quantile};

const RESAMPLE: u64 = 0x7265_7361_6d70_6c65;
/// The minimum number of blocks.
pub const FEWEST_BLOCKS: usize = 10;
/// The number of draws for published intervals.
pub const DRAWS: usize = 9_999;

/// How the bounds are taken from the resampled statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BootstrapMethod {
    /// Quantiles of the resampled statistics.
    Percentile,
    /// Quantiles corrected for bias and for spread that changes with the value.
    Bca,
}

/// Computes an interval for `statistic` of `n_blocks` blocks, each given by its index.
///
/// The point is the statistic of all blocks. The same seed gives the same interval. For BCa, resampled values equal
/// to the point count half.
///
/// [`Undetermined::TooFew`] below ten blocks; `NotFinite` if the statistic of any resample is not finite;
/// `OutOfDomain` if `draws` is 0 or, for BCa, if the point is outside all resampled values.
pub fn block_bootstrap(
    n_blocks: usize,
    statistic: impl Fn(&[usize]) -> f64,
    method: BootstrapMethod,
    level: f64,
    draws: usize,
    seed: u64,
) -> Result<Interval, Undetermined> {
    check(&[], level)?;
    if n_blocks < FEWEST_BLOCKS {
        return Err(Undetermined::TooFew {
            n: n_blocks,
            needed: FEWEST_BLOCKS,
        });
    }
    if draws == 0 {
        return Err(Undetermined::OutOfDomain {
            must: "there must be draws",
        });
    }
    let all: Vec<usize> = (0..n_blocks).collect();
    let point = statistic(&all);
    let mut stream = Stream::new(seed, RESAMPLE, n_blocks as u64);
    let mut index = all.clone();
    let mut resampled = Vec::with_capacity(draws);
    for _ in 0..draws {
        for slot in &mut index {
            *slot = stream.below(n_blocks);
        }
        resampled.push(statistic(&index));
    }
    check(&[&resampled, &[point]], level)?;
    resampled.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    let (low, high) = match method {
        BootstrapMethod::Percentile => (tail, 1.0 - tail),
        BootstrapMethod::Bca => {
            let acceleration = acceleration(&all, &statistic)?;
            corrected(&resampled, point, acceleration, tail)?
        }
    };
    let bound = |p| quantile_of_sorted(&resampled, p);
    Ok(Interval {
        point,
        low: bound(low),
        high: bound(high),
        level,
    })
}

/// Returns the skewness of the leave-one-out values: Σ(θ̄ − θ_i)³ / (6 (Σ(θ̄ − θ_i)²)^{3/2}).
fn acceleration(all: &[usize], statistic: &impl Fn(&[usize]) -> f64) -> Result<f64, Undetermined> {
    let values: Vec<f64> = (0..all.len())
        .map(|left_out| {
            let mut rest = all.to_vec();
            rest.remove(left_out);
            statistic(&rest)
        })
        .collect();
    check(&[&values], 0.5)?;
    let centre = mean(&values);
    let squares: f64 = values.iter().map(|value| (centre - value).powi(2)).sum();
    let cubes: f64 = values.iter().map(|value| (centre - value).powi(3)).sum();
    Ok(if squares > 0.0 {
        cubes / (6.0 * squares.powf(1.5))
    } else {
        0.0
    })
}

/// Returns Φ(z₀ + (z₀ + z)/(1 − a(z₀ + z))) for both tails.
fn corrected(resampled: &[f64], point: f64, a: f64, tail: f64) -> Result<(f64, f64), Undetermined> {
    let below = resampled.partition_point(|value| *value < point);
    let through = resampled.partition_point(|value| *value <= point);
    let share = f64::midpoint(below as f64, through as f64) / resampled.len() as f64;
    if share <= 0.0 || share >= 1.0 {
        return Err(Undetermined::OutOfDomain {
            must: "the point must lie among the resampled values",
        });
    }
    let bias = normal_quantile(share);
    let adjust = |p: f64| {
        let z = bias + normal_quantile(p);
        normal_cdf(bias + z / (1.0 - a * z))
    };
    Ok((adjust(tail), adjust(1.0 - tail)))
}
