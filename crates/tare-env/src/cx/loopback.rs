//! A small server on the loopback, for pages that the user's own browser asks for.
//!
//! It hears on 127.0.0.1 alone. Any page in a browser can make it ask any port of the loopback, under a name of its
//! owner's choice; so whoever answers is told which host was asked for and where the question came from, and has to
//! look at both. Connections that say nothing are closed after a while, and there are never many of them.
//! What it cannot see: which user of the machine asks.

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

/// Connections at once; a browser opens six.
const MOST: usize = 32;
/// How long a connection may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);

/// A question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Question {
    /// `GET` and so on.
    pub method: String,
    /// The path, as it was sent.
    pub path: String,
    /// What stands behind a question mark, as it was sent.
    pub query: Option<String>,
    /// The host that was asked for.
    pub host: Option<String>,
    /// The page that asks, if it says so.
    pub origin: Option<String>,
    /// What the browser says of the two: `same-origin`, `cross-site`, …
    pub site: Option<String>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// The kind of its content.
    pub kind: &'static str,
    /// The content.
    pub content: String,
}

/// Hears on a port of the loopback, 0 for any that is free, and answers until the process ends. `is_heard` is told the
/// address first.
///
/// # Errors
/// If the port cannot be had.
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
            // What fails is one connection, never the server.
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            if n_open.get() >= MOST {
                continue;
            }
            let open = Open::of(&n_open);
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

/// A connection among those that are open, however it ends: also when its answer panics.
struct Open(Rc<Cell<usize>>);

impl Open {
    fn of(all: &Rc<Cell<usize>>) -> Self {
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
        // What is no text is nobody's name.
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
        // Its content says the rest itself; this it cannot say.
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
