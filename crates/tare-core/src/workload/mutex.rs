//! `mutex`: a workload on locks.
//!
//! The counterpart of "Lock with Mutex" and "MultiTasking with lock" of a published comparison of containers (2019).
//! Limits: does not test locks between processes.

use super::probe_output::probe;

probe! {
    "mutex": "taking and giving back locks, alone and against another thread";
    "lock.mutex.time", Nanosecond, Lower, Compute, floor: "Taking and giving back an uncontended mutex.";
    "lock.read.time", Nanosecond, Lower, Compute, floor: "Taking and giving back the shared side of an uncontended lock.";
    "lock.contended.time", Nanosecond, Lower, Kernel: "Taking and giving back a mutex that a second thread takes all the time, per operation of both.";
}
