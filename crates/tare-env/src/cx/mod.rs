//! The context: all access to the outside world, behind small traits.
//!
//! Programs, time and progress go through traits so that tests can order events, inject faults and set the clock.
//! Files and the environment go through plain functions in [`files`] and [`vars`]: tests use real ones in a temporary
//! folder. No other module may start a process, read a clock, read the process environment or write a file (a tidy
//! test checks this).

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tare_model::RunId;

pub mod agent;
pub mod cancel;
pub mod clock;
pub mod exec;
pub mod files;
pub mod fonts;
pub mod holders;
#[cfg(target_os = "linux")]
pub mod listeners;
#[cfg(unix)]
mod local_socket;
pub mod loopback;
pub mod measuring;
pub mod memory;
pub mod observer;
pub mod owner;
pub mod pinned;
pub mod processes;
pub mod processor;
#[cfg(unix)]
pub mod relay;
mod sealed;
mod spawn_thread;
#[cfg(unix)]
pub mod stand_in;
pub mod started_runs;
pub mod stdin;
pub mod timed_read;
#[cfg(unix)]
mod timed_write;
pub mod turn_page;
pub mod vars;

pub use agent::{AgentBinary, AgentError, Agents, hex, sha256};
pub use cancel::Cancel;
pub use clock::{Clock, SystemClock};
pub use exec::{CommandError, CommandLine, Exec, Finished, Running, SystemExec};
pub use observer::{Event, Observer};
pub(crate) use spawn_thread::aside;

/// A random seed, short enough to be typed again.
pub fn drawn_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // The only source of system randomness in the standard library.
    RandomState::new().build_hasher().finish() >> 32
}

/// Locks a mutex, even if a thread that held it has panicked.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The resources that a driver or the measuring engine may use.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Starts programs.
    pub exec: &'a dyn Exec,
    /// Reads the time.
    pub clock: &'a dyn Clock,
    /// Receives events.
    pub observer: &'a dyn Observer,
    /// Set by Ctrl-C.
    pub cancel: &'a Cancel,
    /// The host's agent.
    pub agent: &'a AgentBinary,
    /// All agents, for arms of another system or machine type.
    pub agents: &'a Agents,
    /// This run's folder on a disk; removed when the run ends.
    pub scratch: &'a Path,
    /// The run; its id labels everything that is created.
    pub run: &'a RunId,
    /// The store's file, wherever its user has put it; must not be visible inside an arm.
    pub store: Option<&'a Path>,
}

/// Time limit of a control command (not a trial).
pub const CONTROL_LIMIT: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    #[test]
    fn seeds_are_drawn_anew() {
        let drawn: Vec<u64> = (0..4).map(|_| super::drawn_seed()).collect();
        assert!(drawn.iter().any(|seed| *seed != drawn[0]), "{drawn:?}");
    }
}
