//! Limits how many bytes are read from an engine for one answer.
//!
//! The client library collects a whole answer, however long it is, and a time limit does not bound memory. So the
//! bytes of a connection are counted since something was last sent on it: an endless answer is an error of the
//! connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bollard::errors::Error as ApiError;
use bollard::{API_DEFAULT_VERSION, Docker as Client};
use hyper::Uri;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tare_model::wire::FRAME_LIMIT_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower_service::Service;

use super::endpoint::Endpoint;
use crate::cx::CONTROL_LIMIT;

/// Maximum of bytes read on a connection before something is sent on it again: an agent's longest frame, and as much
/// around it.
const LIMIT_BYTES: usize = 2 * FRAME_LIMIT_BYTES as usize;

/// A client of the engine at `endpoint`, which is a socket or an address.
///
/// # Errors
/// The client library rejects its own parameters.
pub(super) fn client(endpoint: &Endpoint) -> Result<Client, ApiError> {
    // A connection per request, as the library does: why an idle one was closed is never reported.
    let client = legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build(Connector(endpoint.clone()));
    let transport = move |request: bollard::BollardRequest| {
        let answer = client.request(request);
        async move { answer.await.map_err(ApiError::from) }
    };
    let seconds = CONTROL_LIMIT.as_secs();
    // The connector knows the real address.
    let address = Some("http://engine");
    Client::connect_with_custom_transport(transport, address, seconds, API_DEFAULT_VERSION)
}

/// Opens a connection.
///
/// # Errors
/// The system's error; an endpoint that is neither a socket nor an address is not supported here.
pub(super) async fn open(endpoint: &Endpoint) -> io::Result<Box<dyn Stream>> {
    match endpoint {
        #[cfg(unix)]
        Endpoint::Socket(path) => Ok(Box::new(tokio::net::UnixStream::connect(path).await?)),
        Endpoint::Http(address) => Ok(Box::new(tokio::net::TcpStream::connect(address).await?)),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// A readable and writable stream.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

#[derive(Clone)]
struct Connector(Endpoint);

impl Service<Uri> for Connector {
    type Response = TokioIo<Bounded>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let endpoint = self.0.clone();
        Box::pin(async move {
            let stream = open(&endpoint).await?;
            Ok(TokioIo::new(Bounded {
                stream,
                left: LIMIT_BYTES,
            }))
        })
    }
}

/// A connection, with the number of bytes that may be read before the next write.
struct Bounded {
    stream: Box<dyn Stream>,
    left: usize,
}

impl Connection for Bounded {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let length = buffer.filled().len() - before;
        let Some(left) = self.left.checked_sub(length) else {
            return Poll::Ready(Err(io::Error::other(format!(
                "its answer is longer than {} MiB",
                LIMIT_BYTES >> 20
            ))));
        };
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.left = LIMIT_BYTES;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixListener;

    use super::super::errors::system_error;
    use super::*;

    #[test]
    fn endless_answer_is_an_error_with_bounded_memory() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine");
        let listener = UnixListener::bind(&path).unwrap();
        let engine = std::thread::spawn(move || {
            let mut connection = listener.accept().unwrap().0;
            assert!(connection.read(&mut [0; 4096]).unwrap() > 0);
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"Version\":\"";
            connection.write_all(head).unwrap();
            let mut sent = 0_usize;
            while connection.write_all(&[b'1'; 1 << 14]).is_ok() {
                sent += 1 << 14;
            }
            sent
        });
        let client = client(&Endpoint::Socket(path.display().to_string())).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let error = runtime.block_on(client.version()).unwrap_err();
        assert_eq!(system_error(&error), Some(io::ErrorKind::Other), "{error}");
        drop((client, runtime));
        let sent = engine.join().unwrap();
        assert!((LIMIT_BYTES..2 * LIMIT_BYTES).contains(&sent), "{sent}");
    }
}
