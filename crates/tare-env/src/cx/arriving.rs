//! Reading what arrives on a pipe, for a while and no longer.
//!
//! Whoever waits is woken by the kernel itself, when something has come: a thread that reads for it would be woken
//! first, and then wake it.
//! What it cannot do: anything where pipes cannot be waited for (Windows); there a thread reads.

use std::io::{self, Read};
use std::time::Duration;

/// A stream of which it can be told whether something has come.
pub trait Arriving: Read + Send {
    /// Waits until there is something to read or the stream has ended, at most what is `left`, from which it takes
    /// what it has waited. Whether there is.
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
            // Whoever waits asks again, with what is left.
            Err(rustix::io::Errno::INTR) => Ok(false),
            polled => Ok(polled? > 0),
        }
    }
}
