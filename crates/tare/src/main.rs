//! The `tare` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tare::cli::main()
}
