//! `tcp-echo`: the far end of `tcp-round-trip`: sends back what it is sent, until the peer closes.
//!
//! Nothing is timed here. It listens on a port that the system chooses, on every address (or on `bind`),
//! announces the port, takes one connection and serves it to its end.
//! What it cannot see: who connects. It keeps nothing and gives back only what it was given.

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
