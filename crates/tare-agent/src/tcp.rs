//! Shared code of the TCP probes: finding the peer, connecting, serving, and a timeout for every wait.
//!
//! With timeouts a dead or silent peer is a failure with a reason instead of a worker that has to be killed. The
//! timeouts are socket options and cost nothing per operation.
//! Limits: a path that works but loses packets is not detected; it shows as time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use tare_model::{Failure, Params, Reason};

use crate::args::{self, refused};
use crate::meter::{Meter, ProbeError};

/// Timeout for connecting.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Timeout for a silent or missing peer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two checks for a client.
const LOOK_AGAIN: Duration = Duration::from_micros(100);

/// The location of the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
    /// In this process, over the loopback.
    Here,
    /// At this address.
    There(SocketAddr),
}

/// Returns the peer that the arguments `address` and `port` name; without both it is `Here`.
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

/// Listens on the port in `port` or one that the system chooses, on the address in `bind` or on every IPv4 address,
/// and announces the port.
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

/// Announces the port of this address.
pub(crate) fn announce(
    meter: &mut Meter,
    address: io::Result<SocketAddr>,
) -> Result<(), ProbeError> {
    let address = address.map_err(|error| ProbeError::system("ask for the port", &error))?;
    meter.announce(address.port());
    Ok(())
}

/// Listens on a loopback port.
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

/// Returns the error for a socket that cannot be created on the loopback.
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

/// Disables Nagle's algorithm: sends each message immediately instead of waiting for the answer to the previous one.
/// For round trips only: in a stream it would send the rest of every write as a small separate segment.
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

/// Sets the socket option with this name and number.
#[cfg(unix)]
pub(crate) fn set_option<T: Copy>(
    stream: &TcpStream,
    (name, option): (&str, libc::c_int),
    value: &T,
) -> Result<(), ProbeError> {
    use std::os::fd::AsRawFd;
    #[allow(clippy::cast_possible_truncation, reason = "a few bytes")]
    let size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the descriptor is open, and the value has the given size.
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

/// The number of bytes that must arrive before a reader is woken.
#[derive(Debug)]
pub(crate) struct LowWater<'a> {
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "the option exists on Unix only")
    )]
    stream: &'a TcpStream,
    bytes: usize,
}

impl<'a> LowWater<'a> {
    /// Starts with the default: any byte wakes the reader.
    pub(crate) fn new(stream: &'a TcpStream) -> Self {
        Self { stream, bytes: 1 }
    }

    /// Sets the number of bytes that wake the reader; the end of the stream also does. Bytes that a waiting `read`
    /// has already taken do not count: at least this many must follow after all that it asks for, otherwise it blocks
    /// forever.
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

/// Returns the error for a broken or silent connection.
pub fn broken(when: &str, error: &io::Error) -> ProbeError {
    ProbeError::Failed(Failure::Probe(match error.kind() {
        ErrorKind::UnexpectedEof => format!("the peer closed the connection {when}"),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            format!("the peer kept silent for {} s {when}", PATIENCE.as_secs())
        }
        _ => format!("the connection broke {when}: {error}"),
    }))
}

/// Echoes all bytes until the peer closes.
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

/// Runs `server` on a separate thread and `client` on this one; returns the client's answer, or the failure of
/// either. If the client fails, the server is not joined: its waits have timeouts.
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
    fn connect_to_closed_port_fails_quickly() {
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
    fn server_rebinds_fixed_port_and_reports_port_in_use() {
        let free = listen_on_loopback().unwrap().1.port();
        let params = Params::new()
            .with("bind", "127.0.0.1")
            .with("port", i64::from(free));
        for _ in 0..3 {
            let listener = bound(&params).unwrap();
            let port = listener.local_addr().unwrap().port();
            assert_eq!(port, free);
            // A connection that the server closes first stays in TIME_WAIT.
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
