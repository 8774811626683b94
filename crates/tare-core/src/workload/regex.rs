//! `regex`: a workload on regular expressions.
//!
//! The counterpart of "Regex Match" and its heavy and parallel forms of a published comparison of containers (2019).
//! Limits: does not test the libraries of languages, some of which compile their expressions.

use super::probe_output::probe;

probe! {
    "regex": "matching regular expressions by backtracking";
    Nanosecond, Lower, Compute {
        "cpu.regex.time", floor: "Finding all addresses of mail in a text of 2 000 characters.";
        "cpu.regex-heavy.time", floor: "Refusing a text of 14 letters after backtracking through some ten thousand ways.";
        "cpu.regex-threads.time": "The same refusal by two threads at once, per refusal of both.";
    }
}
