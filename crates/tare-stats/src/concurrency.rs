//! Many instances at once: fairness, makespan, stretch, efficiency.
//!
//! What: Jain's index (Σx)²/(NΣx²) (Jain, Chiu & Hawe 1984); the time from the first
//! start to the last end, and what ordinary spread alone makes of it, μ + σ·Φ⁻¹((N −
//! 0.375)/(N + 0.25)) (Blom 1958); t_i/t_solo; X(N)/(N·X(1)).
//!
//! Why together: a makespan is a maximum and grows with N without any interference;
//! only its excess over the expected maximum says that one instance was held back.
//!
//! What it cannot see: why. Nor start skew, which must be recorded and be small.

use crate::interval::{all_finite, mean};
use crate::mean::variance;
use crate::special::normal_quantile;

/// Jain's fairness of rates: 1 when all are equal, 1/N when one has everything.
///
/// `None` for no rates, any negative or not finite, or all zero.
pub fn jain(rates: &[f64]) -> Option<f64> {
    if !all_finite(rates) || rates.iter().any(|rate| *rate < 0.0) {
        return None;
    }
    // Scaled by the largest, so that squares neither overflow nor vanish.
    let largest = rates.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let sum: f64 = rates.iter().map(|rate| rate / largest).sum();
    let squares: f64 = rates.iter().map(|rate| (rate / largest).powi(2)).sum();
    Some(sum * sum / (rates.len() as f64 * squares))
}

/// Last end less first start. `None` if lengths differ, there is none, or a time is not
/// finite.
pub fn makespan(start: &[f64], end: &[f64]) -> Option<f64> {
    if start.is_empty() || start.len() != end.len() || !all_finite(start) || !all_finite(end) {
        return None;
    }
    let first = start.iter().copied().fold(f64::INFINITY, f64::min);
    let last = end.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(last - first)
}

/// The expected maximum of `n` independent normal durations, by Blom's approximation.
/// The mean itself for one; `None` for none.
pub fn expected_makespan(mean: f64, sd: f64, n: usize) -> Option<f64> {
    let n = match n {
        0 => return None,
        n => n as f64,
    };
    let usable = mean.is_finite() && sd.is_finite() && sd >= 0.0;
    usable.then(|| mean + sd * normal_quantile((n - 0.375) / (n + 0.25)))
}

/// The longest of `durations` less the maximum expected from their own mean and spread.
/// Around zero for ordinary spread, positive for a straggler. `None` below two.
pub fn makespan_excess(durations: &[f64]) -> Option<f64> {
    if durations.len() < 2 || !all_finite(durations) {
        return None;
    }
    let longest = durations.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(longest - expected_makespan(mean(durations), variance(durations).sqrt(), durations.len())?)
}

/// How many times longer than alone. `None` unless both are finite and `solo` positive.
pub fn stretch(duration: f64, solo: f64) -> Option<f64> {
    (duration.is_finite() && solo.is_finite() && solo > 0.0).then(|| duration / solo)
}

/// Throughput of `n` instances relative to n times that of one. `None` for n = 0 or
/// unless both are finite and `single` positive.
pub fn efficiency(throughput: f64, n: usize, single: f64) -> Option<f64> {
    let usable = n > 0 && throughput.is_finite() && single.is_finite() && single > 0.0;
    usable.then(|| throughput / (n as f64 * single))
}
