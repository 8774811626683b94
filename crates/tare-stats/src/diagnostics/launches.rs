//! Tests whether blocks of the same launch resemble each other.
//!
//! One-way analysis of variance of the ranks of d by launch. If launches differ by more than their blocks explain,
//! the variance of the mean is that between launches over their number of blocks, with one degree of freedom less
//! than there are launches. The interval is stretched by the square root of the ratio to the variance of independent
//! blocks, and by the ratio of the two t quantiles (Kish 1965; Satterthwaite 1946 for the minimum degrees of
//! freedom). Two launches count as three, the third differing no more than single blocks do: a moderated variance
//! (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004).
//!
//! Effects that differ from launch to launch (page placement, processor) are missing from an interval over blocks of
//! one launch, so a repeat tomorrow would fall outside it. Ranks, because a single distant block would otherwise look
//! like a launch effect.
//!
//! Limits: one launch shows nothing, and two show little: the interval then covers 83 to 91 % if launches differ. The
//! unmoderated variance of two would stretch it up to twentyfold, four times as much, and cover no more than 92 %.

use std::collections::BTreeMap;

use super::order_effect::kruskal_wallis;
use crate::special::t_quantile;

/// The minimum degrees of freedom of the variance between launches.
const LEAST_FREEDOM: f64 = 2.0;

/// The effect of launches on blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launches {
    /// The number of launches.
    pub count: usize,
    /// Variance between launches over that of single blocks: about 1 if launches make no difference.
    pub ratio: f64,
    /// The factor by which to stretch an interval that assumes independent blocks: at least 1.
    pub factor: f64,
}

/// Compares the launches of the blocks. `None` if each block has its own launch, if all share one, if a value is
/// not finite, or if `d` and `of` differ in length.
pub fn launches(d: &[f64], of: &[u32]) -> Option<Launches> {
    let mut groups: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (value, launch) in d.iter().zip(of) {
        groups.entry(*launch).or_default().push(*value);
    }
    let groups: Vec<Vec<f64>> = groups.into_values().collect();
    let count = groups.len();
    if of.len() != d.len() || count < 2 || count == d.len() {
        return None;
    }
    let (h, _) = kruskal_wallis(&groups)?;
    let own = (count - 1) as f64;
    let ratio = h / own;
    let freedom = own.max(LEAST_FREEDOM);
    let moderated = (h + freedom - own) / freedom;
    let stretched =
        moderated.sqrt() * t_quantile(0.975, freedom) / t_quantile(0.975, (d.len() - 1) as f64);
    Some(Launches {
        count,
        ratio,
        factor: if ratio > 1.0 { stretched } else { 1.0 },
    })
}
