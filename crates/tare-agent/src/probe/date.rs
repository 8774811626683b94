//! `date`: the date and time of day, in universal and in local time.
//!
//! Inside the timed regions: reading the real-time clock (through the vDSO if there is one) and converting it to year
//! … second, with `gmtime_r` for `clock.utc-date.time` and with `localtime_r` for `clock.local-date.time`.
//! Outside: reading the time zone rules, which the C library does once. On Windows: `GetSystemTimePreciseAsFileTime`,
//! `FileTimeToSystemTime` and `SystemTimeToTzSpecificLocalTime` with the current time zone.
//! Known bias: the rules depend on the arm's files: without a zone file local time is universal time and cheaper, so
//! a difference may come from the files and not from the system.
//! Correspondence: "Get Current Date" and "Get Current Date UTC" of a published comparison of containers (2019).
//! Source: POSIX, localtime_r(3).

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "date": "reading the clock and breaking the time down, in universal and in local time";
    revision 1, cut LOOP
}

super::needs!(linux or windows, "localtime_r");

#[cfg(windows)]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::ffi::c_void;
    use std::hint::black_box;

    /// `SYSTEMTIME`: year, month, day of the week, day, hour, minute, second, millisecond.
    type Parts = [u16; 8];
    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetSystemTimePreciseAsFileTime(now: *mut [u32; 2]);
        fn FileTimeToSystemTime(time: *const [u32; 2], parts: *mut Parts) -> i32;
        fn SystemTimeToTzSpecificLocalTime(
            zone: *const c_void,
            universal: *const Parts,
            local: *mut Parts,
        ) -> i32;
    }

    let universal = |parts: &mut Parts| {
        let mut now = [0; 2];
        // SAFETY: `now` is live and has the size of a FILETIME.
        unsafe { GetSystemTimePreciseAsFileTime(&raw mut now) };
        // SAFETY: both are live and have the right types.
        match unsafe { FileTimeToSystemTime(&raw const now, parts) } {
            0 => Err(ProbeError::last("FileTimeToSystemTime")),
            _ => Ok(()),
        }
    };
    let (mut parts, mut local) = ([0; 8], [0; 8]);
    meter.loops("clock.utc-date.time", 0.5, |times| {
        for _ in 0..times {
            universal(&mut parts)?;
            black_box(parts[6]);
        }
        Ok(())
    })?;
    meter.loops("clock.local-date.time", 0.5, |times| {
        for _ in 0..times {
            universal(&mut parts)?;
            // SAFETY: a null pointer selects the current time zone; both others are live and have the right type.
            let answer = unsafe {
                SystemTimeToTzSpecificLocalTime(std::ptr::null(), &raw const parts, &raw mut local)
            };
            if answer == 0 {
                return Err(ProbeError::last("SystemTimeToTzSpecificLocalTime"));
            }
            black_box(local[6]);
        }
        Ok(())
    })
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::hint::black_box;

    let now = || {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: `now` is a valid timespec.
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
            // SAFETY: both pointers point to live variables of the right types.
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
            // SAFETY: both pointers point to live variables of the right types.
            if unsafe { libc::localtime_r(&raw const seconds, &raw mut parts) }.is_null() {
                return Err(ProbeError::last("localtime_r"));
            }
            black_box(parts.tm_sec);
        }
        Ok(())
    })
}
