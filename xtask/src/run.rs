//! `run`: builds as `dist` does, but for two forms of reports, then measures: `tare run` with the further arguments. Its
//! exit status is that of `tare`.

use std::process::{Command, ExitCode};

use anyhow::Context;

use crate::dist::{Forms, Place, build_for};
use crate::shell::step;

/// Builds and measures.
pub(crate) fn main(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let program = build_for(&Place::own(), None, Forms::Quick)?;
    step("measuring");
    let status = Command::new(&program)
        .arg("run")
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
