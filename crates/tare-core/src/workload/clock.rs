//! `clock`: what a timestamp costs, as a workload.
//!
//! Two metrics, because their ratio says whether the clock source can be read in user space: alike means that
//! every timestamp of a program is a system call. What it cannot see: which clock source it is (a fact of the arm).

use super::probe_output::probe;

probe! {
    "clock": "reading the clock through the vDSO and through a system call";
    "clock.vdso.time", Nanosecond, Lower, Kernel, floor: "One clock_gettime(CLOCK_MONOTONIC) through the C library, which takes the vDSO where there is one.";
    "clock.syscall.time", Nanosecond, Lower, Kernel, floor: "One clock_gettime(CLOCK_MONOTONIC) as a real system call.";
}
