//! Provides axe-core, which checks a page's accessibility: from npm's index, for the tests in a browser.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::ensured;
use xtask_build::shell::{program, step};
use xtask_build::workspace::target_folder;

/// The variable with the file's path for the tests; may be set beforehand to another file.
pub(crate) const VARIABLE: &str = "TARE_AXE";

/// The installed version; the pages have none of its findings.
const RELEASE: &str = "4.14.1";

/// SHA-256 of that release's archive.
const DIGEST: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";

/// Returns the named file, else one in the target folder; `None`, with the reason printed, if it is not available.
pub(crate) fn ensure() -> Option<PathBuf> {
    let folder = target_folder().join("axe");
    let bring = || {
        step(&format!("fetching axe-core {RELEASE}"));
        fetch(&folder)
    };
    let file = folder.join("package/axe.min.js");
    let lack = "axe-core cannot be had, its test is skipped";
    ensured(VARIABLE, file, Path::is_file, bring, lack)
}

fn fetch(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let wanted = format!("axe-core@{RELEASE}");
    program("npm", &["pack", "--silent", &wanted])
        .folder(folder)
        .output()?;
    let archive = format!("axe-core-{RELEASE}.tgz");
    let shown = program("sha256sum", &[&archive]).folder(folder).output()?;
    ensure!(
        shown.starts_with(DIGEST),
        "what npm's index gives for {wanted} is not what was looked at: {shown}"
    );
    program("tar", &["xzf", &archive, "package/axe.min.js"])
        .folder(folder)
        .output()?;
    Ok(())
}
