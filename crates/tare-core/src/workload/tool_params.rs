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
    let units = [
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("m", 1 << 20),
        ("g", 1 << 30),
        ("t", 1 << 40),
    ];
    let read = |text: &str| scaled(text.strip_suffix("ib").unwrap_or(text), &units);
    within(params, name, (low, high), (1, read), || {
        format!("use a size between {low} and {high} bytes, such as `4k` or `64m`")
    })
}

/// The bits per second of parameter `name`, between `low` and `high`; suffixes are decimal, as in network tools.
///
/// # Errors
/// The value is not such a rate.
pub fn bit_rate(params: &Params, name: &str, low: u64, high: u64) -> Result<u64, ParamError> {
    let units = [
        ("", 1),
        ("k", 1_000),
        ("m", 1_000_000),
        ("g", 1_000_000_000),
    ];
    let read = |text: &str| scaled(text, &units);
    within(params, name, (low, high), (1, read), || {
        format!("use a rate between {low} and {high} bits per second, such as `100m`")
    })
}

/// The milliseconds of parameter `name`, between `low` and `high`.
///
/// # Errors
/// The value is not such a duration.
pub fn duration_ms(params: &Params, name: &str, low: u64, high: u64) -> Result<u64, ParamError> {
    let units = [
        ("ms", 1),
        ("s", 1_000),
        ("", 1_000),
        ("m", 60_000),
        ("h", 3_600_000),
    ];
    let read = |text: &str| scaled(text, &units);
    within(params, name, (low, high), (1_000, read), || {
        format!("use a duration between {low} and {high} ms, such as `500ms`, `1s` or `5m`")
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

/// Parameter `name` between `low` and `high`: a number of what `of_number` says, or a text that `read` understands.
fn within(
    params: &Params,
    name: &str,
    (low, high): (u64, u64),
    (of_number, read): (u64, impl Fn(&str) -> Option<u64>),
    hint: impl FnOnce() -> String,
) -> Result<u64, ParamError> {
    let given = params.value(name);
    let value = match given {
        Some(Value::Int(number)) => u64::try_from(*number)
            .ok()
            .and_then(|number| number.checked_mul(of_number)),
        Some(Value::Text(text)) => read(&text.trim().to_ascii_lowercase()),
        _ => None,
    };
    value
        .filter(|value| (low..=high).contains(value))
        .ok_or_else(|| ParamError::refused(name, given, hint()))
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
