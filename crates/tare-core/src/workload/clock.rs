//! `clock`: a workload that reads timestamps.
//!
//! The ratio of the two metrics shows whether the clock source is readable in user space: if they are equal, every
//! timestamp of a program is a syscall.
//! Limits: does not name the clock source, which is a fact of the arm.

use super::probe_output::probe;

probe! {
    "clock": "reading the clock through the vDSO and through a system call";
    Nanosecond, Lower, Kernel {
        "clock.vdso.time", floor: "One clock_gettime(CLOCK_MONOTONIC) through the C library, which takes the vDSO where there is one.";
        "clock.syscall.time", floor: "One clock_gettime(CLOCK_MONOTONIC) as a real system call.";
    }
}
