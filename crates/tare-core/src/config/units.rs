//! Parses durations, percentages and sizes in human notation.

use tare_model::whole_part;

/// Reads a duration such as `90s`, `2m`, `80ms`, `1.5h` as nanoseconds; the unit is required.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let factor = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        "" => return Err(format!("`{text}` has no unit; write `{text}s` for seconds")),
        _ => {
            return Err(format!(
                "`{unit}` is not a unit of time; use ns, us, ms, s, m or h"
            ));
        }
    };
    let value = number
        .parse::<f64>()
        .map_err(|_| format!("`{text}` is not a duration such as `90s`"))?;
    let nanoseconds = value * factor;
    if nanoseconds.is_finite() && (0.0..=1e18).contains(&nanoseconds) {
        Ok(whole_part(nanoseconds))
    } else {
        Err(format!("`{text}` is out of range"))
    }
}

/// Formats a duration for [`duration_ns`], to be suggested to the user: rounded up, and no more precise than an
/// estimate.
pub fn at_least(ns: u64) -> String {
    let (seconds, unit) = match ns.div_ceil(1_000_000_000) {
        0..=100 => (1, "s"),
        101..=7_200 => (60, "m"),
        _ => (3_600, "h"),
    };
    let amount = ns.div_ceil(seconds * 1_000_000_000).max(1);
    // Above twenty, the last digit is not significant.
    let amount = if amount > 20 {
        amount.next_multiple_of(10)
    } else {
        amount
    };
    format!("{amount}{unit}")
}

/// Reads a duration that is not zero.
pub fn some_duration_ns(text: &str) -> Result<u64, String> {
    match duration_ns(text) {
        Ok(0) => Err(format!("`{text}` must be more than nothing")),
        other => other,
    }
}

/// Reads a percentage such as `2%` as a fraction; the sign is required, so that 2 and 0.02 cannot be confused.
pub fn fraction(text: &str) -> Result<f64, String> {
    let (number, unit) = split(text);
    if unit != "%" {
        return Err(format!(
            "`{text}` is not a percentage; write for example `2%`"
        ));
    }
    let value = number
        .parse::<f64>()
        .map_err(|_| format!("`{text}` is not a percentage such as `2%`"))?;
    if value > 0.0 && value < 1000.0 {
        Ok(value / 100.0)
    } else {
        Err(format!("`{text}` must be above 0% and below 1000%"))
    }
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || c == '.'))
        .unwrap_or(text.len());
    (&text[..end], text[end..].trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_duration_parses_and_is_long_enough() {
        for (seconds, text) in [
            (0, "1s"),
            (7, "7s"),
            (41, "50s"),
            (101, "2m"),
            (1_300, "30m"),
            (9_000, "3h"),
        ] {
            let ns = seconds * 1_000_000_000;
            assert_eq!(at_least(ns), text);
            assert!(some_duration_ns(&at_least(ns)).unwrap() >= ns);
        }
    }

    #[test]
    fn durations_need_a_known_unit() {
        assert_eq!(duration_ns("90s"), Ok(90_000_000_000));
        assert_eq!(duration_ns("1.5 ms"), Ok(1_500_000));
        assert_eq!(duration_ns("2m"), Ok(120_000_000_000));
        for text in ["90", "", "s", "1..2s", "5 parsecs", "-3s", "1e99s"] {
            assert!(duration_ns(text).is_err(), "{text:?} passed");
        }
    }

    #[test]
    fn a_duration_that_must_be_some_time_is_not_zero() {
        assert_eq!(some_duration_ns("1ns"), Ok(1));
        for text in ["0s", "0.1ns", "90"] {
            assert!(some_duration_ns(text).is_err(), "{text:?} passed");
        }
    }

    #[test]
    fn a_percentage_needs_its_sign_and_a_sensible_value() {
        assert_eq!(fraction("2%"), Ok(0.02));
        for text in ["2", "0%", "-1%", "x%", "5000%"] {
            assert!(fraction(text).is_err(), "{text:?} passed");
        }
    }
}
