//! `udp-echo`: the far end of `udp-round-trip`: sends back every datagram, until one says that it was the last.
//!
//! Nothing is timed here. It is bound to a port that the system chooses, on every address (or on `bind`), and announces
//! the port. Where the last datagram is lost, it ends when nothing has come for five seconds.
//! What it cannot see: who sends. It keeps nothing and gives back only what it was given, to whom it came from.

use tare_model::Params;

use super::{Cut, Probe};
use crate::meter::{Meter, ProbeError};
use crate::udp;

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "udp-echo",
    revision: 1,
    about: "the far end of `udp-round-trip`; times nothing",
    cut: Cut::Whole("it serves the other end"),
    run,
};

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let (socket, port) = udp::bind(params)?;
    meter.announce(port);
    udp::echo(&socket)
}
