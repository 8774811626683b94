//! `timer`: a workload on timers.
//!
//! The counterpart of "Schedule Timer" of a published comparison of containers (2019).
//! Limits: does not show whether a late wake-up is due to the timer or the scheduler.

use super::probe_output::probe;

probe! {
    "timer": "setting and taking back timers, and sleeping for a short while";
    Nanosecond, Lower, Kernel {
        "timer.short.time": "Making a timer, setting it to 50 ms, and closing it before it expires.";
        "timer.long.time": "Making a timer, setting it to one hour, and closing it.";
        "timer.sleep.time": "A sleep of 50 µs, until the thread runs again.";
    }
}
