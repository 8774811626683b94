//! A fake server on a local socket: records each request and answers it by a function.
//!
//! The best way to learn what a client makes of its arguments is to run it. Pointed at such a socket, it sends its
//! request, and nothing is created, changed or named.
//! Limits: requests that would follow on the same connection are not seen; every connection ends with its answer.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::runtime::Runtime;

use super::local_socket::LocalSocket;
use super::locked;

/// How long a client may take to send a request.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The longest body: configurations have a few kilobytes, seccomp profiles a hundred.
const BODY_LIMIT: usize = 16 << 20;

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
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&heard);
        let socket = LocalSocket::open(folder, "ask", move |stream| {
            // A connection that failed is the client's to report.
            let _ = attend(&runtime, stream, &notes, &answer);
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

/// Reads one request of a connection, keeps it and answers.
fn attend(
    runtime: &Runtime,
    stream: UnixStream,
    notes: &Mutex<Vec<FakeRequest>>,
    answer: &impl Fn(&FakeRequest) -> FakeResponse,
) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    let service = service_fn(|request: hyper::Request<Incoming>| async {
        let (head, body) = request.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await?;
        let heard = FakeRequest {
            method: head.method.to_string(),
            target: head.uri.to_string(),
            body: body.to_bytes().to_vec(),
        };
        let shown = answer(&heard);
        locked(notes).push(heard);
        let mut response = hyper::Response::builder()
            .status(shown.status)
            .header(CONTENT_TYPE, "application/json");
        for (name, value) in shown.headers {
            response = response.header(name, value);
        }
        let content = Full::new(Bytes::from(shown.body));
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(response.body(content)?)
    });
    runtime.block_on(async {
        let stream = TokioIo::new(tokio::net::UnixStream::from_std(stream)?);
        let mut server = http1::Builder::new();
        let server = server.keep_alive(false).half_close(true);
        let served = server.serve_connection(stream, service);
        // A malformed request is not kept; the client reports that itself.
        let _ = tokio::time::timeout(REQUEST_LIMIT, served).await;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

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
    fn chunked_body_is_joined_and_bad_request_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let stand_in = StandIn::open(folder.path(), |_| FakeResponse {
            status: 200,
            ..FakeResponse::default()
        })
        .unwrap();
        for text in [
            &b"PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n"[..],
            b"GET\r\n\r\n",
            b"GET / HTTP/1.1\r\nno header\r\n\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            let mut stream = UnixStream::connect(stand_in.path()).unwrap();
            stream.write_all(text).unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let heard = stand_in.heard();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].body, b"abc");
    }
}
