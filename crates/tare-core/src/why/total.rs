//! Computes a total overhead, and the share of it that goes away when something is switched off.
//!
//! Both are relative to the arm's level in the same block, as the table's ratios are. If the level itself drifts, as
//! that of a proxy that slows down with every connection, absolute differences drift with it: their blocks are then
//! dependent, and a correctly wide interval contains 0 although every block has the overhead. Relative to the level,
//! the overhead hardly changes.
//! A gain is an overhead with the opposite sign and treated the same way.
//! Limits: a share that changes over the blocks is not modelled; its interval is that of the typical block.

use tare_stats::special::t_quantile;
use tare_stats::{Interval, blocks_needed, median};

use super::readings::{ByBlock, Readings, interval, joint, p_greater, plain};
use super::search::RemovedShare;

/// A removed suspect with at most this share is not a cause.
pub(super) const NO_CAUSE: f64 = 0.25;

/// The overhead of one arm over another.
#[derive(Debug, Clone, Default)]
pub struct Total {
    /// In the metric's unit; negated for a gain.
    differences: ByBlock,
    is_gain: bool,
    /// The level of the slower of the two arms, in the metric's unit, positive.
    levels: ByBlock,
}

/// The part of a total that went away.
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
    /// The part of the total that comes back when something is restored, by block.
    pub(crate) fn came_back(&self, back: &ByBlock) -> Option<RemovedShare> {
        let back = self.without(back)?;
        let share = back.share?;
        Some(RemovedShare {
            low: back.effect.low,
            share: share.point,
            high: share.high,
        })
    }

    /// The overhead of `arm` over `earlier`.
    pub fn between(readings: &Readings, earlier: &str, arm: &str, metric: &str) -> Self {
        Self::new(
            &readings.differences(earlier, arm, metric),
            [
                &readings.values(earlier, metric),
                &readings.values(arm, metric),
            ],
        )
    }

    /// From the differences of the second arm from the first, and the values of both; more is worse.
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

    /// The sum of two totals, for the blocks that both have.
    pub fn with(&self, other: &Self) -> Self {
        let sum = |a: f64, b: f64| a + b;
        Self {
            differences: joint(&self.differences, &other.differences, sum),
            levels: joint(&self.levels, &other.levels, sum),
            is_gain: false,
        }
    }

    /// In the metric's unit; negated for a gain.
    pub fn differences(&self) -> &ByBlock {
        &self.differences
    }

    fn parts(&self, differences: &ByBlock) -> ByBlock {
        joint(differences, &self.levels, |difference, level| {
            difference / level
        })
    }

    /// The number of blocks that give a share to within ±`half`, if it varies as the total does; `None` if the total
    /// may be zero.
    pub fn blocks_for(&self, half: f64) -> Option<usize> {
        let (n_blocks, relative) = self.half_width()?;
        blocks_needed(n_blocks, relative, half)
    }

    /// The fewest blocks, up to `most`, in which Student's interval gives that share to within ±`half`.
    pub fn few_for(&self, half: f64, most: u32) -> Option<u32> {
        let width = |n_blocks: f64| t_quantile(0.975, n_blocks - 1.0) / n_blocks.sqrt();
        let (n_blocks, relative) = self.half_width()?;
        let scatter = relative / width(n_blocks as f64);
        (2..=most).find(|few| scatter * width(f64::from(*few)) <= half)
    }

    /// The half-width of such a share's interval, as a part of the total, and the number of blocks.
    fn half_width(&self) -> Option<(usize, f64)> {
        let parts = self.parts(&self.differences);
        let whole = interval(&parts).filter(|whole| whole.low > 0.0)?;
        // The removed part is a difference of two arms too, so its variance adds to the total's.
        let relative = std::f64::consts::SQRT_2 * whole.half_width() / whole.point;
        Some((parts.len(), relative))
    }

    /// The removed part `differences` and the total, both relative to the level of their block, in the blocks that
    /// both have.
    pub(super) fn gone(&self, differences: &ByBlock) -> [ByBlock; 2] {
        // Positive if the total goes away with them.
        let removed = self.parts(&turned(differences, self.is_gain));
        let total = self.parts(&self.differences);
        let removed = joint(&removed, &total, |removed, _| removed);
        let total = joint(&total, &removed, |total, _| total);
        [removed, total]
    }

    /// The part of the total that goes away with `differences`, given in its unit; `None` below six common blocks.
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

/// The share of a total that goes away when something is removed: the values θ for which `removed − θ · total` may be
/// centred at zero, by the same rank interval as elsewhere (the idea of Fieller's interval, with ranks in place of
/// means). `None` below six blocks, or if the total itself may be zero.
fn share(removed: &ByBlock, total: &ByBlock) -> Option<Interval> {
    /// The range of shares that are tested; beyond it a distinction is pointless.
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

    /// Deterministic noise between −1 and 1.
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
        // A gain of nine tenths: the rest varies, but it is small.
        let (slow, fast) = (
            by_block(12, |_| 500.0),
            by_block(12, |block| 50.0 + 20.0 * noise(block)),
        );
        let gain = joint(&fast, &slow, |fast, slow| fast - slow);
        assert!(Total::new(&gain, [&slow, &fast]).blocks_for(0.1).unwrap() <= 4);
    }

    #[test]
    fn share_needs_fewer_blocks_if_total_varies_less() {
        let total = |scatter: f64| {
            let total = by_block(12, |block| 100.0 + scatter * noise(block));
            let values = by_block(12, |_| 200.0);
            Total::new(&total, [&values, &values])
        };
        let blocks = |scatter: f64| total(scatter).blocks_for(0.1);
        let few = |scatter: f64| total(scatter).few_for(0.35, 4);
        let (plain, noisy) = (blocks(5.0).unwrap(), blocks(60.0).unwrap());
        assert!(plain <= 12 && noisy >= 24, "{plain} {noisy}");
        // Student's interval is nine times as wide as the scatter for two values, one and a half times for four.
        assert_eq!(
            [2.0, 6.0, 18.0, 60.0].map(few),
            [Some(2), Some(3), Some(4), None]
        );
        assert_eq!(blocks(500.0), None);
    }

    #[test]
    fn zero_total_or_few_blocks_give_no_share() {
        let total = by_block(12, noise);
        assert_eq!(share(&total, &total), None);
        let ones = |blocks| by_block(blocks, |_| 1.0);
        assert_eq!(share(&ones(5), &ones(5)), None);
        assert_eq!(share(&ones(7), &ones(8)), None);
    }

    #[test]
    fn drifting_level_hides_neither_cost_nor_share() {
        // A proxy that takes between 0.25 and 3.5 ms of a connection, and 0.03 ms when removed.
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
