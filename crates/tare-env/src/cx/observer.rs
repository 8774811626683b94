//! Events of a run, for the progress bar, a log or a test.

/// One event. The set is closed: every observer decides about each.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An arm is being prepared or started.
    Starting {
        /// The arm.
        arm: String,
        /// The current step.
        what: &'static str,
    },
    /// An arm cannot be measured.
    Absent {
        /// The arm.
        arm: String,
        /// The reason.
        reason: String,
        /// What would help, if known.
        fix: Option<String>,
    },
    /// A trial is over and stored. Sent between trials only.
    TrialDone {
        /// Trials done so far.
        done: u32,
        /// Trials that remain by the current stopping rule.
        left: u32,
        /// Expected time for the rest, nanoseconds.
        left_ns: u64,
        /// The workload.
        workload: String,
        /// The arm.
        arm: String,
        /// Whether it gave a value.
        completed: bool,
    },
    /// A remark for the user, at most one line.
    Remark(String),
    /// The interim answer, in one line. Sent between trials only.
    SoFar(String),
    /// Cleanup has begun.
    Removing,
}

/// Receives events.
pub trait Observer: Sync {
    /// Called from the engine's thread, between trials.
    fn event(&self, event: &Event);
}

/// Ignores all events.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event) {}
}
