//! Shared code of the three sysbench adapters: the part of the output that every test prints.
//!
//! sysbench has no machine-readable output for its built-in tests, and the text differs between 0.4, 0.5, 1.0 and
//! 1.1: `per-request statistics` became `Latency (ms)`, values lost or gained their units, and 1.1 says `time
//! elapsed` where the others say `total time`. All of them print the number of events, the time and the sum of all
//! latencies. Averages are computed from these, because the printed ones have two decimals of a millisecond, in which
//! 43 ns are `0.00`.
//! Limits: the distribution of latencies is unknown; only a percentile is printed, in milliseconds.
//! Not a workload itself.

use tare_model::{CommandCall, Params, RawOutput, Recipe};

use super::tool_text::{after, garbled, leading_number, whole};
use super::{DecodeError, command_output};

/// The totals that every test prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Totals {
    /// Duration of the test, seconds.
    pub total_s: f64,
    /// Events of all threads.
    pub events: f64,
    /// Time within events, all threads together, nanoseconds.
    pub inside_ns: f64,
}

impl Totals {
    /// Mean time of one event, nanoseconds.
    pub fn event_ns(&self) -> f64 {
        self.inside_ns / self.events
    }
}

/// The output as text, and its totals.
///
/// # Errors
/// `Garbled` if one of them is missing, not a number or zero.
pub fn read(raw: &RawOutput) -> Result<(String, Totals), DecodeError> {
    let report = command_output::report(raw)?;
    let text = command_output::stdout(&report);
    let totals = totals(&text)?;
    Ok((text, totals))
}

fn totals(text: &str) -> Result<Totals, DecodeError> {
    if let Some(line) = text
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("FATAL:") || line.starts_with("ALERT:"))
    {
        return Err(DecodeError::Unsuccessful {
            problem: format!("sysbench says `{}`", line.escape_debug()),
        });
    }
    let total_s = positive(text, &["total time:", "time elapsed:"])?;
    let events = positive(text, &["total number of events:"])?;
    // The older form is in seconds, among the totals; the newer is the last line of the latencies, in milliseconds.
    let inside_ns = match after(text, "total time taken by event execution:") {
        Some(value) => leading_number(value).map(|seconds| seconds * 1e9),
        None => after(text, "sum:")
            .and_then(leading_number)
            .map(|milliseconds| milliseconds * 1e6),
    };
    let inside_ns = inside_ns
        .filter(|value| *value > 0.0)
        .ok_or_else(|| garbled("sysbench", "the sum of latencies is not a positive number"))?;
    Ok(Totals {
        total_s,
        events,
        inside_ns,
    })
}

/// The positive number after the first of `labels` that is present.
fn positive(text: &str, labels: &[&str]) -> Result<f64, DecodeError> {
    let value = labels
        .iter()
        .find_map(|label| after(text, label))
        .ok_or_else(|| garbled("sysbench", format!("there is no `{}`", labels[0])))?;
    leading_number(value)
        .filter(|value| *value > 0.0)
        .ok_or_else(|| {
            garbled(
                "sysbench",
                format!("`{} {}` is no figure", labels[0], value.escape_debug()),
            )
        })
}

/// The call of a test with its options and the common ones.
pub fn recipe<const N: usize>(test: &str, own: [String; N], params: &Params) -> Recipe {
    let mut arguments = vec![test.to_owned()];
    arguments.extend(own);
    arguments.extend(common(params));
    arguments.push("run".to_owned());
    Recipe::Probe(CommandCall::new("sysbench", arguments).to_probe())
}

/// The options of every test: threads and seconds.
pub fn common(params: &Params) -> [String; 2] {
    [
        format!("--threads={}", whole(params, "threads")),
        format!("--time={}", whole(params, "seconds")),
    ]
}
