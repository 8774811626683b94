//! The host's clocks.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tare_model::whole_ns;

/// A clock that can also sleep.
pub trait Clock: Sync {
    /// Nanoseconds of a monotonic clock with an arbitrary origin.
    fn now_ns(&self) -> u64;
    /// Nanoseconds since 1970-01-01 UTC.
    fn unix_ns(&self) -> i64;
    /// Sleeps for `duration`.
    fn sleep(&self, duration: Duration);
    /// How long the machine has been suspended since an arbitrary moment, nanoseconds in steps of 10 ms: the time
    /// that [`Clock::now_ns`] leaves out. Constant where that is unknown.
    fn slept_ns(&self) -> u64 {
        0
    }
    /// How often this process was continued after being stopped. Constant where that is unknown.
    fn continuations(&self) -> u32 {
        0
    }
}

/// The system's clocks.
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
        whole_ns(self.origin.elapsed())
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

    fn continuations(&self) -> u32 {
        super::cancel::continuations()
    }

    #[cfg(target_os = "linux")]
    fn slept_ns(&self) -> u64 {
        // Uptime includes suspend; the monotonic clock stands still meanwhile (proc_uptime(5)).
        let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
        let since_boot_s = text.split_whitespace().next();
        let since_boot_s = since_boot_s.and_then(|word| word.parse::<f64>().ok());
        since_boot_s.map_or(0, |s| {
            tare_model::whole_part(s * 1e9).saturating_sub(self.now_ns())
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_is_awake_has_not_slept() {
        let clock = SystemClock::default();
        let before = clock.slept_ns();
        clock.sleep(Duration::from_millis(30));
        assert!(before > 0);
        // Sleeping does not suspend the machine; only a delay of this process between the two readings may differ.
        assert!(clock.slept_ns().abs_diff(before) < 900_000_000);
    }
}
