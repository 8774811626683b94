//! What the probes that are written for Linux answer on other systems: that they are not available.

use tare_model::{Params, Reason};

use crate::meter::{Meter, ProbeError};

/// Stands in for such a probe's `run`.
pub fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(ProbeError::Unavailable(Reason::Unsupported(
        "the probe is written for Linux".into(),
    )))
}
