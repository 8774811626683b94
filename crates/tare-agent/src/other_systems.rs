//! Reports the Linux-only probes as unavailable on other systems.

use tare_model::{Params, Reason};

use crate::meter::{Meter, ProbeError};

/// Replaces such a probe's `run`.
pub fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(ProbeError::Unavailable(Reason::Unsupported(
        "the probe is written for Linux".into(),
    )))
}
