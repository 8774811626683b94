//! Chooses the port on which a program serves, and checks whether it listens.
//!
//! Limits: needs a table of sockets to read; on Windows a program that serves is refused.

use std::net::{IpAddr, Ipv4Addr, TcpListener, UdpSocket};
use std::process::Child;
use std::time::{Duration, Instant};

use tare_model::command::Transport;
use tare_model::{Params, Reason};

use crate::args;
use crate::meter::ProbeError;

/// How long a server may take until it listens, by default.
pub(super) const LISTEN_LIMIT: Duration = Duration::from_secs(10);
/// Polling interval for that check.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// Returns an unused port, or the one that the argument `port` names: on every address, or, if a port is named, on
/// `own`, because other nodes may use the same port on their addresses.
pub(super) fn free_port(
    transport: Transport,
    own: Option<IpAddr>,
    params: &Params,
) -> Result<u16, ProbeError> {
    if cfg!(windows) {
        return Err(ProbeError::Unavailable(Reason::Unsupported(
            "a program that serves: on Windows nothing tells yet when it listens".to_owned(),
        )));
    }
    let wanted = args::port(params, 0)?;
    let address = own.filter(|_| wanted != 0);
    let address = (address.unwrap_or(Ipv4Addr::UNSPECIFIED.into()), wanted);
    let port = match transport {
        Transport::Tcp => TcpListener::bind(address).and_then(|socket| socket.local_addr()),
        Transport::Udp => UdpSocket::bind(address).and_then(|socket| socket.local_addr()),
    };
    port.map(|address| address.port()).map_err(|error| {
        ProbeError::system(&format!("find a port to listen on ({wanted})"), &error)
    })
}

/// Waits until the server listens. On an error the server has exited or been killed, and the text says why it does
/// not listen.
pub(super) fn wait_until_it_listens(
    child: &mut Child,
    (transport, own, port): (Transport, Option<IpAddr>, u16),
    (begin, patience): (Instant, Duration),
) -> Result<(), String> {
    loop {
        if listens(transport, own, port) {
            return Ok(());
        }
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            return Err(format!("the server ended ({status}) before it listened"));
        }
        if begin.elapsed() > patience {
            // Both fail only if it has just exited.
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "the server did not listen on port {port} within {} s",
                patience.as_secs_f64()
            ));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Returns whether a socket in this network namespace listens on the port, from the kernel's table: connecting would
/// use up the one connection that some servers accept (proc_net_tcp(5); state 0A is LISTEN). If `own` is given, the
/// socket must listen on it or on every address.
fn listens(transport: Transport, own: Option<IpAddr>, port: u16) -> bool {
    let (tables, state) = match transport {
        Transport::Tcp => (["/proc/net/tcp", "/proc/net/tcp6"], Some("0A")),
        Transport::Udp => (["/proc/net/udp", "/proc/net/udp6"], None),
    };
    let wanted = format!("{port:04X}");
    let is_place = |place: &str| match own {
        // The kernel prints the address as a number in the machine's byte order.
        Some(IpAddr::V4(own)) => {
            let own = format!("{:08X}", u32::from_ne_bytes(own.octets()));
            place.ends_with(&own) || place.bytes().all(|digit| digit == b'0')
        }
        Some(IpAddr::V6(_)) | None => true,
    };
    tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .any(|table| {
            table.lines().skip(1).any(|line| {
                let mut fields = line.split_whitespace().skip(1);
                let local = fields.next().and_then(|local| local.rsplit_once(':'));
                let found = fields.nth(1);
                local.is_some_and(|(place, port)| port == wanted && is_place(place))
                    && (state.is_none() || found == state)
            })
        })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn listens_is_true_only_for_bound_port() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(listens(Transport::Tcp, None, port));
        let at = |text: &str| Some(text.parse().unwrap());
        assert!(listens(Transport::Tcp, at("127.0.0.1"), port));
        assert!(!listens(Transport::Tcp, at("127.0.0.2"), port));
        drop(listener);
        assert!(!listens(Transport::Tcp, None, port));
    }
}
