//! Does the verdict hang on a single block?
//!
//! What: the verdict recomputed with each block left out in turn.
//!
//! Why: a verdict that one block can overturn is tagged, not hidden; removing outliers
//! would be choosing the data by the result.
//!
//! What it cannot see: two bad blocks that need each other.

use crate::interval::Undetermined;
use crate::verdict::{Verdict, verdict_of};

/// How the verdict fares when each block is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fragility {
    /// The verdict of all blocks.
    pub verdict: Verdict,
    /// The blocks without which the verdict is another, and that other verdict.
    pub overturned_without: Vec<(usize, Verdict)>,
}

impl Fragility {
    /// Would the absence of one block have changed the verdict?
    pub fn is_fragile(&self) -> bool {
        !self.overturned_without.is_empty()
    }
}

/// Leaves out each block of the log-ratios `d` in turn. Needs seven blocks, because six
/// must remain.
pub fn leave_one_out(d: &[f64], margin: f64) -> Result<Fragility, Undetermined> {
    let verdict = verdict_of(d, margin)?;
    if d.len() < 7 {
        return Err(Undetermined::TooFew {
            n: d.len(),
            needed: 7,
        });
    }
    let mut overturned_without = Vec::new();
    for left_out in 0..d.len() {
        let mut rest = d.to_vec();
        rest.remove(left_out);
        let other = verdict_of(&rest, margin)?;
        if other != verdict {
            overturned_without.push((left_out, other));
        }
    }
    Ok(Fragility {
        verdict,
        overturned_without,
    })
}
