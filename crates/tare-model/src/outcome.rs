//! Outcome and output of a trial: absence and failure are values.

use serde::{Deserialize, Serialize};

use crate::id::MetricId;

/// Bytes in JSON: as text if they are UTF-8, otherwise as hexadecimal digits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BytesForm", into = "BytesForm")]
pub struct Bytes(pub Vec<u8>);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum BytesForm {
    Text(String),
    Hex(String),
}

impl From<BytesForm> for Bytes {
    fn from(form: BytesForm) -> Self {
        match form {
            BytesForm::Text(text) => Self(text.into_bytes()),
            BytesForm::Hex(digits) => Self(
                digits
                    .as_bytes()
                    .chunks(2)
                    .filter_map(|pair| match *pair {
                        [high, low] => Some((half(high)? << 4) | half(low)?),
                        [only] => half(only),
                        _ => None,
                    })
                    .collect(),
            ),
        }
    }
}

/// Parses a hexadecimal digit; kept minimal, because it runs in a loop over megabytes of output.
fn half(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    halves
        .filter_map(|half| char::from_digit(half.into(), 16))
        .collect()
}

impl From<Bytes> for BytesForm {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex(hex(error.as_bytes())),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It exited with this status.
    Code(i32),
    /// It was ended by this signal.
    Signal(i32),
}

impl Default for Exit {
    fn default() -> Self {
        Self::Code(0)
    }
}

impl Exit {
    /// Whether the status is 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// Uninterpreted output of a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawOutput {
    /// Name and version of the format, for example `probe/1`.
    pub format: String,
    /// Standard output, byte for byte.
    pub stdout: Bytes,
    /// Standard error, byte for byte, at most the last 64 KiB.
    pub stderr: Bytes,
    /// How the process ended.
    pub exit: Exit,
}

/// Why something cannot be measured here. Not a failure: every attempt would end the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Reason {
    /// The operating system has no such mechanism.
    #[error("not available on this system: {0}")]
    Unsupported(String),
    /// A tool is not installed.
    #[error("`{0}` is not installed")]
    MissingTool(String),
    /// The environment blocks a syscall.
    #[error("the system call {0} is blocked in this environment")]
    BlockedSyscall(String),
    /// A capability or permission is missing.
    #[error("needs {0}")]
    NeedsPrivilege(String),
    /// The two ends cannot reach each other.
    #[error("no path between the two ends: {0}")]
    NoPath(String),
    /// The environment itself could not be started.
    #[error("the environment did not start: {0}")]
    NoEnvironment(String),
}

/// Why one trial failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "failure", content = "detail")]
pub enum Failure {
    /// The worker exceeded its limit and was killed.
    #[error("no answer within {limit_ns} ns; the worker was killed")]
    TimedOut {
        /// The limit, nanoseconds.
        limit_ns: u64,
    },
    /// The worker was ended by a signal.
    #[error("the worker was killed by signal {signal}")]
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// The worker exited with a status other than 0.
    #[error("the worker exited with status {code}: {message}")]
    Exited {
        /// The status.
        code: i32,
        /// The end of its stderr.
        message: String,
    },
    /// The output cannot be parsed.
    #[error("unreadable output: {0}")]
    Garbled(String),
    /// The agent or the environment disappeared.
    #[error("the environment went away: {0}")]
    Lost(String),
    /// The probe reported an error of the operating system.
    #[error("{0}")]
    Probe(String),
    /// The measurement is void: a clock or checksum check failed.
    #[error("void: {0}")]
    Void(String),
}

/// The values of one metric in one trial, in the order of observation.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The metric.
    pub metric: MetricId,
    /// The observations, in the metric's unit; finite, never empty.
    pub observations: Vec<f64>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It completed.
    Completed(RawOutput),
    /// It cannot be measured here.
    Unavailable(Reason),
    /// It failed.
    Failed(Failure),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_survive_json() {
        for bytes in [b"plain".to_vec(), vec![0xff, 0x00, 0x9f], Vec::new()] {
            let json = serde_json::to_string(&Bytes(bytes.clone())).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap().0, bytes);
        }
    }
}
