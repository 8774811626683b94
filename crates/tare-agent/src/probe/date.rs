//! `date`: the date and time of day, in universal and in local time.
//!
//! Inside the timed regions: reading the real-time clock (through the vDSO where there is one) and breaking it down into
//! year to second, by `gmtime_r` for `clock.utc-date.time` and by `localtime_r` for `clock.local-date.time`.
//! Outside: reading the rules of the time zone, which the C library does once.
//! Known bias: the rules depend on the arm's files: without a zone file local time is universal time and costs less,
//! so a difference may be one of files and not of the system.
//! Correspondence: "Get Current Date" and "Get Current Date UTC" of a published comparison of containers (2019).
//! Source: POSIX, localtime_r(3).

use tare_model::Params;

use super::{Cut, Probe};
use crate::meter::{Meter, ProbeError};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "date",
    revision: 1,
    about: "reading the clock and breaking the time down, in universal and in local time",
    cut: Cut::LOOP,
    run,
};

#[cfg(not(target_os = "linux"))]
fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(super::linux_only("localtime_r"))
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::hint::black_box;

    let now = || {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is a valid place for a timespec.
        match unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut now) } {
            0 => Ok(now.tv_sec),
            _ => Err(ProbeError::last("clock_gettime")),
        }
    };
    // SAFETY: `tm` is plain data for which all zeroes is a valid value.
    let mut parts: libc::tm = unsafe { std::mem::zeroed() };
    meter.loops("clock.utc-date.time", 0.5, |times| {
        for _ in 0..times {
            let seconds = now()?;
            // SAFETY: both pointers are to live variables of their types.
            if unsafe { libc::gmtime_r(&raw const seconds, &raw mut parts) }.is_null() {
                return Err(ProbeError::last("gmtime_r"));
            }
            black_box(parts.tm_sec);
        }
        Ok(())
    })?;
    meter.loops("clock.local-date.time", 0.5, |times| {
        for _ in 0..times {
            let seconds = now()?;
            // SAFETY: both pointers are to live variables of their types.
            if unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) }.is_null() {
                return Err(ProbeError::last("localtime_r"));
            }
            black_box(parts.tm_sec);
        }
        Ok(())
    })
}
