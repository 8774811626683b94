//! `timer`: sets and cancels timers, and sleeps for a short while.
//!
//! Inside the timed regions: `timer.short.time` and `timer.long.time`, creating a timer, setting it to 50 ms or to
//! one hour, and closing it before it expires (three system calls); `timer.sleep.time`, one sleep of 50 µs until the
//! thread runs again, so its excess over 50 µs is the timer's slack, the wake-up and the exit from the processor's
//! idle states. Outside: everything else.
//! On Windows a waitable timer for each of the first two; the sleep sets a high-resolution timer, created beforehand,
//! and waits for it.
//! Known bias: the kernel gives ordinary threads 50 µs of slack by default, which an arm may have changed.
//! Correspondence: "Schedule Timer - Short" and "- Long" of a published comparison of containers (2019).
//! Source: Linux, timerfd_create(2), PR_SET_TIMERSLACK(2const).

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "timer": "setting and taking back a timer, and sleeping for 50 µs";
    revision 1, cut KERNEL
}

super::needs!(linux or windows, "timerfd");

#[cfg(windows)]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    windows::run(meter)
}

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};

    use tare_model::Reason;

    use crate::meter::{Meter, ProbeError};

    /// `CREATE_WAITABLE_TIMER_HIGH_RESOLUTION`, since Windows 10, version 1803.
    const HIGH_RESOLUTION: u32 = 2;
    /// `TIMER_ALL_ACCESS`.
    const ALL_RIGHTS: u32 = 0x001f_0003;
    /// Timeout for a timer of 50 µs, milliseconds.
    const PATIENCE_MS: u32 = 5_000;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn CreateWaitableTimerExW(
            attributes: *const c_void,
            name: *const u16,
            flags: u32,
            rights: u32,
        ) -> RawHandle;
        fn SetWaitableTimer(
            timer: RawHandle,
            due: *const i64,
            period_ms: i32,
            routine: *const c_void,
            argument: *const c_void,
            resumes: i32,
        ) -> i32;
        fn WaitForSingleObject(handle: RawHandle, limit_ms: u32) -> u32;
    }

    fn timer(flags: u32) -> Result<OwnedHandle, ProbeError> {
        // SAFETY: null pointers request an unnamed timer that is not inherited.
        let timer = unsafe {
            CreateWaitableTimerExW(std::ptr::null(), std::ptr::null(), flags, ALL_RIGHTS)
        };
        if timer.is_null() {
            return Err(ProbeError::last("CreateWaitableTimerEx"));
        }
        // SAFETY: just created, and owned nowhere else.
        Ok(unsafe { OwnedHandle::from_raw_handle(timer) })
    }

    /// Sets the timer to this many nanoseconds from now.
    fn set(timer: &OwnedHandle, after_ns: i64) -> Result<(), ProbeError> {
        // In units of 100 ns; negative is relative to now.
        let due = -after_ns / 100;
        // SAFETY: the timer is open and `due` is live; null pointers mean no completion routine.
        let answer = unsafe {
            SetWaitableTimer(
                timer.as_raw_handle(),
                &raw const due,
                0,
                std::ptr::null(),
                std::ptr::null(),
                0,
            )
        };
        match answer {
            0 => Err(ProbeError::last("SetWaitableTimer")),
            _ => Ok(()),
        }
    }

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let schedule = |after_ns: i64| {
            move |times: u64| {
                for _ in 0..times {
                    set(&timer(0)?, after_ns)?;
                }
                Ok(())
            }
        };
        meter.loops("timer.short.time", 0.3, schedule(50_000_000))?;
        meter.loops("timer.long.time", 0.3, schedule(3_600_000_000_000))?;
        let Ok(fine) = timer(HIGH_RESOLUTION) else {
            let why =
                "this system has no timer finer than its tick (Windows 10, version 1803, has)";
            meter.unavailable("timer.sleep.time", Reason::Unsupported(why.to_owned()));
            return Ok(());
        };
        meter.each("timer.sleep.time", 0.4, || {
            set(&fine, 50_000)?;
            // SAFETY: the timer is open.
            match unsafe { WaitForSingleObject(fine.as_raw_handle(), PATIENCE_MS) } {
                0 => Ok(()),
                _ => Err(ProbeError::last("WaitForSingleObject")),
            }
        })
    }
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    let span = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
    let schedule = |after: libc::timespec| {
        let setting = libc::itimerspec {
            it_interval: span(0, 0),
            it_value: after,
        };
        move |times: u64| {
            for _ in 0..times {
                // SAFETY: timerfd_create takes a clock and flags only.
                let timer =
                    unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC) };
                if timer < 0 {
                    return Err(ProbeError::last("timerfd_create"));
                }
                // SAFETY: the descriptor is open, `setting` is live, and a null pointer skips the old setting.
                let set = unsafe {
                    libc::timerfd_settime(timer, 0, &raw const setting, std::ptr::null_mut())
                };
                let error = ProbeError::last("timerfd_settime");
                // SAFETY: the descriptor was just opened and is owned nowhere else.
                unsafe { libc::close(timer) };
                if set != 0 {
                    return Err(error);
                }
            }
            Ok(())
        }
    };
    meter.loops("timer.short.time", 0.3, schedule(span(0, 50_000_000)))?;
    meter.loops("timer.long.time", 0.3, schedule(span(3_600, 0)))?;
    let short = span(0, 50_000);
    meter.each("timer.sleep.time", 0.4, || {
        // SAFETY: `short` is live; a null pointer skips the remaining time.
        match unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                0,
                &raw const short,
                std::ptr::null_mut(),
            )
        } {
            0 => Ok(()),
            code => Err(ProbeError::system(
                "clock_nanosleep",
                &std::io::Error::from_raw_os_error(code),
            )),
        }
    })
}
