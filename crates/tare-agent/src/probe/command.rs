//! `command`: runs a program, the user's or a standard benchmark, and keeps its results.
//!
//! Inside the timed region: the request to start the program, everything that it and its children do, and waiting for
//! its end. Outside: writing its files into a fresh folder, looking it up in `PATH`, dropping files from the page
//! cache on request, reading back the requested files. No shell is involved.
//! A program that serves is started on a port chosen by the agent, and counts as started when that port listens.
//! Known bias: stdout and stderr are read through pipes by two threads of the worker while the program runs, which
//! use some CPU time if it prints much.
//! A program that runs in slices is stopped between them, and that time is not counted (`in_slices`).
//! Processes that the program leaves running are killed when it ends, after its time was taken.
//! Limits: does not check whether the program did its work. An exit status other than 0 is reported, not judged; its
//! workload judges, so the output is always stored.

use super::{Cut, Probe};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "command",
    revision: 1,
    about: "start of a program, all that it does, and waiting for its end",
    cut: if cfg!(target_os = "linux") {
        Cut::Slices { ns: 10_000_000 }
    } else {
        Cut::Whole("only Linux stops a program on its way")
    },
    run: execute::run,
};

mod deadline;
#[cfg_attr(windows, path = "command/ending_windows.rs")]
mod ending;
mod execute;
#[cfg(target_os = "linux")]
mod in_slices;
#[cfg_attr(windows, path = "command/left_windows.rs")]
pub(crate) mod left;
mod port;
mod prepared;
#[cfg(target_os = "linux")]
mod usage;
#[cfg(unix)]
mod watch;
