//! What is asked of which server, how much of it, and what comes of it.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use super::http::Unreadable;

/// How long a wait may last before the wish to stop is looked for.
pub(super) const LOOK: Duration = Duration::from_millis(100);

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// IPv4 or IPv6.
    Tcp(SocketAddr),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(to),
            Self::Unix(path) => path.display().fmt(to),
        }
    }
}

/// A server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// For messages.
    pub label: String,
    /// Where it listens.
    pub address: Address,
    /// What stands in the header `Host`; `None` for the address.
    pub host: Option<String>,
}

/// How much is asked at once.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Connections to the server, at least 1.
    pub connections: u32,
    /// Requests a second, sent whether or not earlier ones were answered (open loop); `None`: each connection sends
    /// when it has its answer (closed loop).
    pub rate: Option<f64>,
    /// Whether connections are used for more than one request.
    pub keep_alive: bool,
}

impl Default for Load {
    fn default() -> Self {
        Self {
            connections: 1,
            rate: None,
            keep_alive: true,
        }
    }
}

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
    /// From sending it, or from when it was to be sent, to its last byte.
    pub latency_ns: u64,
    /// HTTP status.
    pub status: u16,
    /// Length of the body.
    pub bytes: u64,
    /// Of the body of the first answer of a slice.
    pub digest: Option<u64>,
    /// False for the first of each connection in a closed loop: it pays for what other servers left in the caches.
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
    /// Nothing listens, or not for this client.
    #[error("{label}: no connection to {address}: {error}")]
    Connect {
        /// The server.
        label: String,
        /// Its address.
        address: String,
        /// What the system says.
        error: io::Error,
    },
    /// It did not answer in time.
    #[error("{label}: no complete answer within {seconds} s, {bytes} bytes of its body so far")]
    TimedOut {
        /// The server.
        label: String,
        /// The limit.
        seconds: f64,
        /// What had arrived of the body.
        bytes: u64,
    },
    /// Its answer is too long.
    #[error("{label}: the answer is longer than {limit} bytes")]
    TooLong {
        /// The server.
        label: String,
        /// The limit.
        limit: u64,
    },
    /// It closed the connection instead of answering.
    #[error("{label}: the connection was closed without an answer: {why}")]
    Closed {
        /// The server.
        label: String,
        /// How.
        why: String,
    },
    /// What it sent is no answer.
    #[error("{label}: {why}")]
    Unreadable {
        /// The server.
        label: String,
        /// Why.
        why: Unreadable,
    },
    /// The system failed.
    #[error("waiting for answers: {0}")]
    System(#[from] io::Error),
}

/// Which answers are as they should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Any of 200 to 299, and 304.
    Good,
    /// This one.
    Status(u16),
}

impl Expect {
    /// Whether an answer of this status is as it should be.
    pub fn holds(self, status: u16) -> bool {
        match self {
            Self::Good => (200..300).contains(&status) || status == 304,
            Self::Status(wanted) => status == wanted,
        }
    }
}

/// A connection to one.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Opens one that blocks for a moment at a time, or never.
    pub(super) fn open(address: &Address, limit_ns: u64, is_blocking: bool) -> io::Result<Self> {
        let stream = match address {
            Address::Tcp(address) => {
                let limit = Duration::from_nanos(limit_ns.max(1));
                let stream = TcpStream::connect_timeout(address, limit)?;
                stream.set_nodelay(true)?;
                Self::Tcp(stream)
            }
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
        };
        match &stream {
            Self::Tcp(one) if is_blocking => one.set_read_timeout(Some(LOOK))?,
            Self::Unix(one) if is_blocking => one.set_read_timeout(Some(LOOK))?,
            Self::Tcp(one) => one.set_nonblocking(true)?,
            Self::Unix(one) => one.set_nonblocking(true)?,
        }
        Ok(stream)
    }

    pub(super) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(one) => one.read(buffer),
            Self::Unix(one) => one.read(buffer),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(one) => one.write(bytes),
            Self::Unix(one) => one.write(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(one) => one.as_fd(),
            Self::Unix(one) => one.as_fd(),
        }
    }
}
