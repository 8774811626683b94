//! A cost as a whole, and what of it goes where something is switched off.
//!
//! Both are judged in parts of what the arm cost in the same block, as the table judges ratios. Where the level itself
//! drifts, as that of a proxy which slows down with every connection, differences in the unit drift with it: their
//! blocks depend on each other, and an interval as wide as that asks for holds 0 although every block has the cost.
//! The part that the cost is of the level hardly moves then.
//! A gain is a cost with the other sign: what of it goes is counted the same way.
//! What it cannot see: a share that itself changes over the blocks; its interval is that of the typical block.

use tare_stats::special::t_quantile;
use tare_stats::{Interval, blocks_needed, median};

use super::readings::{ByBlock, Readings, interval, joint, p_greater, plain};
use super::search::Shown;

/// A share that is no larger than this makes no cause of what was removed.
pub(super) const NO_CAUSE: f64 = 0.25;

/// What an arm costs more than another.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// In the metric's unit; of a gain the negative.
    differences: ByBlock,
    is_gain: bool,
    /// What the slower of the two arms costs, in the metric's unit, positive.
    levels: ByBlock,
}

/// What went of a total.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Removed {
    /// In the metric's unit, at the typical level.
    pub effect: Interval,
    /// `None` where the total itself may be zero.
    pub share: Option<Interval>,
    /// One-sided p of the share being `NO_CAUSE` at most.
    pub p: Option<f64>,
}

impl Total {
    /// What comes back of it where something is put back, by block.
    pub(in crate::why) fn came_back(&self, back: &ByBlock) -> Option<Shown> {
        let back = self.without(back)?;
        let share = back.share?;
        Some(Shown {
            low: back.effect.low,
            share: share.point,
            high: share.high,
        })
    }

    /// What `arm` costs more than `earlier`.
    pub fn of(readings: &Readings, earlier: &str, arm: &str, metric: &str) -> Self {
        Self::new(
            &readings.differences(earlier, arm, metric),
            [
                &readings.values(earlier, metric),
                &readings.values(arm, metric),
            ],
        )
    }

    /// `differences` are those of the second arm with the first, `values` those of both; more is worse.
    pub(super) fn new(differences: &ByBlock, values: [&ByBlock; 2]) -> Self {
        let is_gain = match interval(differences) {
            Some(found) => found.high < 0.0,
            None => !differences.is_empty() && differences.values().all(|it| it.mean() < 0.0),
        };
        let levels = values[usize::from(!is_gain)]
            .iter()
            .map(|(block, value)| (*block, value.map(f64::abs)));
        Self {
            differences: turned(differences, is_gain),
            is_gain,
            levels: levels.filter(|(_, level)| level.first > 0.0).collect(),
        }
    }

    /// Both costs in one, for the blocks that both have.
    pub fn with(&self, other: &Self) -> Self {
        let sum = |a: f64, b: f64| a + b;
        Self {
            differences: joint(&self.differences, &other.differences, sum),
            levels: joint(&self.levels, &other.levels, sum),
            is_gain: false,
        }
    }

    /// Differences of other arms with the sign that this total has: positive where the total goes with them.
    fn oriented(&self, differences: &ByBlock) -> ByBlock {
        turned(differences, self.is_gain)
    }

    /// In the metric's unit; of a gain the negative.
    pub fn differences(&self) -> &ByBlock {
        &self.differences
    }

    fn parts(&self, differences: &ByBlock) -> ByBlock {
        joint(differences, &self.levels, |difference, level| {
            difference / level
        })
    }

    /// Blocks after which the share that goes with something is known to `half` above and below, if that scatters as
    /// the total does; `None` where the total may be zero.
    pub fn blocks_for(&self, half: f64) -> Option<usize> {
        let (n_blocks, relative) = self.half_width()?;
        blocks_needed(n_blocks, relative, half)
    }

