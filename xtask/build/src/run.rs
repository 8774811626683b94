//! `run`: builds the agents as `dist` does and a `tare` that is not optimized and has fewer forms of reports, then runs
//! `tare run` with the further arguments. Its exit status is that of `tare`.

use std::process::ExitCode;

use crate::dist::{Build, BuildPaths, build_for};
use crate::shell::{program, step, strs};

/// Builds, and runs `tare run` with these arguments.
pub fn main(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let tare = build_for(&BuildPaths::own(), None, Build::First)?;
    step("measuring");
    program(tare, &["run"])
        .arguments(&strs(arguments))
        .exit_code()
}
