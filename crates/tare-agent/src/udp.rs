//! Shared code of the UDP probes: sockets with timeouts, and serving.
//!
//! Limits: cannot distinguish whether a datagram was lost on the way there or back.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tare_model::{Failure, Params};

use crate::args;
use crate::meter::{Meter, ProbeError};
use crate::tcp::{announce, no_loopback, no_path};

/// Timeout for a datagram.
const PATIENCE: Duration = Duration::from_secs(2);
/// Timeout of a server for the next datagram.
const SERVER_PATIENCE: Duration = Duration::from_secs(5);
/// Marks the last datagram; shorter than any message.
const LAST: &[u8] = b"last";

/// Binds a socket to the port in `port` or one that the system chooses, on the address in `bind` or on every IPv4
/// address, and announces its port.
pub fn bind(meter: &mut Meter, params: &Params) -> Result<UdpSocket, ProbeError> {
    let address = args::address(params, "bind")?.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
    let port = args::port(params, 0)?;
    let socket = UdpSocket::bind((address, port))
        .map_err(|error| ProbeError::system(&format!("bind to {address}"), &error))?;
    announce(meter, socket.local_addr())?;
    Ok(socket)
}

/// Binds a socket on the loopback.
pub fn on_loopback() -> Result<(UdpSocket, SocketAddr), ProbeError> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| socket.local_addr().map(|address| (socket, address)))
        .map_err(|error| no_loopback("bind to the loopback", &error))
}

/// Returns a socket connected to `address`.
pub fn connected(address: SocketAddr) -> Result<UdpSocket, ProbeError> {
    let any: IpAddr = match address.ip() {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket =
        UdpSocket::bind((any, 0)).map_err(|error| ProbeError::system("make a socket", &error))?;
    socket
        .connect(address)
        .map_err(|error| match error.kind() {
            ErrorKind::NetworkUnreachable => no_path(address.ip(), &error),
            _ => ProbeError::system(&format!("connect to {address}"), &error),
        })?;
    socket
        .set_read_timeout(Some(PATIENCE))
        .map_err(|error| ProbeError::system("set options of the socket", &error))?;
    Ok(socket)
}

/// Returns the error for a datagram that did not come back.
pub fn broken(n_done: u64, error: &io::Error) -> ProbeError {
    ProbeError::Failed(Failure::Probe(match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => format!(
            "a datagram did not come back within {} s after {n_done} round trips",
            PATIENCE.as_secs()
        ),
        _ => format!("the socket failed after {n_done} round trips: {error}"),
    }))
}

/// Returns the error for a datagram that differs from the one that was sent.
pub fn another(n_done: u64) -> ProbeError {
    ProbeError::Failed(Failure::Void(format!(
        "another datagram came back than was sent, after {n_done} round trips"
    )))
}

/// Notifies the server that no more datagrams follow.
pub fn finish(socket: &UdpSocket) {
    // If it is lost, the server times out.
    let _ = socket.send(LAST);
}

/// Echoes datagrams until the last one, or until none arrives before the timeout.
pub fn echo(socket: &UdpSocket) -> Result<(), ProbeError> {
    socket
        .set_read_timeout(Some(SERVER_PATIENCE))
        .map_err(|error| ProbeError::system("set options of the socket", &error))?;
    let mut buffer = vec![0u8; 4096];
    loop {
        match socket.recv_from(&mut buffer) {
            Ok((length, _)) if buffer[..length] == *LAST => return Ok(()),
            Ok((length, from)) => {
                socket
                    .send_to(&buffer[..length], from)
                    .map_err(|error| ProbeError::system("send a datagram back", &error))?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Ok(());
            }
            Err(error) => return Err(ProbeError::system("receive a datagram", &error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn udp_server_echoes_until_finished() {
        let (server, address) = on_loopback().unwrap();
        let thread = std::thread::spawn(move || echo(&server));
        let socket = connected(address).unwrap();
        let mut buffer = [0; 16];
        socket.send(b"a message").unwrap();
        assert_eq!(socket.recv(&mut buffer).unwrap(), 9);
        assert_eq!(&buffer[..9], b"a message");
        finish(&socket);
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn udp_send_to_closed_port_is_an_error() {
        let (free, address) = on_loopback().unwrap();
        drop(free);
        let socket = connected(address).unwrap();
        let error = socket
            .send(b"x")
            .and_then(|_| socket.recv(&mut [0; 4]))
            .unwrap_err();
        assert!(matches!(broken(0, &error), ProbeError::Failed(_)));
    }
}
