//! An agent with probes that misbehave, for the tests of the server.
//!
//! The shipped agent has none of them: this is the same library with more probes. Called with `threads`
//! as its first argument, it serves with the server for systems without `poll`, so that it is tested here.

use std::io::Write;
use std::process::ExitCode;

use tare_agent::meter::{Meter, ProbeError};
use tare_agent::probe::{Cut, Probe};
use tare_agent::serve::{self, ServeOptions};
use tare_model::{Failure, Params, Reason};

static FAULT: Probe = Probe {
    name: "fault",
    revision: 1,
    about: "nothing; misbehaves as its argument `how` says",
    cut: Cut::LOOP,
    run,
};

fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    match params.text("how").unwrap_or_default() {
        "hang" => loop {
            std::thread::sleep(std::time::Duration::from_secs(3600));
        },
        "abort" => std::process::abort(),
        "exit" => exit_with_a_message(),
        "garbage" => write_garbage(),
        "silent" => exit_silently(),
        "print" => print(),
        "stray" => leave_a_child(),
        "listen" => {
            meter.announce(4711);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        "unavailable" => {
            return Err(ProbeError::Unavailable(Reason::MissingTool("x".into())));
        }
        "fail" => return Err(ProbeError::Failed(Failure::Probe("it failed".into()))),
        _ => {}
    }
    meter.each("fault.none.time", 0.0, || Ok(()))
}

#[allow(clippy::exit, reason = "ending the process is this fault")]
fn exit_silently() {
    std::process::exit(0);
}

#[allow(
    clippy::exit,
    clippy::print_stderr,
    reason = "ending the process with a message is this fault"
)]
fn exit_with_a_message() {
    eprintln!("last words");
    std::process::exit(7);
}

#[allow(clippy::print_stdout, reason = "printing is this fault")]
fn print() {
    println!("a probe that prints");
}

/// Writes to every descriptor that may be the way to the agent.
fn write_garbage() {
    for number in 3..16 {
        if let Ok(mut file) = std::fs::OpenOptions::new()
            .write(true)
            .open(format!("/proc/self/fd/{number}"))
        {
            let _ = file.write_all(b"this is no frame");
        }
    }
}

/// Leaves a child behind that holds the worker's standard error open.
fn leave_a_child() {
    #[allow(clippy::zombie_processes, reason = "not waiting is this fault")]
    let child = std::process::Command::new("sleep").arg("3600").spawn();
    drop(child.expect("sleep is installed"));
}

#[allow(clippy::print_stderr, reason = "a test's agent may speak")]
fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("threads") {
        return tare_agent::entry::entry(&[&FAULT]);
    }
    let (input, output) = serve::streams().expect("the test opens the standard streams");
    match serve::threads::serve(input, output, &ServeOptions::default(), &[&FAULT]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
