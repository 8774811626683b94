//! `mutex`: a workload on locks.
//!
//! The counterpart of "Lock with Mutex" and "MultiTasking with lock" of a published comparison of containers (2019).
//! Limits: does not test locks between processes.

use super::probe_output::probe;

probe! {
    "mutex": "taking and giving back locks, alone and against another thread";
    Nanosecond, Lower, Compute {
        "lock.mutex.time", floor: "Taking and giving back an uncontended mutex.";
        "lock.read.time", floor: "Taking and giving back the shared side of an uncontended lock.";
    }
    Nanosecond, Lower, Kernel {
        "lock.contended.time": "Taking and giving back a mutex that a second thread takes all the time, per operation of both.";
    }
}
