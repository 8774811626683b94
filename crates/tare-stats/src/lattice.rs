//! Tail probabilities of symmetric integer sums too large to count exactly.
//!
//! P(T ≤ w) by an Edgeworth series in the cumulants 2, 4, 6 and 8. Treat T as a smooth S rounded to integers. Then
//! P(T ≤ w) = P(S ≤ w + ½), and the cumulants of S are those of T *minus* those of the rounding error, a uniform of
//! width one (B_{2r}/(2r): 1/12, −1/120, 1/252, −1/240; Sheppard's corrections, Kolassa & McCullagh 1990). Adding
//! them instead, as the convolution with a uniform suggests, makes the error a hundred times larger. Terms are
//! products of λ_r/r!. The tests compare with exact counting.
//!
//! Limits: the series breaks down beyond five standard deviations; there the normal tail is scaled to join. These
//! sums have lighter tails than the normal, so the result is too large, which is the safe side.

use crate::special::{normal_cdf, normal_density};

/// B_{2r}/(2r) for r = 1…4: the even cumulants of a uniform of width one.
pub(crate) const UNIFORM_CUMULANTS: [f64; 4] =
    [1.0 / 12.0, -1.0 / 120.0, 1.0 / 252.0, -1.0 / 240.0];

/// Where the scaled normal tail replaces the series, in standard deviations.
const SERIES_ENDS: f64 = 5.0;

/// Returns P(T ≤ w) for an integer T that is symmetric about `mean` and has the even cumulants κ₂, κ₄, κ₆, κ₈.
pub(crate) fn lattice_cdf(w: f64, mean: f64, cumulants: [f64; 4]) -> f64 {
    let mut kappa = cumulants;
    for (value, rounding) in kappa.iter_mut().zip(UNIFORM_CUMULANTS) {
        *value -= rounding;
    }
    let sd = kappa[0].sqrt();
    let standardised = [
        kappa[1] / sd.powi(4),
        kappa[2] / sd.powi(6),
        kappa[3] / sd.powi(8),
    ];
    let x = (w + 0.5 - mean) / sd;
    if x > 0.0 {
        1.0 - lower(-x, standardised)
    } else {
        lower(x, standardised)
    }
}

fn lower(x: f64, standardised: [f64; 3]) -> f64 {
    if x >= -SERIES_ENDS {
        return series(x, standardised);
    }
    normal_cdf(x) * series(-SERIES_ENDS, standardised) / normal_cdf(-SERIES_ENDS)
}

fn series(x: f64, [l4, l6, l8]: [f64; 3]) -> f64 {
    // Hermite polynomials He_0…He_11 by He_{k+1} = x He_k − k He_{k−1}.
    let mut he = [1.0; 12];
    he[1] = x;
    for k in 1..11 {
        he[k + 1] = x * he[k] - k as f64 * he[k - 1];
    }
    let first = l4 / 24.0 * he[3];
    let second = l6 / 720.0 * he[5] + l4 * l4 / 1_152.0 * he[7];
    let third = l8 / 40_320.0 * he[7] + l4 * l6 / 17_280.0 * he[9] + l4.powi(3) / 82_944.0 * he[11];
    (normal_cdf(x) - normal_density(x) * (first + second + third)).clamp(0.0, 1.0)
}
