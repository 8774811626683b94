//! What happens, told to whoever listens: the progress bar, a log, a test.

/// One thing that happened. The set is closed: every listener decides about each.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// An arm is being prepared or started.
    Starting {
        /// The arm.
        arm: String,
        /// What is being done.
        what: &'static str,
    },
    /// An arm cannot be measured.
    Absent {
        /// The arm.
        arm: String,
        /// Why.
        reason: String,
    },
    /// A trial is over and stored. Told between trials only.
    TrialDone {
        /// Trials done so far.
        done: u32,
        /// Trials that the plan still holds, by the present rule.
        left: u32,
        /// Nanoseconds that the rest is expected to take.
        left_ns: u64,
        /// What was measured.
        workload: String,
        /// Where.
        arm: String,
        /// Whether it gave a value.
        completed: bool,
    },
    /// Something that the reader should know, at most one line.
    Remark(String),
    /// The answer so far, in a line. Told between trials only.
    SoFar(String),
    /// Everything is being removed.
    Removing,
}

/// Hears events.
pub trait Observer: Sync {
    /// Called from the engine's thread, between trials.
    fn event(&self, event: &Event);
}

/// Hears nothing.
#[derive(Debug, Default, Clone, Copy)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _event: &Event) {}
}
