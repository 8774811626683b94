//! Readiness checks of servers: the port accepts connections, an answer is good, or a line was printed.
//!
//! Limits: a ready server need not be warm.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::http::{AnswerReader, Request};

/// Time limit of each step of a check.
const LOOK_LIMIT: Duration = Duration::from_secs(2);

/// Condition for a server to be ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// Its port accepts connections.
    #[default]
    Connects,
    /// It answers a GET of this path.
    Answers {
        /// The path.
        path: String,
        /// The value of the `Host` header.
        host: String,
        /// The required status; if `None`, any from 200 to 399.
        status: Option<u16>,
    },
    /// This port of the same address accepts connections.
    Port {
        /// The port inside the arm.
        port: u16,
    },
    /// It has printed a match of this regular expression, and then its port accepts connections too.
    Prints {
        /// The expression; `^` and `$` match at the ends of a line.
        pattern: String,
    },
}

impl Ready {
    /// Describes the condition in words.
    pub fn what(&self) -> String {
        match self {
            Self::Connects => "a connection".to_owned(),
            Self::Answers { path, status, .. } => format!(
                "`GET {}`{}",
                path.escape_debug(),
                status.map_or_else(String::new, |status| format!(" with status {status}"))
            ),
            Self::Port { port } => format!("a connection to port {port}"),
            Self::Prints { pattern } => format!("`{}` in what it prints", pattern.escape_debug()),
        }
    }

    /// The check that the client's route to the server is open, once the server is ready.
    #[must_use]
    pub fn on_the_way(&self) -> &Self {
        match self {
            Self::Answers { .. } => self,
            _ => &Self::Connects,
        }
    }

    /// The regular expression to search for in the server's output, if any.
    pub fn printed(&self) -> Option<&str> {
        match self {
            Self::Prints { pattern } => Some(pattern),
            _ => None,
        }
    }

    /// Checks once.
    ///
    /// # Errors
    /// What happened instead, as one clause.
    pub fn look(&self, at: SocketAddr) -> Result<(), String> {
        let failed = |error: std::io::Error| error.kind().to_string();
        let at = match self {
            Self::Port { port } => SocketAddr::new(at.ip(), *port),
            _ => at,
        };
        let mut stream = TcpStream::connect_timeout(&at, LOOK_LIMIT).map_err(failed)?;
        let Self::Answers { path, host, status } = self else {
            return Ok(());
        };
        stream.set_read_timeout(Some(LOOK_LIMIT)).map_err(failed)?;
        stream.set_write_timeout(Some(LOOK_LIMIT)).map_err(failed)?;
        let request = Request::get(path).to_bytes(host, false);
        stream.write_all(&request).map_err(failed)?;
        let mut reader = AnswerReader::new(false, false);
        let mut part = [0; 4096];
        let answered = loop {
            if let Some(status) = reader.status() {
                break status;
            }
            match stream.read(&mut part).map_err(failed)? {
                0 => return Err("it closed the connection without an answer".to_owned()),
                // Once there is a status, an answer longer than announced does not matter.
                count => reader.take(&part[..count]).map_or_else(
                    |why| reader.status().map(drop).ok_or(why.to_string()),
                    |_| Ok(()),
                )?,
            }
        };
        let is_good = match status {
            Some(status) => answered == *status,
            None => (200..400).contains(&answered),
        };
        if is_good {
            Ok(())
        } else {
            Err(format!("it answered with status {answered}"))
        }
    }
}

/// The first answer of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct First {
    /// HTTP status.
    pub status: u16,
    /// Length of the body.
    pub bytes: u64,
    /// Hash of the body, if the same request gave the same answer twice.
    pub digest: Option<u64>,
    /// Whether the second answer to the same request had a different length.
    pub varies: bool,
}

impl First {
    /// Whether the lengths may belong to the same page: dates and names vary a little, and some pages differ each
    /// time.
    pub fn is_as_long_as(self, other: Self) -> bool {
        let is_near = self.bytes.abs_diff(other.bytes) <= self.bytes.max(other.bytes) / 10;
        is_near || self.varies || other.varies
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_as_long_where_they_are_near_or_vary() {
        let of = |bytes, varies| First {
            bytes,
            varies,
            ..First::default()
        };
        for (one, other, is) in [
            (of(100, false), of(109, false), true),
            (of(100, false), of(120, false), false),
            (of(120, false), of(100, false), false),
            (of(100, true), of(900, false), true),
            (of(0, false), of(0, false), true),
            (of(0, false), of(1, false), false),
        ] {
            assert_eq!(one.is_as_long_as(other), is, "{one:?} {other:?}");
        }
    }

    #[test]
    fn server_is_ready_by_its_status_only() {
        let answers = |path: &str| Ready::Answers {
            path: path.to_owned(),
            host: "shop.test".to_owned(),
            status: None,
        };
        for (bytes, said) in [
            (&b"HTTP/1.1 204 No Content\r\n\r\n"[..], ""),
            (b"HTTP/1.1 302 Found\r\nLocation: /a\r\n\r\n<a>", ""),
            (
                b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",
                "status 503",
            ),
            (b"\x15\x03\x03\x00\x02\x02\x46", "TLS"),
            (b"", "closed the connection"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP"),
        ] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let at = listener.local_addr().unwrap();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut asked = [0; 1000];
                let n = stream.read(&mut asked).unwrap();
                let _ = stream.write_all(bytes);
                String::from_utf8_lossy(&asked[..n]).into_owned()
            });
            let looked = answers("/health").look(at);
            let asked = server.join().unwrap();
            assert!(
                asked.starts_with("GET /health HTTP/1.1\r\nHost: shop.test\r\n"),
                "{asked}"
            );
            match looked {
                Ok(()) => assert_eq!(said, ""),
                Err(why) => assert!(!said.is_empty() && why.contains(said), "{said}: {why}"),
            }
        }
    }
}
