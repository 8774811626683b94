//! What the TCP probes share: finding the peer, connecting, serving, and never waiting for ever.
//!
//! Every wait has a limit, so that a peer that is gone or silent is a failure with its reason instead of a
//! worker that has to be killed. The limits are options of the socket and cost nothing per operation.
//! What it cannot see: a way that works but loses packets; that shows as time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tare_model::{Failure, Params, Reason};

use crate::args::{self, refused};
use crate::meter::{Meter, ProbeError};

/// How long connecting may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// How long a peer may keep silent, or stay away.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two looks for a client.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// Where the other end is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// In this process, over the loopback.
    Here,
    /// At this address.
    There(SocketAddr),
}

/// The peer that the arguments `address` and `port` name; without both it is here.
pub fn peer(params: &Params) -> Result<Peer, ProbeError> {
    match (params.value("address"), params.value("port")) {
        (None, None) => Ok(Peer::Here),
        (Some(_), Some(_)) => {
            let address = args::address(params, "address")?
                .ok_or_else(|| refused("argument `address` is no text".to_owned()))?;
            let port = args::port(params, 1)?;
            Ok(Peer::There(SocketAddr::new(address, port)))
        }
        _ => Err(refused(
            "arguments `address` and `port` are given together or not at all".to_owned(),
        )),
    }
}

/// Listens on the port in `port` or one of the system's choice, on the address in `bind` or on every IPv4
/// address, and announces the port.
pub fn listen(meter: &mut Meter, params: &Params) -> Result<TcpListener, ProbeError> {
    let listener = bound(params)?;
    announce(meter, listener.local_addr())?;
    Ok(listener)
}

fn bound(params: &Params) -> Result<TcpListener, ProbeError> {
    let address = args::address(params, "bind")?.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let port = args::port(params, 0)?;
    TcpListener::bind((address, port)).map_err(|error| match port {
        0 => ProbeError::system(&format!("listen on {address}"), &error),
        _ => ProbeError::system(&format!("listen on {address}, port {port}"), &error),
    })
}

/// Tells the port of the address that was given.
pub(crate) fn announce(
    meter: &mut Meter,
    address: io::Result<SocketAddr>,
) -> Result<(), ProbeError> {
    let address = address.map_err(|error| ProbeError::system("ask for the port", &error))?;
    meter.announce(address.port());
    Ok(())
}

/// Listens on a port of the loopback.
pub fn listen_on_loopback() -> Result<(TcpListener, SocketAddr), ProbeError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr().map(|address| (listener, address)))
        .map_err(|error| no_loopback("listen on the loopback", &error))
}

/// Connects and prepares the stream for measuring.
pub fn connect(address: SocketAddr) -> Result<TcpStream, ProbeError> {
    let stream =
        TcpStream::connect_timeout(&address, CONNECT_LIMIT).map_err(|error| {
            match error.kind() {
                ErrorKind::NetworkUnreachable => no_path(address.ip(), &error),
                ErrorKind::TimedOut => ProbeError::Failed(Failure::Probe(format!(
                    "connect to {address}: no answer within {} s",
                    CONNECT_LIMIT.as_secs()
                ))),
                _ => ProbeError::system(&format!("connect to {address}"), &error),
            }
        })?;
    prepared(stream)
}

/// Why a socket could not be had on the loopback.
pub(crate) fn no_loopback(step: &str, error: &io::Error) -> ProbeError {
    match error.kind() {
        ErrorKind::AddrNotAvailable => no_path(Ipv4Addr::LOCALHOST.into(), error),
        _ => ProbeError::system(step, error),
    }
}

pub(crate) fn no_path(address: IpAddr, error: &io::Error) -> ProbeError {
    ProbeError::Unavailable(Reason::NoPath(format!("{address}: {error}")))
}

/// Waits for one client.
pub fn accept(listener: &TcpListener) -> Result<TcpStream, ProbeError> {
    let failed = |error: &io::Error| ProbeError::system("accept", error);
    listener
        .set_nonblocking(true)
        .map_err(|error| failed(&error))?;
    let begin = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream
                    .set_nonblocking(false)
                    .map_err(|error| failed(&error))?;
                return prepared(stream);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock && begin.elapsed() < PATIENCE => {
                std::thread::sleep(LOOK_AGAIN);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                return Err(ProbeError::Failed(Failure::Probe(format!(
                    "accept: no connection within {} s",
                    PATIENCE.as_secs()
                ))));
            }
            Err(error) => return Err(failed(&error)),
        }
    }
}

/// Sends each message at once instead of waiting for the answer to the one before (Nagle's rule). For round
/// trips only: in a stream it would cut off the rest of every write as a small segment of its own.
pub fn without_delay(stream: TcpStream) -> Result<TcpStream, ProbeError> {
    stream
        .set_nodelay(true)
        .map_err(|error| ProbeError::system("set TCP_NODELAY", &error))?;
    Ok(stream)
}

fn prepared(stream: TcpStream) -> Result<TcpStream, ProbeError> {
    stream
        .set_read_timeout(Some(PATIENCE))
        .and_then(|()| stream.set_write_timeout(Some(PATIENCE)))
        .map_err(|error| ProbeError::system("set options of the connection", &error))?;
    Ok(stream)
}

