//! The agent's executable. Its code is in the library, so that tests can add misbehaving probes.

use std::process::ExitCode;

fn main() -> ExitCode {
    tare_agent::entry::entry(&[])
}
