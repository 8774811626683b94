//! How a trial ended, and what it left: absence and failure are values.

use serde::{Deserialize, Serialize};

use crate::id::MetricId;

/// Bytes that travel in JSON: as text where they are UTF-8, else as hexadecimal digits.
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

/// Four bits from a hexadecimal digit; a loop over an output of megabytes must not look for more than that.
fn half(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}

impl From<Bytes> for BytesForm {
    fn from(bytes: Bytes) -> Self {
        match String::from_utf8(bytes.0) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Hex(error.as_bytes().iter().fold(
                String::new(),
                |mut digits, byte| {
                    digits.push(
                        char::from_digit(u32::from(byte >> 4), 16)
                            .expect("four bits are one digit"),
                    );
                    digits.push(
                        char::from_digit(u32::from(byte & 15), 16)
                            .expect("four bits are one digit"),
                    );
                    digits
                },
            )),
        }
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// It returned this status.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it is status 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

/// What a trial printed, before anybody interpreted it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawOutput {
    /// The name and version of the format, for example `probe/1`.
    pub format: String,
    /// Standard output, byte for byte.
    pub stdout: Bytes,
    /// Standard error, byte for byte, at most the last 64 KiB.
    pub stderr: Bytes,
    /// How the process ended.
    pub exit: Exit,
}

/// Why something cannot be measured here. Not a failure: it would be so every time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "reason", content = "detail")]
pub enum Reason {
    /// The operating system has no such mechanism.
    #[error("not available on this system: {0}")]
    Unsupported(String),
    /// A tool is not installed.
    #[error("`{0}` is not installed")]
    MissingTool(String),
    /// The environment denies a system call.
    #[error("the system call {0} is blocked in this environment")]
    BlockedSyscall(String),
    /// A capability or permission is missing.
    #[error("needs {0}")]
    NeedsPrivilege(String),
    /// There is no way between the two ends.
    #[error("no path between the two ends: {0}")]
    NoPath(String),
    /// The environment itself could not be started.
    #[error("the environment did not start: {0}")]
    NoEnvironment(String),
}

/// What went wrong in one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "kebab-case", tag = "failure", content = "detail")]
pub enum Failure {
    /// The worker did not end within its limit and was killed.
    #[error("no answer within {limit_ns} ns; the worker was killed")]
    TimedOut {
        /// The limit, in nanoseconds.
        limit_ns: u64,
    },
    /// The worker ended by a signal.
    #[error("the worker was killed by signal {signal}")]
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// The worker ended with a status that is not 0.
    #[error("the worker exited with status {code}: {message}")]
    Exited {
        /// The status.
        code: i32,
        /// The end of what it wrote to standard error.
        message: String,
    },
    /// The output cannot be read as what it should be.
    #[error("unreadable output: {0}")]
    Garbled(String),
    /// The agent or the environment went away.
    #[error("the environment went away: {0}")]
    Lost(String),
    /// The probe reported an error of the operating system.
    #[error("{0}")]
    Probe(String),
    /// The measurement is void: a clock or checksum check failed.
    #[error("void: {0}")]
    Void(String),
}

/// The values of one metric in one trial, in the order in which they were observed.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Which metric.
    pub metric: MetricId,
    /// The observations, in the metric's unit; finite, never empty.
    pub observations: Vec<f64>,
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It ran to its end.
    Completed(RawOutput),
    /// It cannot be measured here.
    Unavailable(Reason),
    /// It went wrong.
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
