//! When a server is ready: its port takes connections, or it gives a good answer.
//!
//! What it cannot see: whether it is warm.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long one look may wait for each step.
const LOOK_LIMIT: Duration = Duration::from_secs(2);
/// So much of an answer is read at most to find its first line, bytes.
const LINE_BYTES: usize = 256;

/// When a server is ready.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ready {
    /// Its port takes connections.
    #[default]
    Connects,
    /// It answers a GET of this path.
    Answers {
        /// The path.
        path: String,
        /// The value of the header `Host`.
        host: String,
        /// The status that it has to answer with; without one any from 200 to 399.
        status: Option<u16>,
    },
}

impl Ready {
    /// What is looked for, in words.
    pub fn what(&self) -> String {
        match self {
            Self::Connects => "a connection".to_owned(),
            Self::Answers { path, status, .. } => format!(
                "`GET {}`{}",
                path.escape_debug(),
                status.map_or_else(String::new, |status| format!(" with status {status}"))
            ),
        }
    }

    /// Looks once.
    ///
    /// # Errors
    /// What happened instead, as one clause.
    pub fn look(&self, at: SocketAddr) -> Result<(), String> {
        let failed = |error: std::io::Error| error.kind().to_string();
        let mut stream = TcpStream::connect_timeout(&at, LOOK_LIMIT).map_err(failed)?;
        let Self::Answers { path, host, status } = self else {
            return Ok(());
        };
        stream.set_read_timeout(Some(LOOK_LIMIT)).map_err(failed)?;
        stream.set_write_timeout(Some(LOOK_LIMIT)).map_err(failed)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(failed)?;
        let mut line = Vec::new();
        let mut part = [0; LINE_BYTES];
        while !line.contains(&b'\n') && line.len() < LINE_BYTES {
            match stream.read(&mut part).map_err(failed)? {
                0 => break,
                count => line.extend_from_slice(&part[..count]),
            }
        }
        let answered = status_of(&line)?;
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

/// The status in the first line of an answer.
fn status_of(bytes: &[u8]) -> Result<u16, String> {
    // An alert of TLS (RFC 8446, section 5.1).
    if let [0x15, 0x03, ..] = bytes {
        return Err("it speaks TLS".to_owned());
    }
    if bytes.is_empty() {
        return Err("it closed the connection without an answer".to_owned());
    }
    let text = String::from_utf8_lossy(bytes);
    let mut words = text.split_ascii_whitespace();
    let is_http = words.next().is_some_and(|word| word.starts_with("HTTP/1."));
    let status = words.next().filter(|_| is_http);
    status
        .and_then(|word| word.parse().ok())
        .ok_or_else(|| "what it answered is not HTTP/1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_is_read_from_first_line_only() {
        assert_eq!(status_of(b"HTTP/1.1 204 No Content\r\nX: 500\r\n"), Ok(204));
        for (bytes, word) in [
            (&b"\x15\x03\x03\x00\x02\x02\x46"[..], "TLS"),
            (b"", "closed"),
            (b"SSH-2.0-OpenSSH_9.6\r\n", "not HTTP"),
            (b"HTTP/1.1 many\r\n", "not HTTP"),
        ] {
            let why = status_of(bytes).unwrap_err();
            assert!(why.contains(word), "{why}");
        }
    }
}
