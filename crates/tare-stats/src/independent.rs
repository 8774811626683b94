//! The difference of two independent estimates, from their intervals alone.
//!
//! Two runs share no block, so nothing can be paired; all that is known of each is its estimate with an interval that
//! need not be symmetric. The method of variance estimates recovery (Zou and Donner 2008) takes from each interval
//! the distance to the end on the relevant side and adds the distances in squares.
//!
//! Limits: cannot check independence. Two estimates from the same blocks are dependent; pair those.

use crate::interval::Interval;

/// Returns `second − first` with its interval, at the lower of the two levels. Not finite if an end is not.
pub fn difference_of_independent(first: &Interval, second: &Interval) -> Interval {
    let point = second.point - first.point;
    let below = (second.point - second.low).hypot(first.high - first.point);
    let above = (second.high - second.point).hypot(first.point - first.low);
    Interval {
        point,
        low: point - below,
        high: point + above,
        level: first.level.min(second.level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stream, hodges_lehmann_paired};

    fn interval(low: f64, point: f64, high: f64) -> Interval {
        Interval::new(low, point, high, 0.95)
    }

    #[test]
    fn difference_interval_adds_far_ends_in_quadrature() {
        let both =
            difference_of_independent(&interval(7.0, 10.0, 13.0), &interval(16.0, 20.0, 24.0));
        assert_eq!((both.low, both.point, both.high), (5.0, 10.0, 15.0));
        // The lower bound uses the lower half-width of the second and the upper one of the first.
        let skew = difference_of_independent(&interval(0.0, 0.0, 3.0), &interval(-4.0, 0.0, 0.0));
        assert_eq!((skew.low, skew.point, skew.high), (-5.0, 0.0, 0.0));
        let itself = difference_of_independent(&interval(1.0, 1.0, 1.0), &interval(1.0, 1.0, 1.0));
        assert_eq!((itself.low, itself.high), (0.0, 0.0));
    }

    #[test]
    fn independent_difference_covers_at_nominal_level() {
        let mut random = Stream::new(11, 0, 0);
        let mut drawn = |n: usize, middle: f64, spread: f64| {
            let values: Vec<f64> = (0..n).map(|_| middle + spread * random.normal()).collect();
            hodges_lehmann_paired(&values, 0.95).unwrap().interval
        };
        let n = 2_000;
        let holds = (0..n)
            .filter(|_| {
                let (first, second) = (drawn(8, 0.1, 0.02), drawn(20, 0.15, 0.05));
                difference_of_independent(&first, &second).contains(0.05)
            })
            .count();
        // Exact intervals of few blocks cover a little more than their level.
        assert!((1_880..=1_990).contains(&holds), "{holds} of {n}");
    }
}
