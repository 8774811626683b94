//! `tcp-accept`: the far end of `tcp-connect`: accepts every connection and greets it with one byte.
//!
//! Nothing is timed here. It listens on a port that the system chooses, on every address (or on `bind`), announces
//! the port, and ends with the connection on which a byte arrives.
//! Limits: does not check who connects; it reveals nothing but that byte.

use tare_model::Params;

use super::tcp_connect::greet;
use crate::meter::{Meter, ProbeError};
use crate::tcp;

super::probe! {
    "tcp-accept": "the far end of `tcp-connect`; times nothing";
    revision 1, cut Whole("it serves the other end")
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let listener = tcp::listen(meter, params)?;
    greet(&listener)
}
