//! Ends a program after a time.

use std::io;
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that kills a program once its time is over.
pub(super) struct Deadline {
    has_ended: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Deadline {
    /// Starts the time of a child that is not reaped before [`Deadline::finish`]: its pid stays its own.
    pub(super) fn start(child: u32, ns: u64) -> io::Result<Self> {
        let (has_ended, ending) = mpsc::channel();
        let thread = Builder::new().spawn(move || {
            let is_over = ending.recv_timeout(Duration::from_nanos(ns))
                == Err(mpsc::RecvTimeoutError::Timeout);
            if is_over {
                kill(child);
            }
            is_over
        })?;
        Ok(Self { has_ended, thread })
    }

    /// Returns whether the time was over before the program had ended.
    pub(super) fn finish(self) -> bool {
        drop(self.has_ended);
        self.thread.join().unwrap_or(false)
    }
}

#[cfg(target_os = "linux")]
fn kill(child: u32) {
    // SAFETY: numbers only; the child is not yet reaped, so the pid is not another process's.
    unsafe { libc::kill(child.cast_signed(), libc::SIGKILL) };
}

/// Does nothing: here `finish` is not called before the child is reaped.
#[cfg(not(target_os = "linux"))]
fn kill(_child: u32) {}