    /// The least number of blocks, up to `most`, in which Student's interval tells that share to `half` above and below.
    pub fn few_for(&self, half: f64, most: u32) -> Option<u32> {
        let width = |n_blocks: f64| t_quantile(0.975, n_blocks - 1.0) / n_blocks.sqrt();
        let (n_blocks, relative) = self.half_width()?;
        let scatter = relative / width(n_blocks as f64);
        (2..=most).find(|few| scatter * width(f64::from(*few)) <= half)
    }

    /// To how much above and below such a share is known, as a part of the total, and in how many blocks.
    fn half_width(&self) -> Option<(usize, f64)> {
        let parts = self.parts(&self.differences);
        let whole = interval(&parts).filter(|whole| whole.low > 0.0)?;
        // What goes is a difference of two arms too, and its scatter comes to the total's.
        let relative = std::f64::consts::SQRT_2 * whole.half_width() / whole.point;
        Some((parts.len(), relative))
    }

    /// What of it goes where `differences`, in its unit, go, and the total, both as parts of the level of their block; of
    /// the blocks that have both.
    pub(super) fn gone(&self, differences: &ByBlock) -> [ByBlock; 2] {
        let removed = self.parts(&self.oriented(differences));
        let total = self.parts(&self.differences);
        let removed = joint(&removed, &total, |removed, _| removed);
        let total = joint(&total, &removed, |total, _| total);
        [removed, total]
    }

    /// What of it goes where `differences`, in its unit, go; `None` below six blocks that have both.
    pub fn without(&self, differences: &ByBlock) -> Option<Removed> {
        let [removed, total] = self.gone(differences);
        let effect = interval(&removed)?;
        let level = median(&plain(&self.levels))?;
        Some(Removed {
            effect: Interval {
                low: effect.low * level,
                point: effect.point * level,
                high: effect.high * level,
                ..effect
            },
            share: share(&removed, &total),
            p: p_greater(&joint(&removed, &total, |removed, total| {
                removed - NO_CAUSE * total
            })),
        })
    }
}

fn turned(differences: &ByBlock, is_turned: bool) -> ByBlock {
    let sign = if is_turned { -1.0 } else { 1.0 };
    let turned = differences.iter();
    turned
        .map(|(block, value)| (*block, value.map(|it| sign * it)))
        .collect()
}

