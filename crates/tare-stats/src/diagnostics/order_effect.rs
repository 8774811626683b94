//! Tests whether a trial's position in its block affects the result.
//!
//! The effect d grouped by position; exact Mann–Whitney for two groups, Kruskal–Wallis 1952 with tie correction and
//! χ² for more.
//!
//! Carry-over from the previous trial (caches, heat) shows as a difference between orders. Balanced orders keep it
//! out of the estimate, but not out of its spread.
//!
//! Limits: does not see carry-over that is the same in every order.

use crate::interval::{all_finite, sorted};
use crate::mann_whitney::mann_whitney_p;
use crate::special::chi_squared_upper;

use super::trend::tie_sizes;

/// Returns the p-value of "`d` does not depend on `position`", one of each per block.
///
/// `None` if lengths differ, fewer than two positions occur, or a value is not finite. With a single block in a group
/// the test is valid but has almost no power.
pub fn order_effect(d: &[f64], position: &[usize]) -> Option<f64> {
    if d.len() != position.len() {
        return None;
    }
    let mut pairs: Vec<(usize, f64)> = position.iter().copied().zip(d.iter().copied()).collect();
    pairs.sort_by_key(|pair| pair.0);
    let groups: Vec<Vec<f64>> = pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|chunk| chunk.iter().map(|pair| pair.1).collect())
        .collect();
    match groups.as_slice() {
        [a, b] => mann_whitney_p(a, b),
        _ => kruskal_wallis(&groups).map(|(_, p)| p),
    }
}

/// Returns Kruskal–Wallis H, corrected for ties, and its χ² p-value with groups − 1 degrees of freedom. `None` below
/// two groups, if one is empty or not finite; (0, 1) if all values are equal.
pub fn kruskal_wallis(groups: &[Vec<f64>]) -> Option<(f64, f64)> {
    let unusable = |group: &Vec<f64>| group.is_empty() || !all_finite(group);
    if groups.len() < 2 || groups.iter().any(unusable) {
        return None;
    }
    let pooled = sorted(&groups.concat());
    let n = pooled.len() as f64;
    // The mean rank of all values equal to this one.
    let rank = |value: f64| {
        let below = pooled.partition_point(|other| *other < value);
        let through = pooled.partition_point(|other| *other <= value);
        (below + through + 1) as f64 / 2.0
    };
    let ties: f64 = tie_sizes(&pooled)
        .into_iter()
        .map(|t| (t as f64).powi(3) - t as f64)
        .sum();
    let correction = 1.0 - ties / (n.powi(3) - n);
    if correction <= 0.0 {
        return Some((0.0, 1.0));
    }
    let centre = f64::midpoint(n, 1.0);
    let between: f64 = groups
        .iter()
        .map(|group| {
            let size = group.len() as f64;
            let mean_rank = group.iter().map(|value| rank(*value)).sum::<f64>() / size;
            size * (mean_rank - centre).powi(2)
        })
        .sum();
    let h = 12.0 / (n * (n + 1.0)) * between / correction;
    Some((h, chi_squared_upper(h, (groups.len() - 1) as f64)))
}
