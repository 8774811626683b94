//! Which share of the cost went with what an arm does without.
//!
//! What it cannot see: whether it would have gone by chance; what is found is proved in blocks of its own.

use tare_stats::median;

use super::super::readings::{ByBlock, Readings, plain};
use super::super::search::{LEAST_SHARE, Shown};
use super::super::total::Total;
use super::super::{Ask, FEWEST};
use super::{Asks, COPY, PLAIN};
use crate::analyze::RunData;

/// To so much, above and below, the share of a part is known in a few blocks where the cost is plain to see: what carries
/// all of it is hot then, and what carries nothing is cold.
const PLAIN_HALF: f64 = 0.35;
/// Blocks of a round at most where the cost is plain to see.
pub const PLAIN_BLOCKS: u32 = 4;
/// The fewest blocks that say something.
const PLAIN_LEAST: usize = 2;

/// The arm that has every difference and can do without some: the environment, or a copy of it.
pub(super) fn whole(ask: &Ask) -> &str {
    let has_copy = ask.own.as_ref().is_some_and(|asks| asks.copy.is_some());
    if has_copy { COPY } else { &ask.driver }
}

/// What one arm costs more than another, as a share of the whole.
pub(super) fn part(readings: &Readings, ask: &Ask, (below, above): (&str, &str)) -> Option<Shown> {
    let total = Total::of(readings, ask.base().id, &ask.driver, &ask.metric);
    total.came_back(&readings.differences(below, above, &ask.metric))
}

/// What the search takes for no cost.
pub(super) fn floor(readings: &Readings, ask: &Ask, asks: &Asks) -> &'static str {
    let of_plain = asks
        .plain
        .as_ref()
        .and_then(|_| part(readings, ask, (asks.base.id, PLAIN)));
    // Surely more, and not only next to nothing of the whole.
    match of_plain {
        Some(it) if it.low > 0.0 && it.share >= LEAST_SHARE => PLAIN,
        _ => asks.base.id,
    }
}

/// Blocks that tell the share of a part, where the cost scatters so little that few do.
pub fn plain_blocks(asks: &Asks, ask: &Ask, run: &RunData) -> Option<u32> {
    let readings = Readings::of(run);
    let floor = floor(&readings, ask, asks);
    let total = Total::of(&readings, floor, whole(ask), &ask.metric);
    total.few_for(PLAIN_HALF, PLAIN_BLOCKS)
}

/// What of the cost went in an arm.
pub(super) fn shown(readings: &Readings, ask: &Ask, (floor, arm): (&str, &str)) -> Option<Shown> {
    let total = Total::of(readings, floor, whole(ask), &ask.metric);
    went(&total, &readings.differences(arm, whole(ask), &ask.metric))
}

/// What went of a total where `differences` went, also in fewer blocks than ranks need.
pub(in crate::why) fn went(total: &Total, differences: &ByBlock) -> Option<Shown> {
    let [removed, whole] = total.gone(differences).map(|of| plain(&of));
    if removed.len() >= FEWEST as usize || removed.len() < PLAIN_LEAST {
        return total.came_back(differences);
    }
    let whole = median(&whole).filter(|whole| *whole > 0.0)?;
    let (low, high) = of_few(&removed);
    Some(Shown {
        low,
        share: median(&removed)? / whole,
        high: high / whole,
    })
}

/// Between which bounds the typical value lies, of too few for ranks: the extremes, further apart by the part of their
/// distance by which the 95 % interval of Student's t for as many normal values exceeds it on average. Of four values
/// that mean nothing one set in sixteen is all above zero.
fn of_few(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // t₀.₉₇₅ / √n, over the mean range of n normal values in standard deviations, less the half that it has anyway.
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
    fn what_carries_nothing_is_cold_in_three_blocks() {
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
    fn level_that_drifts_hides_nothing_in_two_blocks() {
        let (fast, slow) = (by_block([10.0, 10.2]), by_block([130.0, 190.0]));
        let cost = joint(&slow, &fast, |slow, fast| slow - fast);
        let total = Total::new(&cost, [&fast, &slow]);
        let all = went(&total, &by_block([119.0, 180.5])).unwrap();
        assert!(all.is_hot() && all.share > 0.9, "{all:?}");
        let nothing = went(&total, &by_block([1.0, -1.0])).unwrap();
        assert!(!nothing.is_hot() && nothing.high < 0.5, "{nothing:?}");
    }

    #[test]
    fn few_values_that_lie_far_apart_say_nothing_and_near_ones_do() {
        let noise = of_few(&[10.0, 250.0, 90.0, 120.0]);
        assert!(noise.0 < 0.0, "{noise:?}");
        let cost = of_few(&[210.0, 250.0, 190.0, 220.0]);
        assert!(cost.0 > 170.0 && cost.1 < 270.0, "{cost:?}");
        // Three need to be nearer, and two to be nearly the same.
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
