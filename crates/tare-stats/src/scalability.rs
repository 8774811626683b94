//! Fits throughput as a function of the number of instances, in three parameters.
//!
//! The universal scalability law X(N) = γN/(1 + α(N − 1) + βN(N − 1)) (Gunther 2007), Amdahl's law (β = 0) and
//! proportional growth (α = β = 0), by weighted least squares on X with α, β ≥ 0, compared by AICc.
//!
//! γ, α, β start from the fit of N/X, which is linear in them, and are improved by Levenberg–Marquardt. If a bound
//! binds, the smaller model is fitted and the best admissible one kept.
//!
//! Limits: α and β summarise a curve, not mechanisms; intervals come from [`crate::block_bootstrap`], and a peak
//! outside the measured sizes is a guess.

pub use tare_model::ScalingLaw;

use crate::interval::{Undetermined, check, enough, sorted};

/// Distinct sizes needed for a fit.
const FEWEST_SIZES: usize = 6;
const MOST_STEPS: usize = 500;

/// A fitted law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingFit {
    /// The law that was fitted.
    pub law: ScalingLaw,
    /// Throughput of one instance.
    pub gamma: f64,
    /// Contention: the serial share.
    pub alpha: f64,
    /// Coherence: the overhead of coordination between each pair of instances.
    pub beta: f64,
    /// Sum of squared residuals.
    pub residual: f64,
    /// Akaike's criterion corrected for few points; smaller is better. Infinite if there are too few points for the
    /// correction, −∞ for a perfect fit.
    pub aicc: f64,
}

impl ScalingFit {
    /// Returns γN/(1 + α(N − 1) + βN(N − 1)).
    pub fn throughput(&self, n: f64) -> f64 {
        predict(n, [self.gamma, self.alpha, self.beta])
    }

    /// Returns √((1 − α)/β), the size beyond which throughput falls. `None` without coherence overhead, with α ≥ 1,
    /// or beyond 1.5 times the `largest` size measured.
    pub fn peak(&self, largest: f64) -> Option<f64> {
        let peak = ((1.0 - self.alpha) / self.beta).sqrt();
        (self.beta > 0.0 && self.alpha < 1.0 && peak <= 1.5 * largest).then_some(peak)
    }
}

/// Fits one law to throughputs `x` at sizes `n`.
///
/// Needs at least six distinct sizes, all ≥ 1, and positive throughputs of the same number.
pub fn fit_scaling(law: ScalingLaw, n: &[f64], x: &[f64]) -> Result<ScalingFit, Undetermined> {
    check(&[n, x], 0.5)?;
    if n.len() != x.len() {
        return Err(Undetermined::OutOfDomain {
            must: "sizes and throughputs must be equally many",
        });
    }
    let mut distinct = sorted(n);
    distinct.dedup();
    enough(distinct.len(), FEWEST_SIZES)?;
    let data: Vec<Point> = n.iter().copied().zip(x.iter().copied()).collect();
    if data.iter().any(|(n, x)| *n < 1.0 || *x <= 0.0) {
        return Err(Undetermined::OutOfDomain {
            must: "sizes must be at least 1, throughputs positive",
        });
    }
    let free: &[[bool; 3]] = match law {
        ScalingLaw::Linear => &[[true, false, false]],
        ScalingLaw::Amdahl => &[[true, true, false], [true, false, false]],
        ScalingLaw::Universal => &[
            [true, true, true],
            [true, true, false],
            [true, false, true],
            [true, false, false],
        ],
    };
    let (p, residual) = free
        .iter()
        .map(|free| improve(&data, *free))
        .filter(|(p, _)| p[1] >= 0.0 && p[2] >= 0.0 && p.iter().all(|value| value.is_finite()))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("the linear law has one free parameter, which is always admissible");
    let parameters = match law {
        ScalingLaw::Linear => 1.0,
        ScalingLaw::Amdahl => 2.0,
        ScalingLaw::Universal => 3.0,
    };
    let aicc = corrected_akaike(n.len() as f64, parameters, residual);
    Ok(ScalingFit {
        law,
        gamma: p[0],
        alpha: p[1],
        beta: p[2],
        residual,
        aicc,
    })
}

/// Fits all three laws and returns the one with the smallest AICc; ties go to the simpler.
pub fn best_scaling(n: &[f64], x: &[f64]) -> Result<ScalingFit, Undetermined> {
    let mut best = fit_scaling(ScalingLaw::Linear, n, x)?;
    for law in [ScalingLaw::Amdahl, ScalingLaw::Universal] {
        let fit = fit_scaling(law, n, x)?;
        if fit.aicc < best.aicc {
            best = fit;
        }
    }
    Ok(best)
}

