//! `udp-echo`: the far end of `udp-round-trip`: echoes every datagram, until one says that it was the last.
//!
//! Nothing is timed here. It is bound to a port that the system chooses, on every address (or on `bind`), and
//! announces the port. If the last datagram is lost, it ends after five seconds without one.
//! Limits: does not check who sends; it stores nothing and returns only what it received, to the sender.

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
