//! `environment`: a workload on environment variables and the locale.
//!
//! The counterpart of "Get one Environment Variable", "Get all Environment Variable" and "Get current Cultureinfo" of
//! a published comparison of containers (2019).
//! Limits: the probe sets its variables itself, so the number that an engine sets has no effect.

use super::probe_output::probe;

probe! {
    "environment": "reading and writing environment variables, and asking for the locale";
    Nanosecond, Lower, Compute {
        "environment.get.time": "One `getenv` of the last of 32 variables.";
        "environment.all.time": "Copying all 32 variables.";
        "environment.set.time": "One `setenv` of a variable that exists.";
        "environment.locale.time": "One `setlocale` that only asks for the present locale.";
    }
}
