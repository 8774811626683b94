//! Stand-in for `services` on systems other than Linux, where Tare has no client for servers.

use tare_model::{Outcome, ProbeCall, Reason, Recipe};

use super::exchange::{Cancelled, Dispatcher};
use super::group::{Group, State};
use super::turn_state::Cycle;
use crate::cx::Context;
use crate::env::Charged;

/// Never: they are refused as whole trials.
pub(super) fn is_interleaved(_recipe: &Recipe) -> bool {
    false
}

/// `None`, because no requests are sent here.
pub fn own_cost(_cx: &Context<'_>) -> Option<String> {
    None
}

fn unsupported() -> Outcome {
    Outcome::Unavailable(Reason::Unsupported(
        "servers are asked from Linux only".to_owned(),
    ))
}

/// A server that would be queried on Linux.
pub(super) struct Started {
    place: usize,
}

impl Started {
    #[allow(clippy::unnecessary_wraps, reason = "as on the other system")]
    pub(super) fn once_ready(
        _group: &Group<'_, '_, '_>,
        (place, _end): (usize, usize),
        _call: ProbeCall,
        _sent_ns: u64,
    ) -> Result<Self, Cancelled> {
        Ok(Self { place })
    }
}

#[allow(clippy::unnecessary_wraps, reason = "as on the other system")]
pub(super) fn ask(
    group: &mut Group<'_, '_, '_>,
    _cycle: &Cycle,
    started: &[Started],
) -> Result<(), Cancelled> {
    let at_ns = group.now_ns();
    for one in started {
        let outcome = unsupported();
        group.members[one.place].state = State::Ended { outcome, at_ns };
    }
    Ok(())
}

impl Dispatcher<'_> {
    #[allow(clippy::unnecessary_wraps, reason = "as on the other system")]
    pub(super) fn ask_alone(
        &self,
        _call: &ProbeCall,
        _start_ns: u64,
        _charged: &Charged,
    ) -> Result<Outcome, Cancelled> {
        Ok(unsupported())
    }
}
