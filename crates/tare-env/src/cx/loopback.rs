//! A small HTTP server on the loopback, for pages that the user's browser requests.
//!
//! It listens on 127.0.0.1 only. Any page in a browser can make it request any port of the loopback, under a host
//! name of the page's choice; so the handler gets the requested host and the origin, and must check both. Idle
//! connections are closed after a while, and their number is bounded.
//! Limits: cannot distinguish the users of the machine.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

/// Maximum of connections at once; a browser opens six.
const MOST: usize = 32;
/// How long a connection may take to send its request head.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// `GET` etc.
    pub method: String,
    /// The path, as sent.
    pub path: String,
    /// The query after the question mark, as sent.
    pub query: Option<String>,
    /// The `Host` header.
    pub host: Option<String>,
    /// The `Origin` header, if the browser sends one.
    pub origin: Option<String>,
    /// How the browser relates the two: `same-origin`, `cross-site`, …
    pub site: Option<String>,
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its content type.
    pub kind: &'static str,
    /// The content.
    pub content: String,
}

/// Listens on a port of the loopback, 0 for any free one, and answers until the process ends. Calls `is_heard` with
/// the address first.
///
/// # Errors
/// The port cannot be bound.
pub fn serve(
    port: u16,
    is_heard: impl FnOnce(SocketAddr),
    answer: impl Fn(SocketAddr, &Question) -> Answer + 'static,
) -> io::Result<Infallible> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async move {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        is_heard(address);
        let answer = Rc::new(answer);
        let n_open = Rc::new(Cell::new(0));
        loop {
            // Only one connection failed, not the server.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if n_open.get() >= MOST {
                continue;
            }
            let open = Open::count(&n_open);
            let answer = Rc::clone(&answer);
            tokio::task::spawn_local(async move {
                let service = service_fn(move |request: hyper::Request<Incoming>| {
                    let answered = answer(address, &question(&request));
                    async move { Ok::<_, Infallible>(response(answered)) }
                });
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(PATIENCE)
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
                drop(open);
            });
        }
    })
}

/// Counts an open connection until it is dropped, also when its handler panics.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn count(all: &Rc<Cell<usize>>) -> Self {
        all.set(all.get() + 1);
        Self(Rc::clone(all))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

fn question(request: &hyper::Request<Incoming>) -> Question {
    let text = |name: HeaderName| {
        let value = request.headers().get(name)?;
        // A value that is not text matches no name.
        Some(value.to_str().unwrap_or("?").to_owned())
    };
    Question {
        method: request.method().to_string(),
        path: request.uri().path().to_owned(),
        query: request.uri().query().map(str::to_owned),
        host: text(header::HOST),
        origin: text(header::ORIGIN),
        site: text(HeaderName::from_static("sec-fetch-site")),
    }
}

fn response(answer: Answer) -> hyper::Response<Full<Bytes>> {
    let mut response = hyper::Response::new(Full::new(Bytes::from(answer.content)));
    *response.status_mut() = hyper::StatusCode::from_u16(answer.status)
        .unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in [
        (header::CONTENT_TYPE, answer.kind),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        // The content declares the rest of its policy itself; this directive cannot be in it.
        (header::CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
    ] {
        let headers = response.headers_mut();
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