/// The share of a total that goes when something is removed: the values θ for which `removed − θ · total` may
/// be centred at zero, by the same rank interval as everything else (the idea of Fieller's interval, with ranks
/// in place of means). `None` below six blocks, or where the total itself may be zero.
fn share(removed: &ByBlock, total: &ByBlock) -> Option<Interval> {
    /// The shares that are looked at; beyond them nothing is worth telling apart.
    const RANGE: (f64, f64) = (-1.0, 3.0);
    const STEPS: u32 = 400;
    let whole = interval(total)?;
    if removed.len() != total.len() || whole.low <= 0.0 {
        return None;
    }
    let at = |theta: f64| {
        interval(&joint(removed, total, |removed, total| {
            removed - theta * total
        }))
    };
    let thetas =
        (0..=STEPS).map(|step| RANGE.0 + (RANGE.1 - RANGE.0) * f64::from(step) / f64::from(STEPS));
    let mut found: Option<(f64, f64)> = None;
    let mut best: Option<(f64, f64)> = None;
    for theta in thetas {
        let rest = at(theta)?;
        if rest.low <= 0.0 && rest.high >= 0.0 {
            found = Some((found.map_or(theta, |(low, _)| low), theta));
        }
        if best.is_none_or(|(_, distance)| rest.point.abs() < distance) {
            best = Some((theta, rest.point.abs()));
        }
    }
    let (point, _) = best?;
    let (low, high) = found.unwrap_or((point, point));
    Some(Interval {
        point,
        low: low.min(point),
        high: high.max(point),
        level: crate::analyze::LEVEL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_one_launch;
    use tare_stats::Differences;

    fn by_block(n_blocks: u32, value: impl Fn(u32) -> f64) -> ByBlock {
        (0..n_blocks)
            .map(|block| (in_one_launch(block), Differences::one(value(block))))
            .collect()
    }

    /// Noise that is the same each time, between −1 and 1.
    fn noise(block: u32) -> f64 {
        f64::from((block * 7919 + 13) % 101) / 50.0 - 1.0
    }

    #[test]
    fn a_share_is_found_again_and_its_interval_covers_it() {
        for truth in [0.0, 0.3, 1.0] {
            let total = by_block(12, |block| 100.0 + 5.0 * noise(block));
            let removed = by_block(12, |block| {
                truth * total[&in_one_launch(block)].first + 3.0 * noise(block + 50)
            });
            let found = share(&removed, &total).unwrap();
            assert!((found.point - truth).abs() < 0.05, "{truth}: {found:?}");
            assert!(
                found.low <= truth && truth <= found.high,
                "{truth}: {found:?}"
            );
            assert!(found.high - found.low < 0.15, "{truth}: {found:?}");
        }
    }

    #[test]
    fn gain_has_shares_like_a_cost() {
        let values = by_block(12, |block| 50.0 + noise(block));
        let gain = by_block(12, |block| -10.0 + noise(block));
        let total = Total::new(&gain, [&values, &values]);
        let all = total.without(&gain).unwrap();
        assert!(
            all.effect.low > 0.0 && all.share.unwrap().low > 0.9,
            "{all:?}"
        );
        let more = by_block(12, |block| 5.0 + noise(block));
        assert!(total.without(&more).unwrap().effect.high < 0.0);
        // A gain of nine tenths: what is left scatters, and that is little of it.
        let (slow, fast) = (
            by_block(12, |_| 500.0),
            by_block(12, |block| 50.0 + 20.0 * noise(block)),
        );
        let gain = joint(&fast, &slow, |fast, slow| fast - slow);
        assert!(Total::new(&gain, [&slow, &fast]).blocks_for(0.1).unwrap() <= 4);
    }

    #[test]
    fn a_share_is_known_after_fewer_blocks_where_the_total_scatters_less() {
        let total = |scatter: f64| {
            let total = by_block(12, |block| 100.0 + scatter * noise(block));
            let values = by_block(12, |_| 200.0);
            Total::new(&total, [&values, &values])
        };
        let blocks = |scatter: f64| total(scatter).blocks_for(0.1);
        let few = |scatter: f64| total(scatter).few_for(0.35, 4);
        let (plain, noisy) = (blocks(5.0).unwrap(), blocks(60.0).unwrap());
        assert!(plain <= 12 && noisy >= 24, "{plain} {noisy}");
        // Of two values Student's interval is nine times their scatter wide, of four one and a half.
        assert_eq!(
            [2.0, 6.0, 18.0, 60.0].map(few),
            [Some(2), Some(3), Some(4), None]
        );
        assert_eq!(blocks(500.0), None);
    }

    #[test]
    fn there_is_no_share_of_nothing_and_none_of_few_blocks() {
        let total = by_block(12, noise);
        assert_eq!(share(&total, &total), None);
        let ones = |blocks| by_block(blocks, |_| 1.0);
        assert_eq!(share(&ones(5), &ones(5)), None);
        assert_eq!(share(&ones(7), &ones(8)), None);
    }

    #[test]
    fn a_level_that_drifts_hides_neither_a_cost_nor_its_share() {
        // A proxy that takes from 0.25 to 3.5 ms of a connection, and 0.03 ms without it.
        let values = |shift: f64, level: fn(f64) -> f64| {
            by_block(11, |block| {
                shift + level(f64::from(block)) + 0.005 * noise(block)
            })
        };
        let slowing = |block: f64| 0.25 + 3.25 * (block / 10.0).powi(2);
        let (host, env, without) = (
            values(0.03, |_| 0.0),
            values(0.03, slowing),
            values(0.04, |_| 0.0),
        );
        let differences = joint(&env, &host, |env, host| env - host);
        assert!(interval(&differences).unwrap().low <= 0.0);
        let removed = Total::new(&differences, [&host, &env])
            .without(&joint(&env, &without, |env, without| env - without))
            .unwrap();
        let share = removed.share.unwrap();
        assert!(removed.effect.low > 0.0 && share.low > 0.9, "{removed:?}");
        assert!(share.high <= 1.05, "{removed:?}");
    }
}
