//! `tcp-echo`: the far end of `tcp-round-trip`: echoes every byte, until the peer closes.
//!
//! Nothing is timed here. It listens on a port that the system chooses, on every address (or on `bind`), announces
//! the port, and serves one connection to its end.
//! Limits: does not check who connects; it stores nothing and returns only what it received.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};
use crate::tcp;

super::probe! {
    "tcp-echo": "the far end of `tcp-round-trip`; times nothing";
    revision 1, cut Whole("it serves the other end")
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let listener = tcp::listen(meter, params)?;
    tcp::echo(tcp::accept(&listener)?)
}
