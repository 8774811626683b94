//! Shared code of the adapters: parses numbers in the output of tools, and builds errors about it.
//!
//! Tools print numbers in tables, with units attached, and sometimes `nan`; with one parser and one form of error all
//! decoders follow the same rule: a finite number or an error. Two values of the same quantity in one output have to
//! agree, because a log that contradicts itself was altered or truncated.
//! Limits: does not detect a tool that prints the same wrong number twice.
//! Not a workload itself.

use serde::Deserialize;
use tare_model::{CommandReport, Params, RawOutput, Value};

use super::{DecodeError, ParamError, command_output, unreadable};

/// Bytes in a mebibyte.
pub const MIB: f64 = 1_048_576.0;
/// How far two values of one quantity may differ, as a share: tools round them and take them at slightly different
/// moments.
const AGREEMENT: f64 = 0.05;

/// A finite number; surrounding spaces are ignored.
pub fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // `parse` also accepts `nan`, `inf` and `infinity`, which are never measurements.
    text.parse::<f64>().ok().filter(|value| value.is_finite())
}

/// The number at the beginning of `text`, whatever follows it, such as a unit.
pub fn leading_number(text: &str) -> Option<f64> {
    let text = text.trim_start();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && !matches!(letter, '.' | '-' | '+'))
        .unwrap_or(text.len());
    number(&text[..end])
}

/// The trimmed text after `label` on the first line that begins with it.
pub fn after<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.trim_start().strip_prefix(label))
        .map(str::trim)
}

/// An error for output of `tool` that is not as expected.
pub fn garbled(tool: &str, problem: impl Into<String>) -> DecodeError {
    DecodeError::garbled(format!("output of {tool}"), problem)
}

/// Checks that two values of one quantity agree.
///
/// # Errors
/// `Garbled` if they contradict each other.
pub fn agreeing(tool: &str, what: &str, told: f64, computed: f64) -> Result<(), DecodeError> {
    let larger = told.abs().max(computed.abs());
    if (told - computed).abs() <= AGREEMENT * larger {
        return Ok(());
    }
    Err(garbled(
        tool,
        format!("{what} is reported as {told} and comes out as {computed} from the other figures"),
    ))
}

/// The program's stdout and stderr.
pub fn output_text(report: &CommandReport) -> String {
    let mut text = String::from_utf8_lossy(&report.stdout.0).into_owned();
    text.push('\n');
    text.push_str(&String::from_utf8_lossy(&report.stderr.0));
    text
}

/// A file that the program wrote.
///
/// # Errors
/// `Garbled` if it is missing or not UTF-8.
pub fn file<'a>(tool: &str, report: &'a CommandReport, name: &str) -> Result<&'a str, DecodeError> {
    let bytes = report
        .files
        .get(name)
        .ok_or_else(|| garbled(tool, format!("the program left no file `{name}`")))?;
    std::str::from_utf8(&bytes.0).map_err(|_| garbled(tool, format!("`{name}` is no UTF-8")))
}

/// The field that every script prints in addition to its results.
#[derive(Debug, Deserialize)]
struct Head {
    format: String,
}

/// Parses the single line of JSON that one of Tare's scripts printed, which must be of `format`.
///
/// # Errors
/// `Garbled` if it is something else.
pub fn printed<T: for<'a> Deserialize<'a>>(
    raw: &RawOutput,
    format: &str,
) -> Result<T, DecodeError> {
    let report = command_output::report(raw)?;
    let text = command_output::stdout(&report);
    let wrong = |problem: String| garbled(format, problem);
    let head: Head = serde_json::from_str(&text).map_err(|error| wrong(unreadable(&error)))?;
    if head.format != format {
        return Err(wrong(format!(
            "it says that it is `{}`",
            head.format.escape_debug()
        )));
    }
    serde_json::from_str(&text).map_err(|error| wrong(unreadable(&error)))
}

/// The integer parameter `name` as an argument of a program; the parameters are complete and checked.
pub fn whole(params: &Params, name: &str) -> String {
    params.int(name).unwrap_or_default().to_string()
}

/// The text parameter `name`, or empty.
pub fn text<'a>(params: &'a Params, name: &str) -> &'a str {
    params.text(name).unwrap_or_default()
}

/// The text parameter `name`, which must pass `fits`.
pub fn fitting<'a>(
    params: &'a Params,
    name: &str,
    fits: impl Fn(&str) -> bool,
    hint: &str,
) -> Result<&'a str, ParamError> {
    match params.value(name) {
        Some(Value::Text(text)) if fits(text) => Ok(text),
        other => Err(ParamError::refused(name, other, hint)),
    }
}

/// The text of parameter `name`, which can be run: not empty, no option, and nothing that no argument holds.
///
/// # Errors
/// It is no such text.
pub fn program<'a>(params: &'a Params, name: &str, hint: &str) -> Result<&'a str, ParamError> {
    let fits = |text: &str| !text.is_empty() && !text.starts_with('-') && is_argument(text);
    fitting(params, name, fits, hint)
}

/// Whether a text can be an argument of a program.
pub fn is_argument(text: &str) -> bool {
    !text.contains('\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_finite_numbers_are_numbers() {
        assert_eq!(number(" 12.50 "), Some(12.5));
        assert_eq!(leading_number("  0.69ms"), Some(0.69));
        assert_eq!(leading_number("10.0011s"), Some(10.0011));
        for text in ["", "nan", "-nan", "inf", "infinity", "1.2.3", "x", "1e999"] {
            assert_eq!(number(text), None, "{text}");
            assert_eq!(leading_number(text).filter(|_| text != "1e999"), None);
        }
    }

    #[test]
    fn figures_that_contradict_each_other_are_refused() {
        assert!(agreeing("x", "the rate", 100.0, 104.0).is_ok());
        assert!(agreeing("x", "the rate", 100.0, 120.0).is_err());
        assert!(agreeing("x", "the rate", 100.0, f64::NAN).is_err());
    }
}
