//! `cargo xtask COMMAND`: builds and runs `tare` by itself, and hands every other command to the package `xtask`.

#![allow(
    clippy::print_stderr,
    reason = "development commands speak to the developer"
)]

use std::process::ExitCode;

use xtask_build::{dist, run, shell};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((command, further)) if command == "run" => run::main(further),
        Some((command, further)) if command == "dist" => dist::main(further),
        _ => shell::cargo(&["run", "--package", "xtask", "--"])
            .arguments(&shell::strs(&arguments))
            .exit_code(),
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
