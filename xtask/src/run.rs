//! `run`: builds as `dist` does, except two forms of reports, then runs `tare run` with the further arguments. Its
//! exit status is that of `tare`.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::dist::{BuildPaths, Forms, build_for};
use crate::shell::step;

pub(crate) fn main(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let program = build_for(&BuildPaths::own(), None, Forms::Quick)?;
    step("measuring");
    let status = Command::new(&program)
        .arg("run")
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
