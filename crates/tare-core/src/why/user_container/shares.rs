//! Computes the share of the slowdown that goes away in an arm without some differences.
//!
//! Limits: a share may be due to chance; what is found is proved in separate blocks.

use tare_stats::median;

use super::super::readings::{ByBlock, Readings, plain};
use super::super::search::{LEAST_SHARE, RemovedShare};
use super::super::total::Total;
use super::super::{Ask, FEWEST};
use super::{COPY, ContainerQuestion, PLAIN};
use crate::analyze::RunData;

/// The precision, above and below, with which a few blocks give the share of a part if the slowdown is obvious: what
/// causes all of it is then hot, and what causes nothing is cold.
const PLAIN_HALF: f64 = 0.35;
/// The maximum number of blocks of a round if the slowdown is obvious.
pub const PLAIN_BLOCKS: u32 = 4;
/// The fewest blocks that give a share.
const PLAIN_LEAST: usize = 2;

/// The arm with every difference, from which some can be removed: the environment, or a copy of it.
pub(super) fn whole(ask: &Ask) -> &str {
    let has_copy = ask.own.as_ref().is_some_and(|asks| asks.copy.is_some());
    if has_copy { COPY } else { &ask.driver }
}

/// How much slower one arm is than another, as a share of the whole slowdown.
pub(super) fn part(
    readings: &Readings,
    ask: &Ask,
    (below, above): (&str, &str),
) -> Option<RemovedShare> {
    let total = Total::between(readings, ask.base().id, &ask.driver, &ask.metric);
    total.came_back(&readings.differences(below, above, &ask.metric))
}

/// The arm that the search takes as zero.
pub(super) fn floor(readings: &Readings, ask: &Ask, asks: &ContainerQuestion) -> &'static str {
    let of_plain = asks
        .plain
        .as_ref()
        .and_then(|_| part(readings, ask, (asks.base.id, PLAIN)));
    // Surely more, and not only a negligible part of the whole.
    match of_plain {
        Some(it) if it.low > 0.0 && it.share >= LEAST_SHARE => PLAIN,
        _ => asks.base.id,
    }
}

/// The number of blocks that give the share of a part, if the slowdown varies so little that few suffice.
pub fn plain_blocks(asks: &ContainerQuestion, ask: &Ask, run: &RunData) -> Option<u32> {
    let readings = Readings::read(run);
    let floor = floor(&readings, ask, asks);
    let total = Total::between(&readings, floor, whole(ask), &ask.metric);
    total.few_for(PLAIN_HALF, PLAIN_BLOCKS)
}

/// The share of the slowdown that went away in an arm.
pub(super) fn shown(
    readings: &Readings,
    ask: &Ask,
    (floor, arm): (&str, &str),
) -> Option<RemovedShare> {
    let total = Total::between(readings, floor, whole(ask), &ask.metric);
    went(&total, &readings.differences(arm, whole(ask), &ask.metric))
}

/// The share of a total that went away with `differences`, even from fewer blocks than ranks need.
pub(crate) fn went(total: &Total, differences: &ByBlock) -> Option<RemovedShare> {
    let [removed, whole] = total.gone(differences).map(|of| plain(&of));
    if removed.len() >= FEWEST as usize || removed.len() < PLAIN_LEAST {
        return total.came_back(differences);
    }
    let whole = median(&whole).filter(|whole| *whole > 0.0)?;
    let (low, high) = of_few(&removed);
    Some(RemovedShare {
        low,
        share: median(&removed)? / whole,
        high: high / whole,
    })
}

/// An interval for the typical value from too few values for ranks: the extremes, widened by the part of their
/// distance by which the 95 % interval of Student's t for as many normal values exceeds it on average. Of four values
/// without an effect, one set in sixteen is entirely above zero.
fn of_few(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // t₀.₉₇₅ / √n, divided by the mean range of n normal values in standard deviations, minus the half that the range
    // covers already.
    let beyond = match values.len() {
        ..=2 => 12.706 / 1.414 / 1.128 - 0.5,
        3 => 4.303 / 1.732 / 1.693 - 0.5,
        4 => 3.182 / 2.0 / 2.059 - 0.5,
        _ => 2.776 / 2.236 / 2.326 - 0.5,
    };
    let beyond = beyond * (high - low);
    (low - beyond, high + beyond)
}

#[cfg(test)]
mod tests {
    use super::super::super::readings::joint;
    use super::*;
    use crate::testing::in_one_launch;
    use tare_stats::Differences;

    fn by_block<const N: usize>(values: [f64; N]) -> ByBlock {
        let blocks = (0..).map(in_one_launch);
        blocks.zip(values.map(Differences::one)).collect()
    }

    #[test]
    fn difference_without_cost_is_cold_in_three_blocks() {
        let (fast, slow) = (by_block([10.0, 11.0, 9.0]), by_block([110.0, 109.0, 111.0]));
        let cost = joint(&slow, &fast, |slow, fast| slow - fast);
        let total = Total::new(&cost, [&fast, &slow]);
        let of = |values| went(&total, &by_block(values)).unwrap();
        let (nothing, all) = (of([1.0, -2.0, 0.0]), of([99.0, 101.0, 100.0]));
        assert!(!nothing.is_hot() && nothing.high < 0.1, "{nothing:?}");
        assert!(all.is_hot() && all.share > 0.9, "{all:?}");
        assert!(!of([20.0, 180.0, 90.0]).is_hot());
    }

    #[test]
    fn drifting_level_is_decided_in_two_blocks() {
        let (fast, slow) = (by_block([10.0, 10.2]), by_block([130.0, 190.0]));
        let cost = joint(&slow, &fast, |slow, fast| slow - fast);
        let total = Total::new(&cost, [&fast, &slow]);
        let all = went(&total, &by_block([119.0, 180.5])).unwrap();
        assert!(all.is_hot() && all.share > 0.9, "{all:?}");
        let nothing = went(&total, &by_block([1.0, -1.0])).unwrap();
        assert!(!nothing.is_hot() && nothing.high < 0.5, "{nothing:?}");
    }

    #[test]
    fn few_values_decide_only_if_close_together() {
        let noise = of_few(&[10.0, 250.0, 90.0, 120.0]);
        assert!(noise.0 < 0.0, "{noise:?}");
        let cost = of_few(&[210.0, 250.0, 190.0, 220.0]);
        assert!(cost.0 > 170.0 && cost.1 < 270.0, "{cost:?}");
        // Three values must be closer together, and two almost the same.
        assert!(of_few(&[100.0, 108.0]).0 < 50.0 && of_few(&[100.0, 103.0]).0 > 75.0);
        let (of_three, of_four) = (
            of_few(&[100.0, 150.0, 200.0]),
            of_few(&[100.0, 150.0, 150.0, 200.0]),
        );
        assert!(
            of_three.0 < 50.0 && of_four.0 > 50.0,
            "{of_three:?} {of_four:?}"
        );
    }
}
