//! Tests whether a sample has more than one mode.
//!
//! For few values, the largest gap between neighbours as a share of the range; from 30 on, the dip of Hartigan &
//! Hartigan 1985: the largest distance between the empirical distribution and the nearest unimodal one, with a
//! p-value simulated under the uniform (the hardest unimodal case).
//!
//! On a machine with two speeds (frequency steps, two sockets), every average is a number that never occurs.
//!
//! Limits: does not see modes closer than the noise, nor small second modes.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::interval::{all_finite, sorted, ties};
use crate::random::Stream;

const DIP: u64 = 0x0064_6970;
/// The largest sample that is simulated.
const SIMULATED_UP_TO: usize = 1_000;

/// The widest gap between neighbours of the sorted values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Its width as a share of the range.
    pub share: f64,
    /// Values below the gap.
    pub below: usize,
    /// Values above the gap.
    pub above: usize,
}

impl Gap {
    /// Whether more than half of the range is empty, with at least two values on each side.
    pub fn is_split(&self) -> bool {
        self.share > 0.5 && self.below >= 2 && self.above >= 2
    }
}

/// Returns the largest gap; the first of equally wide ones. `None` below two values, if all are equal, or if any is
/// not finite.
pub fn largest_gap(x: &[f64]) -> Option<Gap> {
    if x.len() < 2 || !all_finite(x) {
        return None;
    }
    let x = sorted(x);
    let range = x[x.len() - 1] - x[0];
    if range <= 0.0 {
        return None;
    }
    let mut widest = 0;
    for i in 1..x.len() - 1 {
        if x[i + 1] - x[i] > x[widest + 1] - x[widest] {
            widest = i;
        }
    }
    let share = (x[widest + 1] - x[widest]) / range;
    Some(Gap {
        share,
        below: widest + 1,
        above: x.len() - widest - 1,
    })
}

/// Returns the dip statistic, between 1/(2n) and 1/4. `None` for no values or any that is not finite; 1/(2n) if all
/// are equal.
pub fn dip(x: &[f64]) -> Option<f64> {
    if x.is_empty() || !all_finite(x) {
        return None;
    }
    Some(dip_of_sorted(&sorted(x)))
}

/// Returns the dip and its p-value: the share of `draws` uniform samples of the same size whose dip is at least as
/// large, counted as (hits + 1)/(draws + 1). Above a thousand values the samples have a thousand, and √n·dip is
/// compared, which then hardly changes with n (Hartigan & Hartigan 1985).
///
/// The same seed gives the same p. `None` as [`dip`]. 2 000 draws give p to about ±0.004 or better near 0.01.
pub fn dip_p(x: &[f64], draws: usize, seed: u64) -> Option<(f64, f64)> {
    let observed = dip(x)?;
    let size = x.len().min(SIMULATED_UP_TO);
    let threshold = observed * (x.len() as f64 / size as f64).sqrt();
    let hits = SIMULATED.with_borrow_mut(|known| {
        if known.len() >= MOST_SIMULATED {
            known.clear();
        }
        let dips = known
            .entry((x.len(), draws, seed))
            .or_insert_with_key(simulated);
        dips.iter().filter(|dip| **dip >= threshold).count()
    });
    Some((observed, (hits + 1) as f64 / (draws + 1) as f64))
}

/// The number of values, the number of draws, and the seed.
type Simulation = (usize, usize, u64);

/// The maximum number of cached simulations.
const MOST_SIMULATED: usize = 64;

thread_local! {
    /// Cached because the dips of uniform samples depend only on the key, and most cells of a run have the same
    /// number of blocks.
    static SIMULATED: RefCell<BTreeMap<Simulation, Vec<f64>>> = const { RefCell::new(BTreeMap::new()) };
}

/// Simulates the dips of uniform samples.
fn simulated(&(n, draws, seed): &Simulation) -> Vec<f64> {
    let mut stream = Stream::new(seed, DIP, n as u64);
    let size = n.min(SIMULATED_UP_TO);
    let draw = |_| {
        let mut sample: Vec<f64> = (0..size).map(|_| stream.unit()).collect();
        sample.sort_unstable_by(f64::total_cmp);
        dip_of_sorted(&sample)
    };
    (0..draws).map(draw).collect()
}

