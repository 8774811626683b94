//! Installs what the tests need on a fresh Debian or Ubuntu machine.

pub(crate) mod axe;
pub(crate) mod packages;
pub(crate) mod python;

use std::path::{Path, PathBuf};

use anyhow::Result;
pub(crate) use tare_testkit::docker;

use xtask_build::shell::step;

/// Returns the path in `variable`, else `file`, fetched if missing; `None`, with the reason printed, if that fails.
pub(crate) fn ensured(
    variable: &str,
    file: PathBuf,
    is_there: impl Fn(&Path) -> bool,
    bring: impl FnOnce() -> Result<()>,
    lack: &str,
) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(named.into());
    }
    if is_there(&file) {
        return Some(file);
    }
    match bring() {
        Ok(()) => Some(file),
        Err(error) => {
            step(&format!("{lack}: {error:#}"));
            None
        }
    }
}
