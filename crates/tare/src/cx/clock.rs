//! The host's clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Tells the time and waits.
pub trait Clock: Sync {
    /// Nanoseconds of a monotonic clock with an arbitrary origin.
    fn now_ns(&self) -> u64;
    /// Nanoseconds since 1970-01-01 UTC.
    fn unix_ns(&self) -> i64;
    /// Waits.
    fn sleep(&self, duration: Duration);
}

/// The machine's own clocks.
#[derive(Debug)]
pub struct SystemClock {
    origin: Instant,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self {
            origin: Instant::now(),
        }
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn unix_ns(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    }

    fn sleep(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
