//! A file of axe-core, which looks for what keeps people from reading a page: from npm's index, for the tests in a browser.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::ensured;
use crate::shell::{program, step};
use crate::workspace::target_folder;

/// The variable that tells the tests of it; a newcomer may set it to a file of his own.
pub(crate) const VARIABLE: &str = "TARE_AXE";

/// What is taken: the version whose findings the pages have none of.
const RELEASE: &str = "4.14.1";

/// SHA-256 of that release's archive.
const DIGEST: &str = "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745";

/// The file that is named, else one in the target folder; `None`, and the reason told, where it cannot be had.
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
    let told = program("sha256sum", &[&archive]).folder(folder).output()?;
    ensure!(
        told.starts_with(DIGEST),
        "what npm's index gives for {wanted} is not what was looked at: {told}"
    );
    program("tar", &["xzf", &archive, "package/axe.min.js"])
        .folder(folder)
        .output()?;
    Ok(())
}
