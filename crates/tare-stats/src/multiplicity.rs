//! Adjusts p-values for many cells in one report.
//!
//! Benjamini–Hochberg 1995 step-up values q_(i) = min_{j ≥ i} p_(j)·N/j, and Holm's.
//!
//! With a hundred cells of identical environments, five false positives are expected. Cells that share blocks depend
//! positively, which Benjamini–Hochberg allows.
//!
//! Limits: the family is not chosen here; the plan declares it before the data.

/// Returns adjusted p-values in the order given; reject those that are ≤ q.
///
/// Empty for none, the value itself for one; ties share a value. `None` if any p is `NaN` or outside [0, 1].
pub fn benjamini_hochberg(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let n = p.len() as f64;
    let mut adjusted = vec![0.0; p.len()];
    let mut least = 1.0_f64;
    for (position, &i) in order.iter().enumerate().rev() {
        least = least.min(p[i] * n / (position + 1) as f64);
        // p·N/N may round to less than p.
        adjusted[i] = least.max(p[i]);
    }
    Some(adjusted)
}

/// Returns Holm's step-down p-values in the order given (Holm 1979): rejecting those ≤ α keeps the family-wise error
/// at α, under any dependence. `None` if any p is `NaN` or outside [0, 1].
pub fn holm(p: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p)?;
    let mut adjusted = vec![0.0; p.len()];
    let mut most = 0.0_f64;
    for (position, &i) in order.iter().enumerate() {
        most = most.max(p[i] * (p.len() - position) as f64);
        adjusted[i] = most.min(1.0);
    }
    Some(adjusted)
}

/// Returns the places of the p-values in ascending order; `None` if any is `NaN` or outside [0, 1].
fn ascending(p: &[f64]) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let is_valid = p.iter().all(|value| (0.0..=1.0).contains(value));
    is_valid.then_some(order)
}
