//! Decides a publication's rule over several ratios, and formats ratios and bounds.

use tare_model::publication::Rule;
use tare_model::{ClaimVerdict, whole_place};

/// Decides a rule about several ratios.
pub(super) fn of_several(rule: &Rule, holds: usize, fails: usize, n: usize) -> ClaimVerdict {
    match rule {
        Rule::All(_) if fails > 0 => ClaimVerdict::Fails,
        Rule::All(_) if holds == n => ClaimVerdict::Holds,
        Rule::Most(several) => {
            let wanted = several.share.unwrap_or(0.5) * n as f64;
            if holds as f64 > wanted {
                ClaimVerdict::Holds
            } else if (n - fails) as f64 <= wanted {
                ClaimVerdict::Fails
            } else {
                ClaimVerdict::Undecided
            }
        }
        _ => ClaimVerdict::Undecided,
    }
}

/// Formats with three significant digits.
pub(super) fn three(value: f64) -> String {
    let places = if value > 0.0 {
        whole_place((2.0 - value.log10().floor()).clamp(0.0, 6.0))
    } else {
        0
    };
    format!("{value:.places$}")
}

/// Bounds in words.
pub(super) fn wanted((low, high): (f64, f64)) -> String {
    match (low > 0.0, high.is_finite()) {
        (true, true) => format!("between {low} and {high}"),
        (true, false) => format!("at least {low}"),
        (false, _) => format!("at most {high}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_claim_have_three_digits() {
        assert_eq!(three(44.617), "44.6");
        assert_eq!(three(1.0), "1.00");
        assert_eq!(three(1234.5), "1234");
        assert_eq!(three(0.01234), "0.0123");
    }
}
