//! Reads from a pipe with a time limit.
//!
//! The kernel wakes the reader directly when data arrives; with a reader thread, that thread would have to wake first
//! and then wake the reader.
//! Limits: pipes cannot be waited for on Windows; a thread reads there.

use std::io::{self, Read};
use std::time::Duration;

/// A stream that can be waited for.
pub trait Arriving: Read + Send {
    /// Waits at most `left` until there is something to read or the stream has ended, and subtracts the time waited
    /// from `left`. Returns whether there is something to read or the stream has ended.
    ///
    /// # Errors
    /// The stream cannot be waited for.
    fn wait(&mut self, left: &mut Duration) -> io::Result<bool>;
}

#[cfg(unix)]
impl Arriving for std::process::ChildStdout {
    fn wait(&mut self, left: &mut Duration) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let limit = Timespec::try_from(*left).ok();
        let begin = std::time::Instant::now();
        let mut entries = [PollFd::new(self, PollFlags::IN)];
        let polled = poll(&mut entries, limit.as_ref());
        *left = left.saturating_sub(begin.elapsed());
        match polled {
            // The caller asks again with the remaining time.
            Err(rustix::io::Errno::INTR) => Ok(false),
            polled => Ok(polled? > 0),
        }
    }
}
