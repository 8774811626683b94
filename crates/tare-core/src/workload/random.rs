//! `random`: a workload on random numbers.
//!
//! The counterpart of "Random Int" and "Random Bytes" of a published comparison of containers (2019).
//! Limits: does not test the generators of languages and libraries.

use super::probe_output::probe;

probe! {
    "random": "random numbers of an own generator and of the kernel";
    "random.integer.time", Nanosecond, Lower, Compute, floor: "One random whole number below a limit, of a generator in registers.";
    "random.bytes.time", Nanosecond, Lower, Compute, floor: "Filling 1 000 bytes from a generator in registers.";
    "random.kernel.time", Nanosecond, Lower, Kernel: "One `getrandom` system call for 32 bytes.";
}
