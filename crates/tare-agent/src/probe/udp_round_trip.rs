//! `udp-round-trip`: sends one datagram there and back.
//!
//! Inside the timed region, per operation: `send` of `bytes` bytes (default: 16), the way to the peer, its `recvfrom`
//! and `sendto`, the way back, and `recv`; both ends block. Outside: creating the sockets, the warm-up.
//! Without `address` the peer is a thread of this process on the loopback; with `address` and `port` it is the probe
//! `udp-echo` on the other side.
//! Known bias: as `tcp-round-trip`. A lost datagram makes the trial fail, because a timeout of seconds instead of
//! microseconds would not be a round trip; datagrams are numbered, so that an old answer is not taken for a new one.
//! Source: netperf's UDP_RR.

use std::net::UdpSocket;

use tare_model::{Params, Unit, whole_size};

use crate::args;
use crate::meter::{Meter, ProbeError};
use crate::slices::{Slice, batch, times_ns, total};
use crate::tcp::{self, Peer};
use crate::udp;

super::probe! {
    "udp-round-trip": "a datagram of 16 bytes there and back";
    revision 1, cut KERNEL
}

/// The metric: the time of a round trip.
pub const TIME: &str = "net.udp.round-trip.time";

/// The longest datagram: below the MTU of any link.
pub const LONGEST_BYTES: i64 = 1024;

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let bytes = whole_size(args::whole(params, "bytes", 16, 8..=LONGEST_BYTES)?);
    let slices = match tcp::peer(params)? {
        Peer::There(address) => exchange(meter, &udp::connected(address)?, bytes)?,
        Peer::Here => {
            let (server, address) = udp::on_loopback()?;
            tcp::with_server(
                move || udp::echo(&server),
                || exchange(meter, &udp::connected(address)?, bytes),
            )?
        }
    };
    meter.record(TIME, Unit::Nanosecond, times_ns(&slices), batch(&slices));
    meter.note(total(&slices));
    Ok(())
}

fn exchange(meter: &mut Meter, socket: &UdpSocket, bytes: usize) -> Result<Vec<Slice>, ProbeError> {
    let mut message = vec![0u8; bytes];
    let mut answer = vec![0u8; bytes + 1];
    let mut n_done = 0u64;
    let slices = meter.stream(1.0, |slices| {
        let before = n_done;
        loop {
            n_done += 1;
            message[..8].copy_from_slice(&n_done.to_le_bytes());
            let length = socket
                .send(&message)
                .and_then(|_| socket.recv(&mut answer))
                .map_err(|error| udp::broken(n_done - 1, &error))?;
            if answer[..length] != message[..] {
                return Err(udp::another(n_done - 1));
            }
            if !slices.advance(n_done - before) {
                return Ok(());
            }
        }
    })?;
    udp::finish(socket);
    Ok(slices)
}
