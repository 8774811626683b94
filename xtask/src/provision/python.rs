//! An interpreter that finds pyperf, which hardly any distribution packages: in a virtual environment of its own.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::ensured;
use crate::shell::{program, step};
use crate::workspace::target_folder;

/// The variable that tells the tests of it; a newcomer may set it to an interpreter of his own.
pub(crate) const VARIABLE: &str = "TARE_PYPERF";

/// What is installed: the version whose output the tests know.
const RELEASE: &str = "pyperf==2.10.0";

/// The interpreter that is named, else one in the target folder; `None`, and the reason told, where pyperf cannot
/// be had.
pub(crate) fn ensure() -> Option<PathBuf> {
    let folder = target_folder().join("pyperf");
    let python = folder.join("bin/python3");
    let bring = || {
        step(&format!("installing {RELEASE} into {}", folder.display()));
        install(&folder, &python)
    };
    let lack = "pyperf cannot be had, its tests are skipped";
    ensured(VARIABLE, python.clone(), finds_it, bring, lack)
}

fn finds_it(python: &Path) -> bool {
    python.is_file() && program(python, &["-c", "import pyperf"]).output().is_ok()
}

fn install(folder: &Path, python: &Path) -> Result<()> {
    program(
        "/usr/bin/python3",
        &["-m", "venv", &folder.to_string_lossy()],
    )
    .output()?;
    program(
        python,
        &[
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            RELEASE,
        ],
    )
    .output()?;
    Ok(())
}
