//! Voids trials during which the machine slept or Tare was stopped.
//!
//! The clock that times work stops while the machine sleeps; afterwards time limits, warm caches and connections are
//! no longer valid. A terminal's Ctrl-Z stops whole process groups, including some arms. So whatever was running then
//! does not count: a trial is void, and so is an alternated block, because its slices before and after ran under
//! different conditions.
//! Limits: a VM that its hypervisor stopped without notice shows only as lost time; stopping a single arm is not
//! detected here.

use tare_model::{Failure, Outcome};

use crate::cx::Clock;
use crate::store::TrialRecord;

/// From this difference on the machine slept; less may be a clock step.
const SLEPT_NS: u64 = 1_000_000_000;

/// State of the clocks before a measurement.
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

    /// Voids the records if the machine has slept since, or this process was stopped.
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
