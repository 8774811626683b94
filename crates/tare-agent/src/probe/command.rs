//! `command`: runs a program of the user's or of the field and keeps what it leaves.
//!
//! Inside the timed region: the request to start the program, everything that it and its children do, and
//! waiting for its end. Outside: writing its files into a fresh folder, looking it up on the search path,
//! dropping files from the page cache where that is asked for, reading back the files that were asked for. Nothing passes through a shell.
//! A program that serves is started on a port of the agent's choice, and has started when that port listens.
//! Known bias: standard output and standard error are read through pipes by two threads of the worker while
//! the program runs, which use a little of a processor when it prints much.
//! A program that is to run in slices is stopped between them, and that time is not counted (`in_slices`).
//! What the program leaves running in the background is ended with it, after the time was taken.
//! What it cannot see: whether the program did what it says. An exit status other than 0 is reported, not
//! judged; its workload judges, so that the output is stored whatever came of it.

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

#[cfg_attr(windows, path = "command/ending_windows.rs")]
mod ending;
mod execute;
#[cfg(target_os = "linux")]
mod in_slices;
#[cfg_attr(windows, path = "command/left_windows.rs")]
pub(crate) mod left;
mod port;
mod prepared;
#[cfg(unix)]
mod watch;