/// One distinct value with the number of values below it and through it.
#[derive(Clone, Copy)]
struct Step {
    at: f64,
    below: f64,
    through: f64,
}

/// Computes the dip by the algorithm of the paper. Fit the convex minorant of F(x−) and the concave majorant of F(x)
/// over an interval; where they are farthest apart, shrink the interval to the knots around that place; keep the
/// largest misfit in the parts cut off; stop when the distance no longer exceeds it. In counts; halved and divided by
/// n at the end.
fn dip_of_sorted(x: &[f64]) -> f64 {
    let mut steps: Vec<Step> = Vec::with_capacity(x.len());
    let mut below = 0.0;
    for group in ties(x) {
        let through = below + group.len() as f64;
        steps.push(Step {
            at: group[0],
            below,
            through,
        });
        below = through;
    }
    let (mut low, mut high) = (0, steps.len() - 1);
    let mut misfit = 1.0_f64;
    while low < high {
        let part = &steps[low..=high];
        let minorant = hull(part, |step| step.below, 1.0);
        let majorant = hull(part, |step| step.through, -1.0);
        let under = interpolate(part, &minorant, |step| step.below);
        let over = interpolate(part, &majorant, |step| step.through);
        let distance = |i: usize| over[i] - under[i];
        let widest = (0..part.len()).fold(0, |best, i| {
            if distance(i) > distance(best) {
                i
            } else {
                best
            }
        });
        if distance(widest) <= misfit {
            break;
        }
        let new_low = minorant
            .iter()
            .copied()
            .filter(|knot| *knot <= widest)
            .max()
            .unwrap_or(0);
        let new_high = majorant
            .iter()
            .copied()
            .filter(|knot| *knot >= widest)
            .min()
            .unwrap_or(part.len() - 1);
        // The new ends are excluded: the mode may carry mass there.
        for i in 0..new_low {
            misfit = misfit.max(part[i].through - under[i]);
        }
        for i in new_high + 1..part.len() {
            misfit = misfit.max(over[i] - part[i].below);
        }
        if new_low == 0 && new_high == part.len() - 1 {
            break;
        }
        high = low + new_high;
        low += new_low;
    }
    misfit / (2.0 * x.len() as f64)
}

/// Returns the knots of the greatest convex minorant (`side` 1) or least concave majorant (−1).
fn hull(part: &[Step], height: impl Fn(&Step) -> f64, side: f64) -> Vec<usize> {
    let mut knots: Vec<usize> = Vec::new();
    for (i, step) in part.iter().enumerate() {
        while let [.., a, b] = knots[..] {
            let (a, b) = (&part[a], &part[b]);
            let turn = (height(b) - height(a)) * (step.at - b.at)
                - (height(step) - height(b)) * (b.at - a.at);
            if turn * side < 0.0 {
                break;
            }
            knots.pop();
        }
        knots.push(i);
    }
    knots
}

/// Returns the hull's height at every step.
fn interpolate(part: &[Step], knots: &[usize], height: impl Fn(&Step) -> f64) -> Vec<f64> {
    let mut heights = vec![0.0; part.len()];
    for pair in knots.windows(2) {
        let (a, b) = (&part[pair[0]], &part[pair[1]]);
        for i in pair[0]..=pair[1] {
            let share = (part[i].at - a.at) / (b.at - a.at);
            heights[i] = height(a) + share * (height(b) - height(a));
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_is_judged_as_a_short_one_is() {
        let mut stream = Stream::new(5, 0, 0);
        let one: Vec<f64> = (0..20_000).map(|_| stream.normal()).collect();
        let two: Vec<f64> = one
            .iter()
            .zip(0..)
            .map(|(x, place)| x + f64::from(place % 2) * 3.0)
            .collect();
        let even: Vec<f64> = (0..20_000).map(|_| stream.unit()).collect();
        let p = |x: &[f64]| dip_p(x, 200, 1).unwrap().1;
        assert!(p(&one) > 0.9);
        assert!(p(&two) < 0.01);
        assert!((0.01..0.99).contains(&p(&even)), "{}", p(&even));
    }
}
