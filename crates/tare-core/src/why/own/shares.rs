//! Which share of the cost went with what an arm does without.
//!
//! What it cannot see: whether it would have gone by chance; what is found is proved in blocks of its own.

use tare_stats::median;

use super::super::readings::{Readings, joint, plain};
use super::super::search::{LEAST_SHARE, Shown};
use super::super::total::Total;
use super::super::{Ask, FEWEST};
use super::{Asks, COPY, PLAIN};
use crate::analyze::RunData;

/// To so much, above and below, the share of a part is known in a few blocks where the cost is plain to see: what carries
/// all of it is hot then, and what carries nothing is cold.
const PLAIN_HALF: f64 = 0.35;
/// Blocks of a round where the cost is plain to see.
pub(super) const PLAIN_BLOCKS: u32 = 4;
/// The fewest blocks that say something.
const PLAIN_LEAST: usize = 3;

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

/// Whether the cost scatters so little that a few blocks tell the share of a part.
pub fn is_plain(asks: &Asks, ask: &Ask, run: &RunData) -> bool {
    let readings = Readings::of(run);
    let floor = floor(&readings, ask, asks);
    let total = Total::of(&readings, floor, whole(ask), &ask.metric);
    let needed = total.blocks_for(PLAIN_HALF);
    needed.is_some_and(|blocks| blocks <= PLAIN_BLOCKS as usize)
}

/// What of the cost went in an arm.
pub(super) fn shown(readings: &Readings, ask: &Ask, (floor, arm): (&str, &str)) -> Option<Shown> {
    let whole_cost = Total::of(readings, floor, whole(ask), &ask.metric);
    let raw = readings.differences(arm, whole(ask), &ask.metric);
    let gone = whole_cost.oriented(&raw);
    let removed = plain(&joint(&gone, whole_cost.differences(), |gone, _| gone));
    let total = plain(&joint(whole_cost.differences(), &gone, |total, _| total));
    if removed.len() < FEWEST as usize && removed.len() >= PLAIN_LEAST {
        let total = median(&total).filter(|total| *total > 0.0)?;
        let (low, high) = of_few(&removed);
        return Some(Shown {
            low,
            share: median(&removed)? / total,
            high: high / total,
        });
    }
    whole_cost.came_back(&raw)
}

/// Between which bounds the typical value lies, of too few for ranks: the extremes, further apart by the part of their
/// distance by which the 95 % interval of Student's t for as many normal values exceeds it on average. Of four values
/// that mean nothing one set in sixteen is all above zero.
fn of_few(values: &[f64]) -> (f64, f64) {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // t₀.₉₇₅ / √n, over the mean range of n normal values in standard deviations, less the half that it has anyway.
    let beyond = match values.len() {
        ..=3 => 4.303 / 1.732 / 1.693 - 0.5,
        4 => 3.182 / 2.0 / 2.059 - 0.5,
        _ => 2.776 / 2.236 / 2.326 - 0.5,
    };
    let beyond = beyond * (high - low);
    (low - beyond, high + beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_that_lie_far_apart_say_nothing_and_near_ones_do() {
        let noise = of_few(&[10.0, 250.0, 90.0, 120.0]);
        assert!(noise.0 < 0.0, "{noise:?}");
        let cost = of_few(&[210.0, 250.0, 190.0, 220.0]);
        assert!(cost.0 > 170.0 && cost.1 < 270.0, "{cost:?}");
        // Three need to be nearer.
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
