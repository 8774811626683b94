//! `tcp-stream`: bulk throughput of one TCP connection.
//!
//! Inside the timed region: the receiver's `read`s, into a buffer of 128 KiB, of what the sender `write`s, 128 KiB at
//! a time; it is woken when that many bytes have arrived. Values are bytes per second, counted by the receiver slice
//! by slice with its clock; the sender fetches them at the end over the same connection, together with the sum, and
//! the trial is void unless the sum equals the bytes sent. So bytes that only reached the sender's buffer never
//! count. Outside: connecting, the first slice (the window opens), the end of the stream.
//! Without `address` the receiver is a thread of this process on the loopback; with `address` and `port` it is the
//! probe `tcp-sink` on the other side, and the bytes flow from this side to it.
//! Known bias: on one machine both ends compete for processors with everything else, and copying memory is most of
//! the work. Buffer sizes are the system's defaults.
//! Source: iperf3's default test with one stream.

use std::net::SocketAddr;
use std::time::Instant;

use tare_model::{Failure, Params, Unit};

use crate::meter::{Meter, ProbeError};
use crate::slices::{self, Slice};
use crate::tcp::{self, Peer};
use crate::tcp_flow;

super::probe! {
    "tcp-stream": "bytes received per second through one TCP connection, written 128 KiB at a time";
    revision 2, cut KERNEL
}

/// The metric: bytes received per second.
pub const RATE: &str = "net.tcp.throughput.rate";

fn send(meter: &mut Meter, address: SocketAddr) -> Result<Vec<Slice>, ProbeError> {
    let stream = tcp::connect(address)?;
    match meter.slice_ns() {
        None => {
            let begin = Instant::now();
            let received = tcp_flow::send(&stream, meter.target_ns());
            meter.count_timed(begin.elapsed());
            received
        }
        Some(slice_ns) => tcp_flow::send_in_turns(meter, &stream, slice_ns),
    }
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let received = match tcp::peer(params)? {
        Peer::There(address) => send(meter, address)?,
        Peer::Here => {
            let (listener, address) = tcp::listen_on_loopback()?;
            tcp::with_server(
                move || tcp_flow::receive(&tcp::accept(&listener)?),
                || send(meter, address),
            )?
        }
    };
    if received.is_empty() {
        return Err(ProbeError::Failed(Failure::Void(
            "the receiver saw no whole slice of time".into(),
        )));
    }
    meter.record(
        RATE,
        Unit::BytePerSecond,
        slices::rates(&received, 1),
        slices::batch(&received),
    );
    meter.note(slices::total(&received));
    Ok(())
}
