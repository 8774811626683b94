//! How often is the environment the slower one?
//!
//! What: P(d > 0) of paired blocks; U/(nm) of two samples (A₁₂; Vargha & Delaney 2000).
//! Ties count one half, so that exchanging the arms gives one minus the value.
//!
//! Why: a size of effect without units and without normality.
//!
//! What it cannot see: how much slower. A cost of 0.1 % in every block gives 1.

use crate::interval::{all_finite, sorted};
use crate::selection::{differences_at_most, differences_below};

/// Share of `d` above zero, zeros by half. `None` for no values or any not finite.
pub fn superiority_paired(d: &[f64]) -> Option<f64> {
    superiority_unpaired(&[0.0], d)
}

/// Share of pairs with b > a, ties by half. `None` if a sample is empty or not finite.
pub fn superiority_unpaired(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() || !all_finite(a) || !all_finite(b) {
        return None;
    }
    let (a, b) = (sorted(a), sorted(b));
    let (at_most, below) = (
        differences_at_most(&a, &b, 0.0),
        differences_below(&a, &b, 0.0),
    );
    let pairs = (a.len() * b.len()) as f64;
    Some(1.0 - (at_most + below) as f64 / 2.0 / pairs)
}
