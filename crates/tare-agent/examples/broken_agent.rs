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

static HANGS: Probe = Probe {
    name: "getppid",
    revision: 1,
    about: "never ends",
    cut: Cut::LOOP,
    run: |_: &mut Meter, _: &Params| loop {
        std::thread::sleep(std::time::Duration::from_secs(3600));
    },
};

static ABORTS: Probe = Probe {
    name: "stat",
    revision: 1,
    about: "aborts",
    cut: Cut::LOOP,
    run: |_: &mut Meter, _: &Params| std::process::abort(),
};

static SPEAKS_GARBAGE: Probe = Probe {
    name: "pipe",
    revision: 1,
    about: "writes garbage instead of a report",
    cut: Cut::LOOP,
    run: write_garbage,
};

static ENDS: Probe = Probe {
    name: "clock",
    revision: 1,
    about: "ends with a message and no report",
    cut: Cut::LOOP,
    run: end,
};

static DIES_IN_ITS_TURN: Probe = Probe {
    name: "float",
    revision: 1,
    about: "aborts in its fourth slice",
    cut: Cut::LOOP,
    run: |meter: &mut Meter, _: &Params| {
        let mut rounds = meter.rounds(1.0)?;
        for _ in 0..4 {
            rounds.another(meter)?;
        }
        std::process::abort()
    },
};

static KEEPS_ITS_TURN: Probe = Probe {
    name: "chase",
    revision: 1,
    about: "never gives its second turn back",
    cut: Cut::LOOP,
    run: |meter: &mut Meter, _: &Params| {
        meter.rounds(1.0)?.another(meter)?;
        loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        }
    },
};

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