/// Sets an option of the socket, which has this name and number.
#[cfg(unix)]
pub(crate) fn set_option<T: Copy>(
    stream: &TcpStream,
    (name, option): (&str, libc::c_int),
    value: &T,
) -> Result<(), ProbeError> {
    use std::os::fd::AsRawFd;
    #[allow(clippy::cast_possible_truncation, reason = "a few bytes")]
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value has the size that is given.
    let done = unsafe {
        libc::setsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            option,
            std::ptr::from_ref(value).cast(),
            size,
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(ProbeError::last(&format!("set {name}")))
}

/// How many bytes must have come before a reader is woken.
#[derive(Debug)]
pub(crate) struct LowWater<'a> {
    stream: &'a TcpStream,
    bytes: usize,
}

impl<'a> LowWater<'a> {
    /// A new connection's reader is woken by any byte.
    pub(crate) fn of(stream: &'a TcpStream) -> Self {
        Self { stream, bytes: 1 }
    }

    /// From now on so many bytes wake the reader, or the end of the stream. What a `read` that waits has already taken
    /// does not count, so that as many must still come after all that it asks for: else it waits for ever.
    pub(crate) fn set(&mut self, bytes: usize) -> Result<(), ProbeError> {
        if self.bytes != bytes {
            #[cfg(unix)]
            set_option(
                self.stream,
                ("SO_RCVLOWAT", libc::SO_RCVLOWAT),
                &libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX),
            )?;
            self.bytes = bytes;
        }
        Ok(())
    }
}

/// A connection that broke, or fell silent.
pub fn broken(when: &str, error: &io::Error) -> ProbeError {
    ProbeError::Failed(Failure::Probe(match error.kind() {
        ErrorKind::UnexpectedEof => format!("the peer closed the connection {when}"),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("the peer kept silent for {} s {when}", PATIENCE.as_secs())
        }
        _ => format!("the connection broke {when}: {error}"),
    }))
}

/// Sends back what comes, until the peer closes.
pub fn echo(stream: TcpStream) -> Result<(), ProbeError> {
    let mut stream = without_delay(stream)?;
    let mut buffer = vec![0u8; 4096];
    loop {
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => length,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(broken("while it was served", &error)),
        };
        stream
            .write_all(&buffer[..length])
            .map_err(|error| broken("while it was served", &error))?;
    }
}

/// Runs `server` on a thread of its own and `client` here; the client's answer counts, and a failure of
/// either is one of both. When the client fails, the server is not waited for: its waits have limits.
pub fn with_server<T>(
    server: impl FnOnce() -> Result<(), ProbeError> + Send + 'static,
    client: impl FnOnce() -> Result<T, ProbeError>,
) -> Result<T, ProbeError> {
    let thread = std::thread::Builder::new()
        .name("tare-server".into())
        .spawn(server)
        .map_err(|error| ProbeError::system("start the server's thread", &error))?;
    let answer = client()?;
    match thread.join() {
        Ok(served) => served.map(|()| answer),
        Err(_) => Err(ProbeError::Failed(Failure::Probe(
            "the server's thread panicked".into(),
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_address_or_a_name_for_one_is_refused() {
        let params = Params::new();
        assert_eq!(peer(&params), Ok(Peer::Here));
        let both = params
            .clone()
            .with("address", "127.0.0.1")
            .with("port", 7i64);
        assert_eq!(
            peer(&both),
            Ok(Peer::There(SocketAddr::from(([127, 0, 0, 1], 7))))
        );
        for bad in [
            params.clone().with("address", "127.0.0.1"),
            params.clone().with("port", 7i64),
            params
                .clone()
                .with("address", "localhost")
                .with("port", 7i64),
            params.clone().with("address", 7i64).with("port", 7i64),
            params
                .clone()
                .with("address", "127.0.0.1")
                .with("port", 0i64),
            params
                .clone()
                .with("address", "127.0.0.1")
                .with("port", 65_536i64),
        ] {
            assert!(matches!(peer(&bad), Err(ProbeError::Failed(_))), "{bad:?}");
        }
    }

    #[test]
    fn a_port_that_nobody_listens_on_is_a_quick_failure() {
        let (listener, address) = listen_on_loopback().unwrap();
        drop(listener);
        let begin = Instant::now();
        let error = connect(address).unwrap_err();
        assert!(begin.elapsed() < CONNECT_LIMIT);
        let ProbeError::Failed(Failure::Probe(text)) = error else {
            panic!("{error:?}")
        };
        assert!(text.contains("refused"), "{text}");
    }

    #[test]
    fn a_server_takes_the_port_that_it_is_given_again_and_again_and_says_when_it_is_taken() {
        let free = listen_on_loopback().unwrap().1.port();
        let params = Params::new()
            .with("bind", "127.0.0.1")
            .with("port", i64::from(free));
        for _ in 0..3 {
            let listener = bound(&params).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert_eq!(port, free);
            // A connection that the server closes first lingers in the system.
            let client = connect(listener.local_addr().unwrap()).unwrap();
            drop(accept(&listener).unwrap());
            drop(client);
        }
        let _owner = bound(&params).unwrap();
        let Err(ProbeError::Failed(Failure::Probe(text))) = bound(&params) else {
            panic!("a port was given twice")
        };
        assert!(text.contains(&free.to_string()), "{text}");
    }

    #[test]
    fn a_server_that_fails_fails_the_whole() {
        let outcome = with_server(|| Err(refused("no".into())), || Ok(1));
        assert_eq!(outcome, Err(refused("no".into())));
        let outcome: Result<u8, _> = with_server(|| Ok(()), || Err(refused("neither".into())));
        assert_eq!(outcome, Err(refused("neither".into())));
    }
}
