//! `getppid`: what entering the kernel costs, as a workload.
//!
//! Feels a seccomp filter (even one that allows the call by a constant answer), page-table isolation and
//! tracing. What it cannot see: what a filter costs for calls whose arguments it inspects.

use super::probe_output::probe;

probe! {
    "getppid": "the cheapest system call";
    "syscall.getppid.time", Nanosecond, Lower, Kernel, floor: "One getppid, made as a direct system call.";
}
