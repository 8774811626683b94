//! `getppid`: a workload for the cost of entering the kernel.
//!
//! Detects a seccomp filter (even one that allows the syscall by a constant action), page-table isolation and
//! tracing.
//! Limits: does not show the cost of a filter for syscalls whose arguments it checks.

use super::probe_output::probe;

probe! {
    "getppid": "the cheapest system call";
    "syscall.getppid.time", Nanosecond, Lower, Kernel, floor: "One getppid, made as a direct system call.";
}
