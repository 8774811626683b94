//! `timer`: sets timers and takes them back, and sleeps for a short while.
//!
//! Inside the timed regions: `timer.short.time` and `timer.long.time`, making a timer, setting it to 50 ms or to one hour,
//! and closing it before it expires (three system calls); `timer.sleep.time`, one sleep of 50 µs until the thread
//! runs again, so its excess over 50 µs is the timer's slack, the wake-up and what the processor's idle states cost.
//! Outside: everything else.
//! Known bias: the kernel gives ordinary threads 50 µs of slack by default, which an arm may have changed.
//! Correspondence: "Schedule Timer - Short" and "- Long" of a published comparison of containers (2019).
//! Source: Linux, timerfd_create(2), PR_SET_TIMERSLACK(2const).

use tare_model::Params;

use super::{Cut, Probe};
use crate::meter::{Meter, ProbeError};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "timer",
    revision: 1,
    about: "setting and taking back a timer, and sleeping for 50 µs",
    cut: Cut::KERNEL,
    run,
};

#[cfg(not(target_os = "linux"))]
fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(super::linux_only("timerfd"))
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
                // SAFETY: the descriptor is open, `setting` lives, and a null pointer asks for no old setting.
                let set = unsafe {
                    libc::timerfd_settime(timer, 0, &raw const setting, std::ptr::null_mut())
                };
                let error = ProbeError::last("timerfd_settime");
                // SAFETY: the descriptor was just opened and is owned by nobody else.
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
        // SAFETY: `short` lives; a null pointer asks for no remaining time.
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
