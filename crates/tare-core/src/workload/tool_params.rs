//! Parses parameters in the notation of tools, such as `4k` or `500ms`, into one number in one unit.
//!
//! A size has binary suffixes, as in fio, iozone and dd; a duration without a suffix is in seconds. Both are
//! converted to one unit, so that equal parameters give equal arguments.
//! Not a workload itself.

use tare_model::{Params, Value};

use super::ParamError;

/// The size in bytes of parameter `name`, between `low` and `high`.
///
/// # Errors
/// The value is not such a size.
pub fn size(params: &Params, name: &str, low: u64, high: u64) -> Result<u64, ParamError> {
    let given = params.value(name);
    let bytes = match given {
        Some(Value::Int(bytes)) => u64::try_from(*bytes).ok(),
        Some(Value::Text(text)) => {
            let text = text.trim().to_ascii_lowercase();
            let text = text.strip_suffix("ib").unwrap_or(&text);
            let units = [
                ("", 1),
                ("b", 1),
                ("k", 1 << 10),
                ("m", 1 << 20),
                ("g", 1 << 30),
                ("t", 1 << 40),
            ];
            scaled(text, &units)
        }
        _ => None,
    };
    within(bytes, low, high).ok_or_else(|| {
        ParamError::refused(
            name,
            given,
            format!("use a size between {low} and {high} bytes, such as `4k` or `64m`"),
        )
    })
}

/// The bits per second of parameter `name`, between `low` and `high`; suffixes are decimal, as in network tools.
///
/// # Errors
/// The value is not such a rate.
pub fn bit_rate(params: &Params, name: &str, low: u64, high: u64) -> Result<u64, ParamError> {
    let given = params.value(name);
    let rate = match given {
        Some(Value::Int(rate)) => u64::try_from(*rate).ok(),
        Some(Value::Text(text)) => {
            let units = [
                ("", 1),
                ("k", 1_000),
                ("m", 1_000_000),
                ("g", 1_000_000_000),
            ];
            scaled(&text.trim().to_ascii_lowercase(), &units)
        }
        _ => None,
    };
    within(rate, low, high).ok_or_else(|| {
        let hint = format!("use a rate between {low} and {high} bits per second, such as `100m`");
        ParamError::refused(name, given, hint)
    })
}

/// The milliseconds of parameter `name`, between `low` and `high`.
///
/// # Errors
/// The value is not such a duration.
pub fn duration_ms(params: &Params, name: &str, low: u64, high: u64) -> Result<u64, ParamError> {
    let given = params.value(name);
    let ms = match given {
        Some(Value::Int(seconds)) => u64::try_from(*seconds)
            .ok()
            .and_then(|seconds| seconds.checked_mul(1_000)),
        Some(Value::Text(text)) => {
            let text = text.trim().to_ascii_lowercase();
            let units = [
                ("ms", 1),
                ("s", 1_000),
                ("", 1_000),
                ("m", 60_000),
                ("h", 3_600_000),
            ];
            scaled(&text, &units)
        }
        _ => None,
    };
    within(ms, low, high).ok_or_else(|| {
        ParamError::refused(
            name,
            given,
            format!("use a duration between {low} and {high} ms, such as `500ms`, `1s` or `5m`"),
        )
    })
}

/// Digits with one of the suffixes.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let (_, factor) = units.iter().find(|(unit, _)| *unit == suffix)?;
    // `parse` accepts a sign; a size has none.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

fn within(value: Option<u64>, low: u64, high: u64) -> Option<u64> {
    value.filter(|value| (low..=high).contains(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_fio_and_dd_write_them() {
        let read = |value: Value| size(&Params::new().with("bs", value), "bs", 1, 1 << 40).ok();
        assert_eq!(read("4k".into()), Some(4096));
        assert_eq!(read("4K".into()), Some(4096));
        assert_eq!(read("1MiB".into()), Some(1 << 20));
        assert_eq!(read("512".into()), Some(512));
        assert_eq!(read(4096.into()), Some(4096));
        for bad in ["", "k", "4x", "-4k", "4 k", "99999999999g", "4.5m", "$(id)"] {
            assert_eq!(read(bad.into()), None, "{bad}");
        }
        assert_eq!(read((-1).into()), None);
        assert_eq!(read(true.into()), None);
    }

    #[test]
    fn rates_have_decimal_suffixes() {
        let params = Params::new().with("bitrate", "100M");
        assert_eq!(bit_rate(&params, "bitrate", 0, 1 << 40), Ok(100_000_000));
        let error = bit_rate(&params, "bitrate", 0, 5).unwrap_err();
        assert_eq!(error.param, "bitrate");
    }

    #[test]
    fn durations_without_a_unit_are_seconds() {
        let read = |value: Value| duration_ms(&Params::new().with("t", value), "t", 0, 86_400_000);
        for (text, ms) in [("500ms", 500), ("1s", 1_000), ("5m", 300_000), ("2", 2_000)] {
            assert_eq!(read(text.into()).unwrap(), ms, "{text}");
        }
        assert_eq!(read(3.into()).unwrap(), 3_000);
        let error = read("forever".into()).unwrap_err();
        assert_eq!(error.param, "t");
        assert!(error.hint.unwrap().contains("500ms"));
    }
}
