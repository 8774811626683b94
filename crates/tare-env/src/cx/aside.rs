//! Work on a thread of its own, for which a system may have none left.

use std::io;

/// Starts it. What it owns is dropped where it cannot be started, so that whoever waits for its word hears of that.
pub(crate) fn aside(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().spawn(work).map(drop)
}
