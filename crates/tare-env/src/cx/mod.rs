//! The context: everything that Tare may touch of the outside world, behind small traits.
//!
//! Programs, time and progress go through traits so that tests can order events, inject faults and turn
//! the clock by hand. Files and the environment go through plain functions in [`files`] and [`vars`]:
//! tests use real ones in a temporary folder. No other module may start a process, read a clock, read the
//! process environment or write a file (a tidy test keeps this).

use std::path::Path;
use std::time::Duration;

use tare_model::RunId;

pub mod agent;
pub mod arriving;
mod aside;
pub mod begun;
pub mod cancel;
pub mod clock;
pub mod exec;
pub mod files;
pub mod fonts;
pub mod holders;
#[cfg(target_os = "linux")]
pub mod listeners;
pub mod loopback;
pub mod measuring;
pub mod observer;
pub mod owner;
#[cfg(unix)]
mod patient;
pub mod pinned;
pub mod processes;
pub mod processor;
#[cfg(unix)]
pub mod relay;
mod sealed;
#[cfg(unix)]
pub mod stand_in;
pub mod stdin;
pub mod turn_page;
pub mod vars;

pub use agent::{AgentBinary, AgentError, Agents, sha256};
pub(crate) use aside::aside;
pub use cancel::Cancel;
pub use clock::{Clock, SystemClock};
pub use exec::{CommandError, CommandLine, Exec, Finished, Running, SystemExec};
pub use observer::{Event, Observer};

/// A seed that no other run has but by chance, short enough to be typed again.
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The one source of randomness that the standard library takes from the system.
    RandomState::new().build_hasher().finish() >> 32
}

/// What a driver or the engine may touch.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Starts programs.
    pub exec: &'a dyn Exec,
    /// Tells the time.
    pub clock: &'a dyn Clock,
    /// Hears what happens.
    pub observer: &'a dyn Observer,
    /// Set by Ctrl-C.
    pub cancel: &'a Cancel,
    /// The host's own agent.
    pub agent: &'a AgentBinary,
    /// Every agent at hand, for arms of another system or machine type.
    pub agents: &'a Agents,
    /// A folder of this run's own on a disk; removed when the run ends.
    pub scratch: &'a Path,
    /// The run: the label of everything that is created.
    pub run: &'a RunId,
    /// The store's file, wherever its user has put it: nobody's business inside an arm.
    pub store: Option<&'a Path>,
}

/// How long a control command (not a trial) may take before it is given up.
pub const CONTROL_LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_are_drawn_anew() {
        let drawn: Vec<u64> = (0..4).map(|_| super::drawn_seed()).collect();
        assert!(drawn.iter().any(|seed| *seed != drawn[0]), "{drawn:?}");
    }
}
