//! Starts a thread without panicking when the system has none left.

use std::io;

/// Runs `work` on a new thread. If the thread cannot be started, `work` is dropped with the channels that it owns, so
/// their receivers notice.
pub(crate) fn aside(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}
