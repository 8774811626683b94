//! Fairness, makespan, stretch and efficiency of many concurrent instances.
//!
//! Jain's index (Σx)²/(NΣx²) (Jain, Chiu & Hawe 1984); the time from the first start to the last end; t_i/t_solo;
//! X(N)/(N·X(1)).
//!
//! Limits: gives no cause, and assumes that start skew is recorded and small.

use crate::interval::all_finite;

/// Returns Jain's fairness of rates: 1 if all are equal, 1/N if one has everything.
///
/// `None` for no rates, any negative or not finite, or all zero.
pub fn jain(rates: &[f64]) -> Option<f64> {
    if !all_finite(rates) || rates.iter().any(|rate| *rate < 0.0) {
        return None;
    }
    // Scaled by the largest, so that squares neither overflow nor underflow.
    let largest = rates.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 {
        return None;
    }
    let sum: f64 = rates.iter().map(|rate| rate / largest).sum();
    let squares: f64 = rates.iter().map(|rate| (rate / largest).powi(2)).sum();
    Some(sum * sum / (rates.len() as f64 * squares))
}

/// Returns the last end minus the first start. `None` if lengths differ, the slices are empty, or a time is not
/// finite.
pub fn makespan(start: &[f64], end: &[f64]) -> Option<f64> {
    if start.is_empty() || start.len() != end.len() || !all_finite(start) || !all_finite(end) {
        return None;
    }
    let first = start.iter().copied().fold(f64::INFINITY, f64::min);
    let last = end.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Some(last - first)
}

/// Returns `duration / solo`, how many times longer than alone. `None` unless both are finite and `solo` is positive.
pub fn stretch(duration: f64, solo: f64) -> Option<f64> {
    (duration.is_finite() && solo.is_finite() && solo > 0.0).then(|| duration / solo)
}

/// Returns the throughput of `n` instances relative to n times that of one. `None` for n = 0 or unless both are
/// finite and `single` is positive.
pub fn efficiency(throughput: f64, n: usize, single: f64) -> Option<f64> {
    let usable = n > 0 && throughput.is_finite() && single.is_finite() && single > 0.0;
    usable.then(|| throughput / (n as f64 * single))
}
