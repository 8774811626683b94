//! Reads the values of a study's design; each error points at its place.

use tare_model::{Margins, Study};

use super::error::{Source, StudyError};
use super::file::{self, Design};
use super::{Adjustments, units};

/// A single block can be viewed; the exact interval at 95 % takes six.
const FEWEST_BLOCKS: u32 = 1;

/// Reads a value with its unit, as written in the file.
pub(super) fn written<T>(
    source: &Source<'_>,
    value: Option<&toml::Spanned<String>>,
    default: T,
    units: fn(&str) -> Result<T, String>,
) -> Result<T, StudyError> {
    value.map_or(Ok(default), |text| {
        units(text.get_ref()).map_err(|problem| source.error(Some(text.span()), problem, None))
    })
}

/// Reads a number of blocks.
pub(super) fn count(
    source: &Source<'_>,
    value: Option<&toml::Spanned<u32>>,
    default: u32,
    what: &str,
) -> Result<u32, StudyError> {
    match value {
        None => Ok(default),
        Some(number) if *number.get_ref() >= FEWEST_BLOCKS => Ok(*number.get_ref()),
        Some(number) => Err(source.error(
            Some(number.span()),
            format!("{what} must be at least {FEWEST_BLOCKS}"),
            Some("ten blocks are the usual least; six are the least for a 95 % interval".into()),
        )),
    }
}

/// Returns the fewest and the most blocks.
pub(super) fn blocks(
    source: &Source<'_>,
    design: &Design,
    adjustments: &Adjustments,
) -> Result<(u32, u32), StudyError> {
    let least = count(source, design.blocks_min.as_ref(), 10, "`blocks_min`")?;
    let most = count(source, design.blocks_max.as_ref(), 40, "`blocks_max`")?;
    if let Some(blocks) = adjustments.blocks {
        return Ok((blocks, blocks));
    }
    if most < least {
        let shown = design.blocks_max.as_ref().or(design.blocks_min.as_ref());
        let problem = format!("`blocks_max` ({most}) is below `blocks_min` ({least})");
        return Err(source.error(shown.map(toml::Spanned::span), problem, None));
    }
    Ok((least, most))
}

/// Lets a study with a budget run until the budget is used up: enough blocks for ten times as many trials as fit into
/// the budget at the target time of a trial.
pub(super) fn lift_the_bound_of_blocks(study: &mut Study) {
    let Some(budget_ns) = study.budget_ns else {
        return;
    };
    let blocks = budget_ns.saturating_mul(10) / study.block_ns().max(1);
    let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
    study.blocks_max = study.blocks_max.max(blocks);
}

/// Reads the margins of negligible differences.
pub(super) fn margins(source: &Source<'_>, file: &file::Margins) -> Result<Margins, StudyError> {
    let percent =
        |value: &Option<_>, default| written(source, value.as_ref(), default, units::fraction);
    let standard = Margins::default();
    Ok(Margins {
        compute: percent(&file.compute, standard.compute)?,
        kernel: percent(&file.kernel, standard.kernel)?,
        disk: percent(&file.disk, standard.disk)?,
        network: percent(&file.network, standard.network)?,
        start_up: percent(&file.start_up, standard.start_up)?,
    })
}
