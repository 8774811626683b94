//! Finds how much of a series inside one trial is warm-up.
//!
//! MSER-5 (White 1997; Spratt 1998): means of batches of five, and the cut d in the first half that minimises Σ_{i ≥
//! d}(z_i − z̄)²/(m − d)², an estimate of the squared error of the mean of the rest.
//!
//! No tuning, and it trades bias against lost data in one formula.
//!
//! Limits: a series that never settles gives a cut at the limit of one half ([`WarmUp::hit_limit`]); just-in-time
//! compilers with several plateaus need change points instead.

use crate::interval::{all_finite, mean};

/// Values per batch.
const BATCH: usize = 5;
/// Below four batches a cut would leave a single one, whose spread is zero.
const FEWEST_BATCHES: usize = 4;

/// Where a series settles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// Values to drop from the start.
    pub drop: usize,
    /// The best cut is the last one allowed: the series may not have settled.
    pub hit_limit: bool,
}

/// Computes the MSER-5 cut. The first of equally good cuts wins, so a constant series keeps everything. `None` for
/// values that are not finite; below 20 values nothing is cut.
pub fn mser5(series: &[f64]) -> Option<WarmUp> {
    if !all_finite(series) {
        return None;
    }
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < FEWEST_BATCHES {
        return Some(WarmUp {
            drop: 0,
            hit_limit: false,
        });
    }
    let last = batches.len() / 2;
    let mut score = vec![0.0; last + 1];
    // Mean and squared deviations of the tail, grown from the end (Welford 1962).
    let (mut centre, mut spread) = (0.0, 0.0);
    for (start, &value) in batches.iter().enumerate().rev() {
        let count = (batches.len() - start) as f64;
        let off = value - centre;
        centre += off / count;
        spread += off * (value - centre);
        if let Some(slot) = score.get_mut(start) {
            *slot = spread / (count * count);
        }
    }
    let mut best = 0;
    for (start, &value) in score.iter().enumerate() {
        // Differences this small are rounding.
        if value < score[best] - 1e-18 {
            best = start;
        }
    }
    Some(WarmUp {
        drop: best * BATCH,
        hit_limit: best == last,
    })
}
