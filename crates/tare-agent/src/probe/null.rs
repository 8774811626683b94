//! `null`: no work at all, to measure the fixed cost of a trial.
//!
//! Inside the timed region: nothing, so a value is the difference of two adjacent readings of the clock. Outside:
//! everything.
//! With `canary = false` the worker also skips the long canary and the counters, so that the time between request and
//! reply is that of the dispatch and of reaping the worker. With `announce = true` it first reports that it has
//! begun, as a server reports its port: the time until then is the dispatch and one way back.
//! Known bias: none; the values show the clock's resolution if that is coarser than its cost.
//! Source: fio's `null` engine, for the idea of an engine that tests the engine's surroundings.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "null": "nothing between two adjacent readings of the clock";
    revision 1, cut Whole("there is no work to cut")
}

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    if params.bool("announce") == Some(true) {
        meter.announce(0);
    }
    meter.each("dispatch.null.time", 0.0, || Ok(()))
}
