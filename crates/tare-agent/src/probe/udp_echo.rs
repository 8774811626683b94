//! `udp-echo`: the far end of `udp-round-trip`: sends back every datagram, until one says that it was the last.
//!
//! Nothing is timed here. It is bound to a port that the system chooses, on every address (or on `bind`), and announces
//! the port. Where the last datagram is lost, it ends when nothing has come for five seconds.
//! What it cannot see: who sends. It keeps nothing and gives back only what it was given, to whom it came from.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};
use crate::udp;

super::probe! {
    "udp-echo": "the far end of `udp-round-trip`; times nothing";
    revision 1, cut Whole("it serves the other end")
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    udp::echo(&udp::bind(meter, params)?)
}
