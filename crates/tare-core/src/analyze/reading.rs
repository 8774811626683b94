//! Reduces a sample to a reading: one typical and one best number.
//!
//! Typical is the median of the observations. If the work is done by a user's program, which may warm up, and there
//! are at least 40 observations, MSER-5 cuts the warm-up first; on the agent's built-in loops it would cut into half
//! of all trials on noise alone. Floor is the best of all observations, warm-up included, because the best needs no
//! warm-up. Both stay in the metric's unit; [`cost`] inverts rates, so that more is always worse.
//! Limits: does not resolve several plateaus, as a just-in-time compiler produces; such a series is only marked as
//! not steady.

use tare_model::Better;
use tare_stats::{median, mser5};

/// Shorter series are taken whole: a cut needs at least eight batches of five to be meaningful.
const WARM_UP_FROM: usize = 40;

/// One trial's result for one metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Reading {
    /// Median of the steady part, in the metric's unit.
    pub(crate) typical: f64,
    /// Best observation, in the metric's unit.
    pub(crate) floor: f64,
    /// Mean of all observations, harmonic for rates: what all the work took.
    pub(crate) total: f64,
    /// Whether the series did not settle within its first half.
    pub(crate) unsteady: bool,
}

/// Reads a sample; `None` if it is empty or contains a non-finite number.
pub(crate) fn read(observations: &[f64], better: Better, may_warm_up: bool) -> Option<Reading> {
    let cut = if may_warm_up && observations.len() >= WARM_UP_FROM {
        mser5(observations)?
    } else {
        tare_stats::warm_up::WarmUp {
            drop: 0,
            hit_limit: false,
        }
    };
    let typical = median(&observations[cut.drop..])?;
    let best = match better {
        Better::Lower => observations.iter().copied().reduce(f64::min),
        Better::Higher => observations.iter().copied().reduce(f64::max),
    };
    let floor = best.filter(|value| value.is_finite())?;
    Some(Reading {
        typical,
        floor,
        total: mean(observations, better).unwrap_or(f64::NAN),
        unsteady: cut.hit_limit,
    })
}

/// The arithmetic mean if less is better, otherwise the harmonic mean; `None` for no values.
pub(super) fn mean(values: &[f64], better: Better) -> Option<f64> {
    let n = values.len() as f64;
    let mean = match better {
        Better::Lower => values.iter().sum::<f64>() / n,
        Better::Higher => n / values.iter().map(|value| 1.0 / value).sum::<f64>(),
    };
    mean.is_finite().then_some(mean)
}

/// The natural logarithm of a value's cost: of the value itself if less is better, otherwise of its reciprocal.
/// `None` for values that have no logarithm.
pub(crate) fn ln_cost(value: f64, better: Better) -> Option<f64> {
    let ln = (value > 0.0 && value.is_finite()).then(|| value.ln())?;
    Some(match better {
        Better::Lower => ln,
        Better::Higher => -ln,
    })
}

#[allow(clippy::float_cmp, reason = "copies, and means of whole numbers")]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_value_skips_warm_up_and_floor_includes_it() {
        let mut series = vec![90.0; 10];
        series[0] = 4.0;
        series.extend((0..40).map(|step| 10.0 + f64::from(step % 3)));
        let reading = read(&series, Better::Lower, true).unwrap();
        assert_eq!(reading.typical, 11.0);
        assert_eq!(reading.floor, 4.0);
        assert!((reading.total - 1_253.0 / 50.0).abs() < 0.1, "{reading:?}");
        assert!(!reading.unsteady);
    }

    #[test]
    fn short_series_has_no_warm_up_cut() {
        let mut settling = vec![90.0; 30];
        settling.extend([10.0; 30]);
        let short: Vec<f64> = (0..39).map(f64::from).collect();
        // Neither has the series of a loop in native code.
        for (series, may_warm_up, typical) in [
            (&settling, false, 50.0),
            (&settling, true, 10.0),
            (&short, true, 19.0),
        ] {
            let found = read(series, Better::Lower, may_warm_up).unwrap();
            assert_eq!(found.typical, typical);
        }
        let falling: Vec<f64> = (0..80).map(|step| 200.0 - f64::from(step)).collect();
        assert!(read(&falling, Better::Lower, true).unwrap().unsteady);
        let best_rate = read(&[1.0, 3.0, 2.0], Better::Higher, true).unwrap().floor;
        assert_eq!(best_rate, 3.0);
    }

    #[test]
    fn empty_infinite_or_nan_series_gives_no_reading() {
        for observations in [&[][..], &[1.0, f64::NAN], &[f64::INFINITY, 1.0]] {
            assert_eq!(read(observations, Better::Lower, true), None);
        }
    }

    #[test]
    fn value_without_logarithm_has_no_cost() {
        for value in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ln_cost(value, Better::Lower), None);
        }
        assert_eq!(
            ln_cost(4.0, Better::Higher),
            ln_cost(4.0, Better::Lower).map(|ln| -ln)
        );
    }
}
