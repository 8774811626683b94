//! `tcp-sink`: the far end of `tcp-stream`: counts the bytes that arrive, and reports the count to the sender.
//!
//! Its clock times the stream; `tcp-stream` documents the timed region. It listens on a port that the system chooses,
//! on every address (or on `bind`), announces the port and serves one connection.
//! Limits: does not check who connects; it stores nothing but a count.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};
use crate::{tcp, tcp_flow};

super::probe! {
    "tcp-sink": "the far end of `tcp-stream`; its values are reported there";
    revision 1, cut Whole("it serves the other end")
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let listener = tcp::listen(meter, params)?;
    tcp_flow::receive(&tcp::accept(&listener)?)
}
