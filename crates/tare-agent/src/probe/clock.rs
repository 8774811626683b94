//! `clock`: reads the monotonic clock, once through the vDSO and once through a real syscall.
//!
//! Inside the timed region: `k` times `clock_gettime(CLOCK_MONOTONIC)`; for `clock.vdso.time` through the C library,
//! which uses the vDSO if the kernel offers one, for `clock.syscall.time` through `syscall(SYS_clock_gettime)`.
//! Outside: everything else.
//! Known bias: `clock.vdso.time` includes one indirect call of the C library. If both figures are alike, the clock
//! source cannot be read in user space (a note says so).
//! Source: Linux, Documentation/ABI/stable/vdso; METHODOLOGY.md on timers.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "clock": "reading the monotonic clock through the vDSO and through a system call";
    revision 1, cut LOOP
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    meter.loops("clock.vdso.time", 0.5, |readings| {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        for _ in 0..readings {
            // SAFETY: `now` is a live, exclusively borrowed timespec.
            if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) } != 0 {
                return Err(ProbeError::last("clock_gettime"));
            }
        }
        Ok(())
    })?;
    // SAFETY: getauxval reads the process's auxiliary vector and has no precondition.
    if unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } == 0 {
        meter.note("the kernel offers no vDSO here");
    }
    meter.loops("clock.syscall.time", 0.5, |readings| {
        let mut now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        for _ in 0..readings {
            // SAFETY: the call takes a clock and a pointer to a live timespec.
            let done = unsafe {
                libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now)
            };
            if done != 0 {
                return Err(ProbeError::last("clock_gettime"));
            }
        }
        Ok(())
    })
}

super::needs!(linux, "the vDSO and direct system calls");

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn both_ways_read_the_same_clock() {
        let mut times = [(); 3].map(|()| libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        });
        // SAFETY: each call gets a pointer to a live timespec.
        let failed = unsafe {
            i64::from(libc::clock_gettime(
                libc::CLOCK_MONOTONIC,
                &raw mut times[0],
            )) | libc::syscall(
                libc::SYS_clock_gettime,
                libc::CLOCK_MONOTONIC,
                &raw mut times[1],
            ) | i64::from(libc::clock_gettime(
                libc::CLOCK_MONOTONIC,
                &raw mut times[2],
            ))
        };
        assert_eq!(failed, 0);
        let [first, second, third] = times.map(|time| (time.tv_sec, time.tv_nsec));
        assert!(first <= second && second <= third);
    }
}
