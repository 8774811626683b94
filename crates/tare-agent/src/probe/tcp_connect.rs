//! `tcp-connect`: opens a connection, reads a greeting, and closes it.
//!
//! Inside the timed region, per operation: creating a socket, connecting, the peer's accepting and sending one byte,
//! reading it, and closing with a reset. Outside: everything else. The reset instead of a normal close leaves no
//! connection in TIME_WAIT at either end: some ten thousand of these would use up all ports and make later trials
//! fail.
//! Without `address` the peer is a thread of this process on the loopback; with `address` and `port` it is the probe
//! `tcp-accept` on the other side.
//! Known bias: one connection at a time, so the rate is the inverse of a latency and not the capacity of a server.
//! Source: netperf's TCP_CC.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use tare_model::{Params, Unit};

use crate::meter::{Meter, ProbeError};
use crate::slices::{Slice, batch, rates, times_ns, total};
use crate::tcp::{self, Peer};

super::probe! {
    "tcp-connect": "opening a TCP connection, reading the peer's first byte, and closing";
    revision 1, cut KERNEL
}

/// The metrics: one connection's time, and connections per second.
pub const TIME: &str = "net.tcp.connect.time";
/// See [`TIME`].
pub const RATE: &str = "net.tcp.connect.rate";

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let slices = match tcp::peer(params)? {
        Peer::There(address) => connect_often(meter, address)?,
        Peer::Here => {
            let (listener, address) = tcp::listen_on_loopback()?;
            tcp::with_server(move || greet(&listener), || connect_often(meter, address))?
        }
    };
    meter.record(TIME, Unit::Nanosecond, times_ns(&slices), batch(&slices));
    meter.note(total(&slices));
    meter.record(
        RATE,
        Unit::OperationPerSecond,
        rates(&slices, 1),
        batch(&slices),
    );
    Ok(())
}

fn connect_often(meter: &mut Meter, address: SocketAddr) -> Result<Vec<Slice>, ProbeError> {
    let mut n_done = 0u64;
    let slices = meter.stream(1.0, |slices| {
        let before = n_done;
        loop {
            let mut stream = tcp::connect(address)?;
            let mut greeting = [0u8];
            stream
                .read_exact(&mut greeting)
                .map_err(|error| tcp::broken(&format!("after {n_done} connections"), &error))?;
            reset_at_close(&stream)?;
            drop(stream);
            n_done += 1;
            if !slices.advance(n_done - before) {
                return Ok(());
            }
        }
    })?;
    let mut last = tcp::connect(address)?;
    last.write_all(b"q")
        .and_then(|()| last.read_exact(&mut [0u8]))
        .map_err(|error| tcp::broken("at the end", &error))?;
    Ok(slices)
}

/// Makes the connection end with a reset when it is closed.
#[cfg(unix)]
fn reset_at_close(stream: &std::net::TcpStream) -> Result<(), ProbeError> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    tcp::set_option(stream, ("SO_LINGER", libc::SO_LINGER), &linger)
}

#[cfg(not(unix))]
fn reset_at_close(_stream: &std::net::TcpStream) -> Result<(), ProbeError> {
    Err(super::linux_only("SO_LINGER"))
}

/// Accepts connections and greets them, until a byte arrives on one.
pub(super) fn greet(listener: &TcpListener) -> Result<(), ProbeError> {
    let failed = |error: &std::io::Error| ProbeError::system("accept", error);
    // `tcp::accept` has a timeout and sets the socket's options.
    let mut stream = tcp::accept(listener)?;
    listener
        .set_nonblocking(false)
        .map_err(|error| failed(&error))?;
    loop {
        // A client that has already disconnected is not an error.
        let is_greeted = stream.write_all(&[0x5a]).is_ok();
        if is_greeted && matches!(stream.read(&mut [0u8]), Ok(1)) {
            return Ok(());
        }
        (stream, _) = listener.accept().map_err(|error| failed(&error))?;
    }
}
