//! The agent's program. What it does stands in the library, so that tests can add probes that misbehave.

use std::process::ExitCode;

fn main() -> ExitCode {
    tare_agent::entry::entry(&[])
}
