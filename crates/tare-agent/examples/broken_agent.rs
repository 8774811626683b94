//! An agent whose probes misbehave under the names of real ones, for the tests of the whole product.
//!
//! A study can ask for real workloads only, so this agent answers them wrongly: `getppid` never ends, `stat`
//! aborts, `pipe` writes garbage to every descriptor, `clock` ends with a message and without a report,
//! `float` dies in a slice, `chase` keeps its turn, and all other probes are the shipped ones.

use std::io::Write;
use std::process::ExitCode;

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe::{Cut, Probe};
use tare_model::Params;

/// What a probe of an agent runs.
type Run = fn(&mut Meter, &Params) -> Result<(), ProbeError>;

/// A probe that goes wrong in the place of the real one of this name.
const fn instead_of(name: &'static str, about: &'static str, run: Run) -> Probe {
    Probe {
        name,
        revision: 1,
        about,
        cut: Cut::LOOP,
        run,
    }
}

static HANGS: Probe = instead_of("getppid", "never ends", |_, _| sleep_for_ever());

static ABORTS: Probe = instead_of("stat", "aborts", |_, _| std::process::abort());

static SPEAKS_GARBAGE: Probe =
    instead_of("pipe", "writes garbage instead of a report", write_garbage);

static ENDS: Probe = instead_of("clock", "ends with a message and no report", end);

static DIES_IN_ITS_TURN: Probe = instead_of("float", "aborts in its fourth slice", |meter, _| {
    let mut rounds = meter.rounds(1.0)?;
    for _ in 0..4 {
        rounds.another(meter)?;
    }
    std::process::abort()
});

static KEEPS_ITS_TURN: Probe =
    instead_of("chase", "never gives its second turn back", |meter, _| {
        meter.rounds(1.0)?.another(meter)?;
        sleep_for_ever()
    });

fn sleep_for_ever() -> ! {
    loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    }
}

fn write_garbage(_: &mut Meter, _: &Params) -> Result<(), ProbeError> {
    for number in 1..16 {
        if let Ok(mut file) = std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/proc/self/fd/{number}"))
        {
            let _ = file.write_all(b"\x1b]0;this is no frame\x07\xff\xff");
        }
    }
    std::process::abort()
}

#[allow(
    clippy::exit,
    clippy::print_stderr,
    reason = "ending the process with a message is this fault"
)]
fn end(_: &mut Meter, _: &Params) -> Result<(), ProbeError> {
    eprintln!("last words \x1b[31m");
    std::process::exit(7);
}

fn main() -> ExitCode {
    tare_agent::entry::entry(&[
        &HANGS,
        &ABORTS,
        &SPEAKS_GARBAGE,
        &ENDS,
        &DIES_IN_ITS_TURN,
        &KEEPS_ITS_TURN,
    ])
}
