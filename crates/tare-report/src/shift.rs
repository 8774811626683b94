//! Quantile shift: the arm's overhead at each decile of the blocks' values (Doksum's shift function), to distinguish
//! equal medians with different tails from no difference.
//!
//! Each side's values are sorted separately, so this is not a comparison within blocks and has no interval. Each side
//! uses the readings of a single copy: the mean of two copies scatters less than one arm, and would make equal arms
//! differ at both ends.
//!
//! Limits: does not show the spread within a block.
//! Limits: does not show the spread within a block.

use tare_model::dossier::{DossierBlock, DossierCell};
use tare_stats::quantile;

/// The minimum number of blocks.
pub(crate) const FEWEST: usize = 10;

/// Both sides at one quantile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tenth {
    /// The percentage of values below.
    pub(crate) percent: u32,
    /// The baseline's quantile.
    pub(crate) base: f64,
    /// The arm's quantile.
    pub(crate) env: f64,
    /// Cost of the arm over that of the baseline; `None` if a value is not above 0.
    pub(crate) cost: Option<f64>,
}

/// Returns the deciles of a cell in ascending order; empty if it has too few blocks or values that are not numbers.
pub(crate) fn tenths(cell: &DossierCell) -> Vec<Tenth> {
    let blocks = &cell.blocks;
    if blocks.len() < FEWEST {
        return Vec::new();
    }
    let [base, env] = [0, 1].map(|side| {
        let mut values: Vec<f64> = blocks.iter().map(|block| block.alone()[side]).collect();
        values.sort_by(f64::total_cmp);
        values
    });
    let at = |percent: u32| {
        let share = f64::from(percent) / 100.0;
        let (base, env) = (quantile(&base, share)?, quantile(&env, share)?);
        let there = DossierBlock {
            base,
            env,
            ..blocks[0]
        };
        Some(Tenth {
            percent,
            base,
            env,
            cost: there.ratio(cell.better),
        })
    };
    (10..100).step_by(10).filter_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_core::testing as composed;

    #[test]
    fn single_copy_readings_are_compared_with_the_arms() {
        let mut cell = composed::stored().cells.swap_remove(0);
        cell.blocks = (0..20)
            .map(|block| DossierBlock {
                block,
                position: 0,
                launch: block,
                base: 100.0,
                env: 100.0,
                base_alone: Some(90.0 + f64::from(block)),
                env_alone: Some(2.0 * (90.0 + f64::from(block))),
                apart: None,
            })
            .collect();
        let tenths = tenths(&cell);
        assert_eq!(tenths.len(), 9);
        for tenth in tenths {
            assert!((tenth.cost.unwrap() - 2.0).abs() < 1e-12, "{tenth:?}");
        }
    }
}