/// A size and its throughput.
type Point = (f64, f64);

fn residual_of(data: &[Point], p: [f64; 3]) -> f64 {
    data.iter().map(|(n, x)| (x - predict(*n, p)).powi(2)).sum()
}

fn predict(n: f64, [gamma, alpha, beta]: [f64; 3]) -> f64 {
    gamma * n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0))
}

/// Returns −2 ln L + 2k + 2k(k + 1)/(n − k − 1) with k parameters and one for the spread.
fn corrected_akaike(n: f64, parameters: f64, residual: f64) -> f64 {
    let k = parameters + 1.0;
    if n - k - 1.0 <= 0.0 {
        return f64::INFINITY;
    }
    n * (residual / n).ln() + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0)
}

/// Runs Levenberg–Marquardt over the free parameters, the others held at zero.
fn improve(data: &[Point], free: [bool; 3]) -> ([f64; 3], f64) {
    let mut p = start(data, free);
    let mut residual = residual_of(data, p);
    let mut damping = 1e-3;
    for _ in 0..MOST_STEPS {
        let mut normal = [[0.0; 3]; 3];
        let mut gradient = [0.0; 3];
        for &(n, x) in data {
            let fitted = predict(n, p);
            let divisor = 1.0 + p[1] * (n - 1.0) + p[2] * n * (n - 1.0);
            let slope = [
                n / divisor,
                -fitted * (n - 1.0) / divisor,
                -fitted * n * (n - 1.0) / divisor,
            ];
            for i in 0..3 {
                gradient[i] += slope[i] * (x - fitted);
                for j in 0..3 {
                    normal[i][j] += slope[i] * slope[j];
                }
            }
        }
        for (i, row) in normal.iter_mut().enumerate() {
            row[i] *= 1.0 + damping;
        }
        let step = solve(normal, gradient, free);
        let next = [p[0] + step[0], p[1] + step[1], p[2] + step[2]];
        let next_residual = residual_of(data, next);
        if next_residual.is_finite() && next_residual <= residual {
            let small = (0..3).all(|i| step[i].abs() <= 1e-12 * (p[i].abs() + 1e-12));
            p = next;
            residual = next_residual;
            damping = (damping / 10.0_f64).max(1e-15);
            if small {
                break;
            }
        } else {
            damping *= 10.0;
            if damping > 1e12 {
                break;
            }
        }
    }
    (p, residual)
}

/// Returns start values: N/X = a + b(N − 1) + cN(N − 1) is linear with γ = 1/a, α = b/a, β = c/a.
fn start(data: &[Point], free: [bool; 3]) -> [f64; 3] {
    let mut normal = [[0.0; 3]; 3];
    let mut right = [0.0; 3];
    for &(n, x) in data {
        let basis = [1.0, n - 1.0, n * (n - 1.0)];
        for i in 0..3 {
            right[i] += basis[i] * n / x;
            for j in 0..3 {
                normal[i][j] += basis[i] * basis[j];
            }
        }
    }
    let [a, b, c] = solve(normal, right, free);
    if a > 0.0 {
        return [1.0 / a, b / a, c / a];
    }
    let first = data.iter().map(|(n, x)| x / n).fold(0.0, f64::max);
    [first, 0.0, 0.0]
}

/// Solves for the free unknowns by Gauss elimination with pivoting; the others are zero. A singular system gives
/// zeros.
fn solve(mut matrix: [[f64; 3]; 3], mut right: [f64; 3], free: [bool; 3]) -> [f64; 3] {
    for i in 0..3 {
        if !free[i] {
            matrix[i] = [0.0; 3];
            for row in &mut matrix {
                row[i] = 0.0;
            }
            matrix[i][i] = 1.0;
            right[i] = 0.0;
        }
    }
    for column in 0..3 {
        let pivot = (column..3).fold(column, |best, row| {
            if matrix[row][column].abs() > matrix[best][column].abs() {
                row
            } else {
                best
            }
        });
        if matrix[pivot][column] == 0.0 {
            return [0.0; 3];
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..3 {
            let factor = matrix[row][column] / matrix[column][column];
            let above = matrix[column];
            for (value, above) in matrix[row].iter_mut().zip(above).skip(column) {
                *value -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    let mut solution = [0.0; 3];
    for row in (0..3).rev() {
        let known: f64 = (row + 1..3).map(|k| matrix[row][k] * solution[k]).sum();
        solution[row] = (right[row] - known) / matrix[row][row];
    }
    solution
}
