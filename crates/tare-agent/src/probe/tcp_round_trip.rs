//! `tcp-round-trip`: one small message there and back over an open TCP connection.
//!
//! Inside the timed region, per operation: `write` of `bytes` bytes (1 where nothing else is asked for),
//! the way to the peer, its `read` and `write`, the way back, and `read` until all bytes are there; both
//! ends block and have TCP_NODELAY set. Outside: connecting, and the warm-up.
//! Without `address` the peer is a thread of this process and the way is the loopback; with `address` and
//! `port` it is the probe `tcp-echo` on the other side.
//! Known bias: includes waking a sleeping thread twice, which on a machine without load depends on its idle
//! states; ends that are threads of one process switch without changing the address space.
//! Source: netperf's TCP_RR.

use std::io::{Read, Write};
use std::net::TcpStream;

use tare_model::{Params, Unit};

use super::Probe;
use crate::args;
use crate::meter::{Meter, ProbeError};
use crate::slices::Slices;
use crate::tcp::{self, Peer};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "tcp-round-trip",
    revision: 1,
    about: "a message of 1 byte there and back over an open TCP connection",
    run,
};

/// The metric.
pub const TIME: &str = "net.tcp.round-trip.time";

/// The longest message: well below what the smallest socket buffer takes at once.
pub const LONGEST_BYTES: i64 = 1024;

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let bytes = args::whole(params, "bytes", 1, 1..=LONGEST_BYTES)? as usize;
    let share_ns = meter.target_ns();
    let slices = match tcp::peer(params)? {
        Peer::There(address) => exchange(tcp::connect(address)?, bytes, share_ns)?,
        Peer::Here => {
            let (listener, address) = tcp::listen_on_loopback()?;
            tcp::with_server(
                move || tcp::echo(tcp::accept(&listener)?),
                || exchange(tcp::connect(address)?, bytes, share_ns),
            )?
        }
    };
    meter.record(TIME, Unit::Nanosecond, slices.times_ns(), slices.batch());
    meter.note(slices.total());
    Ok(())
}

fn exchange(stream: TcpStream, bytes: usize, share_ns: u64) -> Result<Slices, ProbeError> {
    let mut stream = tcp::without_delay(stream)?;
    let mut message = vec![0x5au8; bytes];
    let mut slices = Slices::start(share_ns);
    let mut n_done = 0u64;
    loop {
        stream
            .write_all(&message)
            .and_then(|()| stream.read_exact(&mut message))
            .map_err(|error| tcp::broken(&format!("after {n_done} round trips"), &error))?;
        n_done += 1;
        if !slices.at(n_done) {
            return Ok(slices);
        }
    }
}
