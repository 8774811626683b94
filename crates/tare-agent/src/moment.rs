//! Timestamps that workers on one kernel can compare.
//!
//! Limits: not comparable between kernels; there only durations are meaningful.

use tare_model::SpanClock;

/// A timestamp that other processes on the same kernel can compare with theirs, if the system has such a clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Nanoseconds of the clock.
    pub(crate) ns: u64,
    pub(crate) clock: SpanClock,
}

impl Moment {
    #[cfg(unix)]
    pub(crate) fn now() -> Self {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `time` is live and exclusively borrowed; the clock exists on every Unix that Rust runs on, so the
        // call cannot fail.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        Self {
            ns: time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned(),
            clock: SpanClock::Kernel,
        }
    }

    /// Reads the performance counter, which is machine-wide.
    #[cfg(windows)]
    pub(crate) fn now() -> Self {
        #[link(name = "kernel32")]
        unsafe extern "system" {
            fn QueryPerformanceCounter(count: *mut i64) -> i32;
            fn QueryPerformanceFrequency(per_second: *mut i64) -> i32;
        }
        let (mut count, mut per_second) = (0, 1);
        // SAFETY: both out-parameters are live; since Windows XP neither call can fail.
        unsafe {
            QueryPerformanceCounter(&raw mut count);
            QueryPerformanceFrequency(&raw mut per_second);
        }
        Self {
            ns: u64::try_from(i128::from(count) * 1_000_000_000 / i128::from(per_second))
                .unwrap_or(0),
            clock: SpanClock::Kernel,
        }
    }

    #[cfg(not(any(unix, windows)))]
    pub(crate) fn now() -> Self {
        static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
        Self {
            ns: tare_model::whole_ns(ORIGIN.get_or_init(std::time::Instant::now).elapsed()),
            clock: SpanClock::Worker,
        }
    }
}
