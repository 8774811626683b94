//! Do blocks of the same launch resemble each other?
//!
//! What: one-way analysis of variance of the ranks of d by launch. Where the launches differ by more than their
//! blocks would make them, the variance of the mean is that between launches over their number of blocks, known
//! with one degree of freedom less than there are launches; the interval is stretched by the root of its ratio to
//! the variance that independent blocks would have, and by that of the two t quantiles (Kish 1965; Satterthwaite
//! 1946 for the degrees of freedom at their least). Two launches count as three, of which the third differs no more than
//! single blocks make it: a moderated variance (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004).
//!
//! Why: what differs from start to start (where pages came to lie, which processor) is not in an interval over
//! blocks of one start, and a comparison repeated tomorrow would leave that interval. Ranks, because one block far
//! off would otherwise look like a launch of its own.
//!
//! What it cannot see: anything about a single launch, and of two not much: there the interval covers 83 to 91 times in
//! a hundred where starts differ. The variance of two alone would stretch it up to twentyfold, four times as much, and
//! cover no more than 92 times.

use std::collections::BTreeMap;

use super::order_effect::kruskal_wallis;
use crate::special::t_quantile;

/// The degrees of freedom with which the variance between launches is known at least.
const LEAST_FREEDOM: f64 = 2.0;

/// What blocks of the same launch have in common.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launches {
    /// How many there are.
    pub count: usize,
    /// Variance between launches over that of single blocks: about 1 where launches make no difference.
    pub ratio: f64,
    /// By how much to stretch an interval that takes blocks as independent: at least 1.
    pub factor: f64,
}

/// Compares the launches that the blocks belong to. `None` where each block has a launch of its own, where all have
/// the same, or where a value is not finite.
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
