//! Turns two intervals and a margin into one of eight verdicts.
//!
//! With M = ln(1 + margin), a 95 % interval [L, U] decides whether there is a difference, and a 90 % interval inside
//! (−M, M) decides equivalence (two one-sided tests at 5 % each; Schuirmann 1987, Westlake 1976).
//!
//! Eight, because "no significant difference" is not "no overhead". Overhead can be real and negligible, or real and
//! of unknown size; only a narrow 90 % interval is *equivalent*, and the rest is *inconclusive* and must be reported
//! with its detectable effect.
//!
//! Limits: does not check whether the intervals are trustworthy. Drift, order effects and fragile blocks are left to
//! the diagnostics.

use crate::interval::Interval;

pub use tare_model::Verdict;

/// Returns the verdict of a 95 % and a 90 % interval on the ln scale and a relative margin such as 0.02. The first
/// condition that holds decides.
///
/// All comparisons are strict: a bound on the margin, or on zero, proves nothing. A margin that is negative, infinite
/// or `NaN`, or a bound that is `NaN`, gives inconclusive.
pub fn verdict(ci95: &Interval, ci90: &Interval, margin: f64) -> Verdict {
    let limit = margin.ln_1p();
    let bounds = [ci95.low, ci95.high, ci90.low, ci90.high];
    if margin < 0.0 || !limit.is_finite() || bounds.iter().any(|bound| bound.is_nan()) {
        return Verdict::Inconclusive;
    }
    let within = ci90.low > -limit && ci90.high < limit;
    if ci95.low > limit {
        Verdict::MaterialCost
    } else if ci95.high < -limit {
        Verdict::MaterialGain
    } else if ci95.low > 0.0 {
        if within {
            Verdict::NegligibleCost
        } else {
            Verdict::Cost
        }
    } else if ci95.high < 0.0 {
        if within {
            Verdict::NegligibleGain
        } else {
            Verdict::Gain
        }
    } else if within {
        Verdict::Equivalent
    } else {
        Verdict::Inconclusive
    }
}
