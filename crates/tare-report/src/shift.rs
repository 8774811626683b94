//! How the values of blocks are spread on both sides: what the arm costs at each tenth of them (Doksum's shift function),
//! so that an equal middle with another end can be told from no difference at all.
//!
//! Each side's values are ordered by themselves, so this is no comparison within blocks, and it has no interval. Of each
//! side one copy's own reading counts: the middle of two copies scatters less than one arm, and would make equal arms
//! differ at both ends.
//! What it cannot see: the spread inside of a block.

use tare_model::dossier::{DossierBlock, DossierCell};
use tare_stats::quantile;

/// Fewer blocks than this have no tenths.
pub(crate) const FEWEST: usize = 10;

/// Both sides at one share of their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tenth {
    /// So many percent of the values are less.
    pub(crate) percent: u32,
    /// The baseline's value there.
    pub(crate) base: f64,
    /// The arm's value there.
    pub(crate) env: f64,
    /// Cost of the arm over that of the baseline; `None` where a value is not above 0.
    pub(crate) cost: Option<f64>,
}

/// The tenths of a cell from the least values to the largest; none where it has too few blocks or values that are no
/// numbers.
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
    fn one_copys_own_readings_are_set_beside_the_arms_own() {
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
