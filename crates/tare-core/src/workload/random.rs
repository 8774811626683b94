//! `random`: a workload on random numbers.
//!
//! The counterpart of "Random Int" and "Random Bytes" of a published comparison of containers (2019).
//! Limits: does not test the generators of languages and libraries.

use super::probe_output::probe;

probe! {
    "random": "random numbers of an own generator and of the kernel";
    Nanosecond, Lower, Compute {
        "random.integer.time", floor: "One random whole number below a limit, of a generator in registers.";
        "random.bytes.time", floor: "Filling 1 000 bytes from a generator in registers.";
    }
    Nanosecond, Lower, Kernel {
        "random.kernel.time": "One `getrandom` system call for 32 bytes.";
    }
}
