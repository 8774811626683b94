//! A slice of requests to one server, and its answers.

use std::io;
use std::time::Duration;

/// Longest wait without a check for cancellation.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from sending to the last byte of the answer, nanoseconds.
    pub time_ns: u64,
    /// Length of a body, bytes.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            time_ns: 30_000_000_000,
            body_bytes: 4 << 30,
        }
    }
}

/// Length of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SliceLength {
    /// Requests are started for this many nanoseconds; at least one.
    For(u64),
    /// This many requests.
    Count(u64),
}

/// An answer to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// When the request was sent, or scheduled, by the client's clock.
    pub from_ns: u64,
    /// Time from there to the last byte of the answer.
    pub latency_ns: u64,
    /// HTTP status.
    pub status: u16,
    /// Length of the body.
    pub bytes: u64,
    /// Hash of the body, only for the first answer of a slice.
    pub digest: Option<u64>,
    /// False for the first answer of each connection that stays open in a closed loop: it is slowed down by what
    /// other servers left in the caches.
    pub is_counted: bool,
}

/// The answers of one server in one slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// Answers in the order of their completion.
    pub answers: Vec<Answer>,
    /// Time from the first counted request to the last answer, nanoseconds.
    pub counted_ns: u64,
    /// Connections that were reopened because the server had closed them.
    pub reopened: u64,
    /// The first unexpected answer, if any.
    pub unexpected: Option<String>,
}

impl Slice {
    /// The latencies that count, nanoseconds.
    pub fn latencies(&self) -> impl Iterator<Item = u64> {
        let counted = self.answers.iter().filter(|answer| answer.is_counted);
        counted.map(|answer| answer.latency_ns)
    }
}

/// Why a slice of requests failed.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// Ctrl-C.
    #[error("interrupted")]
    Cancelled,
    /// The server, or the route to it, failed.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for SliceError {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("waiting for answers: {error}"))
    }
}
