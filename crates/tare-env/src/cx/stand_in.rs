//! A fake server on a local socket: records each request and answers it by a function.
//!
//! The best way to learn what a client makes of its arguments is to run it. Pointed at such a socket, it sends its
//! request, and nothing is created, changed or named. The server speaks as much HTTP as clients of engines need: one
//! request per connection, bodies of a known length or in chunks, bounded.
//! Limits: requests that would follow on the same connection are not seen; every connection ends with its answer.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::local_socket::LocalSocket;
use super::locked;

/// How long a client may take to send a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The longest line of a request's head, and the maximum of lines.
const LINE_LIMIT: u64 = 64 << 10;
const LINES_MOST: usize = 200;
/// The longest body: configurations have a few kilobytes, seccomp profiles a hundred.
const BODY_LIMIT: u64 = 16 << 20;

/// A request of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FakeRequest {
    /// Its method.
    pub method: String,
    /// Path and query, as received.
    pub target: String,
    /// Its body.
    pub body: Vec<u8>,
}

/// A response.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FakeResponse {
    /// The status code.
    pub status: u16,
    /// Headers in addition to the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// JSON, or a word.
    pub body: String,
}

/// An open fake server. Dropping it removes the socket.
pub struct StandIn {
    socket: LocalSocket,
    heard: Arc<Mutex<Vec<FakeRequest>>>,
}

impl StandIn {
    /// Opens a server with its socket in `folder`.
    ///
    /// # Errors
    /// The folder cannot be written to, or its path is too long for a socket.
    pub fn open(
        folder: &Path,
        answer: impl Fn(&FakeRequest) -> FakeResponse + Send + 'static,
    ) -> io::Result<Self> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let socket = LocalSocket::open(folder, "ask", move |stream| {
            // A malformed request gets no answer; the client reports that itself.
            let _ = attend(stream, &notes, &answer);
        })?;
        Ok(Self { socket, heard })
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        self.socket.path()
    }

    /// The requests so far, oldest first.
    pub fn heard(&self) -> Vec<FakeRequest> {
        locked(&self.heard).clone()
    }
}

fn attend(
    stream: UnixStream,
    notes: &Mutex<Vec<FakeRequest>>,
    answer: &impl Fn(&FakeRequest) -> FakeResponse,
) -> io::Result<()> {
    stream.set_read_timeout(Some(REQUEST_LIMIT))?;
    stream.set_write_timeout(Some(REQUEST_LIMIT))?;
    let mut writer = stream.try_clone()?;
    let heard = request(&mut BufReader::new(stream))?;
    let shown = answer(&heard);
    let is_head = heard.method == "HEAD";
    locked(notes).push(heard);
    let mut text = format!("HTTP/1.1 {} Noted\r\nConnection: close\r\n", shown.status);
    text.push_str("Content-Type: application/json\r\n");
    let length = ("Content-Length", shown.body.len().to_string());
    for (name, value) in shown.headers.iter().chain([&length]) {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.push_str("\r\n");
    if !is_head {
        text.push_str(&shown.body);
    }
    writer.write_all(text.as_bytes())
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.by_ref().take(LINE_LIMIT).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(odd("a line without an end"));
    }
    Ok(line.trim_end().to_owned())
}

fn request(reader: &mut impl BufRead) -> io::Result<FakeRequest> {
    let first = line(reader)?;
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(odd("no request"));
    };
    let (mut length, mut is_chunked) = (0, false);
    for _ in 0..LINES_MOST {
        let header = line(reader)?;
        if header.is_empty() {
            let body = if is_chunked {
                chunks(reader)?
            } else {
                exactly(reader, length)?
            };
            return Ok(FakeRequest {
                method: method.to_owned(),
                target: target.to_owned(),
                body,
            });
        }
        let Some((name, value)) = header.split_once(':') else {
            return Err(odd("no header"));
        };
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            length = value.parse().map_err(|_| odd("no length"))?;
        }
        is_chunked |=
            name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked");
    }
    Err(odd("too many headers"))
}

fn exactly(reader: &mut impl BufRead, length: u64) -> io::Result<Vec<u8>> {
    if length > BODY_LIMIT {
        return Err(odd("too long a body"));
    }
    let mut body = Vec::new();
    reader.by_ref().take(length).read_to_end(&mut body)?;
    if body.len() as u64 == length {
        Ok(body)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default();
        let size = u64::from_str_radix(size, 16).map_err(|_| odd("no chunk"))?;
        if body.len() as u64 + size > BODY_LIMIT {
            return Err(odd("too long a body"));
        }
        body.extend(exactly(reader, size)?);
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_request_is_recorded_and_answered_once() {
        let folder = tempfile::tempdir().unwrap();
        let stand_in = StandIn::open(folder.path(), |heard| FakeResponse {
            status: 500,
            headers: vec![("Api-Version", "1.41".into())],
            body: format!("{{\"message\":\"{}\"}}", heard.method),
        })
        .unwrap();
        let mut stream = UnixStream::connect(stand_in.path()).unwrap();
        stream
            .write_all(b"POST /a?b=c HTTP/1.1\r\nContent-Length: 3\r\nHost: x\r\n\r\n{1}")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(answer.ends_with("{\"message\":\"POST\"}"), "{answer}");
        let expected = FakeRequest {
            method: "POST".into(),
            target: "/a?b=c".into(),
            body: b"{1}".to_vec(),
        };
        assert_eq!(stand_in.heard(), [expected]);
        let path = stand_in.path().to_owned();
        drop(stand_in);
        assert!(!path.exists());
    }

    #[test]
    fn chunked_body_is_joined_and_bad_request_is_refused() {
        let read = |text: &[u8]| request(&mut io::Cursor::new(text.to_vec()));
        let chunked =
            b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
        assert_eq!(read(chunked).unwrap().body, b"abc");
        for wrong in [
            &b"GET\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\n",
            b"GET / HTTP/1.1\r\nno header\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(read(wrong).is_err());
        }
    }
}
