//! `date`: a workload that reads the date and time of day.
//!
//! The counterpart of "Get Current Date" and "Get Current Date UTC" of a published comparison of containers (2019).
//! Limits: does not check that the arms have the same zone file, on which local time depends.

use super::probe_output::probe;

probe! {
    "date": "reading the clock and breaking the time down, in universal and in local time";
    Nanosecond, Lower, Kernel {
        "clock.utc-date.time": "Reading the real-time clock and breaking it down into year to second, in universal time.";
        "clock.local-date.time": "Reading the real-time clock and breaking it down into year to second, by the arm's time zone.";
    }
}
