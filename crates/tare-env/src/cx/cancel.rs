//! Requests to stop, by Ctrl-C or a termination signal.
//!
//! The first signal asks for an orderly stop. The second stops waiting for what does not answer and removes it by
//! force. The third ends this process at once; `tare clean` removes what it leaves.
//! A hang-up that was ignored before Tare started stays ignored: `nohup` and `disown` set it so.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How often this process was continued after being stopped.
static CONTINUED: AtomicU32 = AtomicU32::new(0);

/// How often this process was continued after being stopped (Ctrl-Z, `SIGSTOP`), since signals are handled.
pub fn continuations() -> u32 {
    CONTINUED.load(Ordering::SeqCst)
}

/// A shared counter of requests to stop; it never decreases.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicU32>);

impl Cancel {
    /// A counter without requests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a request and returns how many there are now.
    pub fn request(&self) -> u32 {
        self.0.fetch_add(1, Ordering::SeqCst).saturating_add(1)
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 0
    }

    /// Whether a stop was requested twice: wait for nothing any more.
    pub fn is_insisted(&self) -> bool {
        self.0.load(Ordering::SeqCst) > 1
    }

    /// Adds a request for every termination signal from now on, on a thread that waits for them.
    ///
    /// # Errors
    /// The system has no thread or no signals for it.
    pub fn ask_on_signals(&self) -> std::io::Result<()> {
        #[cfg(unix)]
        has_room()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()?;
        {
            let _inside = runtime.enter();
            for mut signal in signals()? {
                let wish = self.clone();
                runtime.spawn(async move {
                    while signal.recv().await.is_some() {
                        if wish.request() > 2 {
                            leave();
                        }
                    }
                });
            }
            #[cfg(unix)]
            {
                let mut continued = tokio::signal::unix::signal(CONTINUE)?;
                runtime.spawn(async move {
                    while continued.recv().await.is_some() {
                        CONTINUED.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        }
        super::aside(move || runtime.block_on(std::future::pending()))
    }
}

/// `SIGCONT`, sent to a stopped process to continue it.
#[cfg(target_os = "linux")]
const CONTINUE: tokio::signal::unix::SignalKind = tokio::signal::unix::SignalKind::from_raw(18);
#[cfg(all(unix, not(target_os = "linux")))]
const CONTINUE: tokio::signal::unix::SignalKind = tokio::signal::unix::SignalKind::from_raw(19);

/// Exits with the status that a shell expects after Ctrl-C.
#[allow(
    clippy::exit,
    reason = "asked for three times, while something keeps this process from ending in order"
)]
fn leave() -> ! {
    std::process::exit(130)
}

/// Checks that there are file descriptors left: tokio panics if it cannot open the pair of sockets that it receives
/// signals by, and a runtime opens four descriptors more.
#[cfg(unix)]
fn has_room() -> std::io::Result<()> {
    let (one, _other) = std::os::unix::net::UnixStream::pair()?;
    let more: std::io::Result<Vec<_>> = (0..4).map(|_| one.try_clone()).collect();
    more.map(drop)
}

/// The termination signals.
#[cfg(unix)]
fn signals() -> std::io::Result<Vec<tokio::signal::unix::Signal>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut kinds = vec![SignalKind::interrupt(), SignalKind::terminate()];
    if !is_hang_up_ignored() {
        kinds.push(SignalKind::hangup());
    }
    kinds.into_iter().map(signal).collect()
}

/// Whether the parent had this process ignore hang-ups, from `/proc` (proc_pid_status(5)).
#[cfg(unix)]
fn is_hang_up_ignored() -> bool {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signal 1 is the lowest bit.
    mask.is_some_and(|mask| mask & 1 != 0)
}

/// Ctrl-C.
#[cfg(windows)]
fn signals() -> std::io::Result<[tokio::signal::windows::CtrlC; 1]> {
    tokio::signal::windows::ctrl_c().map(|signal| [signal])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_twice_is_more_than_asking_once() {
        let cancel = Cancel::new();
        assert!(!cancel.is_requested());
        assert_eq!(cancel.clone().request(), 1);
        assert!(cancel.is_requested() && !cancel.is_insisted());
        assert_eq!(cancel.request(), 2);
        assert!(cancel.is_insisted());
    }
}
