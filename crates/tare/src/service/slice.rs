//! How much of a server is asked at once, and what comes of it.

use std::io;
use std::time::Duration;

/// How long a wait may last before the wish to stop is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// What one request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From sending to the last byte of the answer, nanoseconds.
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

/// How long a slice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Requests are begun for so many nanoseconds; at least one.
    For(u64),
    /// So many requests.
    Count(u64),
}

/// One answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// When it was sent, or to be sent, by the client's clock.
    pub from_ns: u64,
    /// From sending it, or from when it was to be sent, to its last byte.
    pub latency_ns: u64,
    /// HTTP status.
    pub status: u16,
    /// Length of the body.
    pub bytes: u64,
    /// Of the body of the first answer of a slice.
    pub digest: Option<u64>,
    /// False for the first on each connection that stays open in a closed loop: it pays for what other servers left in
    /// the caches.
    pub is_counted: bool,
}

/// What one server answered in one slice.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Slice {
    /// In the order in which they ended.
    pub answers: Vec<Answer>,
    /// From the first counted request to the last answer, nanoseconds.
    pub counted_ns: u64,
    /// Connections that the server had closed and that were opened again.
    pub reopened: u64,
    /// The first answer that was not as expected.
    pub unexpected: Option<String>,
}

impl Slice {
    /// Latencies that count, nanoseconds.
    pub fn latencies(&self) -> impl Iterator<Item = u64> {
        let counted = self.answers.iter().filter(|answer| answer.is_counted);
        counted.map(|answer| answer.latency_ns)
    }
}

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// Ctrl-C.
    #[error("interrupted")]
    Cancelled,
    /// It, or the way to it, failed.
    #[error("{0}")]
    Failed(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Failed(format!("waiting for answers: {error}"))
    }
}
