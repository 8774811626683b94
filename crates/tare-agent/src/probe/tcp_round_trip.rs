//! `tcp-round-trip`: sends one small message there and back over an open TCP connection.
//!
//! Inside the timed region, per operation: `write` of `bytes` bytes (default: 1), the way to the peer, its `read` and
//! `write`, the way back, and `read` until all bytes have arrived; both ends block and have TCP_NODELAY set. Outside:
//! connecting, and the warm-up.
//! Without `address` the peer is a thread of this process on the loopback; with `address` and `port` it is the probe
//! `tcp-echo` on the other side.
//! Known bias: includes waking a sleeping thread twice, which on an idle machine depends on its idle states; ends
//! that are threads of one process switch without changing the address space.
//! Source: netperf's TCP_RR.

use std::io::{Read, Write};
use std::net::TcpStream;

use tare_model::{Params, Unit, whole_size};

use crate::args;
use crate::meter::{Meter, ProbeError};
use crate::slices::{Slice, batch, times_ns, total};
use crate::tcp::{self, Peer};

super::probe! {
    "tcp-round-trip": "a message of 1 byte there and back over an open TCP connection";
    revision 1, cut KERNEL
}

/// The metric: the time of a round trip.
pub const TIME: &str = "net.tcp.round-trip.time";

/// The longest message: well below the capacity of the smallest socket buffer.
pub const LONGEST_BYTES: i64 = 1024;

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let bytes = whole_size(args::whole(params, "bytes", 1, 1..=LONGEST_BYTES)?);
    let slices = match tcp::peer(params)? {
        Peer::There(address) => exchange(meter, tcp::connect(address)?, bytes)?,
        Peer::Here => {
            let (listener, address) = tcp::listen_on_loopback()?;
            tcp::with_server(
                move || tcp::echo(tcp::accept(&listener)?),
                || exchange(meter, tcp::connect(address)?, bytes),
            )?
        }
    };
    meter.record(TIME, Unit::Nanosecond, times_ns(&slices), batch(&slices));
    meter.note(total(&slices));
    Ok(())
}

fn exchange(meter: &mut Meter, stream: TcpStream, bytes: usize) -> Result<Vec<Slice>, ProbeError> {
    let mut stream = tcp::without_delay(stream)?;
    let mut message = vec![0x5au8; bytes];
    let mut n_done = 0u64;
    meter.stream(1.0, |slices| {
        let before = n_done;
        loop {
            stream
                .write_all(&message)
                .and_then(|()| stream.read_exact(&mut message))
                .map_err(|error| tcp::broken(&format!("after {n_done} round trips"), &error))?;
            n_done += 1;
            if !slices.advance(n_done - before) {
                return Ok(());
            }
        }
    })
}
