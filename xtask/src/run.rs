//! `run`: builds the agents as `dist` does and a `tare` that is not optimized and has fewer forms of reports, then runs
//! `tare run` with the further arguments. Its exit status is that of `tare`.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::dist::{Build, BuildPaths, build_for};
use crate::shell::step;

pub(crate) fn main(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let program = build_for(&BuildPaths::own(), None, Build::First)?;
    step("measuring");
    let status = Command::new(&program)
        .arg("run")
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
