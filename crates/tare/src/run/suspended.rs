//! A machine that slept, or a Tare that was stopped, while something was measured.
//!
//! The clock by which work is timed stands still while the machine sleeps, and whatever had a time limit, a warm cache
//! or a connection finds another world afterwards. A terminal's Ctrl-Z stops whole groups of processes, some arms'
//! among them. So nothing that was under way then counts: a trial is void, and where arms took turns so is the block,
//! because its slices met before and after are not of one machine.
//! Limits: a virtual machine that its hypervisor stopped without telling it looks like lost time; an arm that is
//! stopped alone is not noticed here.

use tare_model::{Failure, Outcome};

use crate::cx::Clock;
use crate::store::TrialRecord;

/// From here on it was sleep, and no step of the clock that tells it.
const SLEPT_NS: u64 = 1_000_000_000;

/// A moment before something is measured.
pub(super) struct Awake {
    slept_ns: u64,
    continuations: u32,
}

impl Awake {
    pub(super) fn now(clock: &dyn Clock) -> Self {
        Self {
            slept_ns: clock.slept_ns(),
            continuations: clock.continuations(),
        }
    }

    /// Declares void what came of it, if the machine has slept since or this process was stopped.
    pub(super) fn or_void(self, clock: &dyn Clock, records: &mut [TrialRecord]) {
        let slept_ns = clock.slept_ns().saturating_sub(self.slept_ns);
        let why = if slept_ns >= SLEPT_NS {
            format!(
                "the machine was suspended for {:.0} s meanwhile",
                slept_ns as f64 / 1e9
            )
        } else if clock.continuations() != self.continuations {
            "Tare was stopped and continued meanwhile (Ctrl-Z, SIGSTOP)".to_owned()
        } else {
            return;
        };
        for record in records {
            if matches!(record.outcome, Outcome::Completed(_)) {
                record.outcome = Outcome::Failed(Failure::Void(why.clone()));
            }
        }
    }
}
