//! `hub`: a network for the instances of one arm, in a namespace that lives as long as this process.
//!
//! The namespace holds only a bridge. Containers are plugged into it by a second veth pair, virtual machines by a
//! second TAP device; each instance also keeps its link to the host. In a separate namespace the bridge is out of
//! reach of the host's firewall, whose forwarding rules an engine may have changed, and it vanishes with the process,
//! however that ends.
//! Prints `ready` when instances may be plugged in, and exits when stdin closes, that is, with its host process.
//! Limits: does not see whether any instance is plugged in.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use crate::launch::{network, sys};

/// Runs `hub`.
#[allow(
    clippy::print_stderr,
    reason = "standard error is where the host reads the reason"
)]
pub fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tare-agent: hub: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let step = |what: &str, error: io::Error| {
        io::Error::new(error.kind(), format!("cannot {what}: {error}"))
    };
    sys::unshare(libc::CLONE_NEWNET).map_err(|error| step("make a network namespace", error))?;
    network::make_bridge().map_err(|error| step("make a bridge", error))?;
    let mut output = io::stdout();
    output.write_all(b"ready\n")?;
    output.flush()?;
    let mut rest = [0u8; 64];
    loop {
        match io::stdin().read(&mut rest) {
            Ok(0) => return Ok(()),
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}
