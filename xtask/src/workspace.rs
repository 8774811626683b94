//! Paths of the workspace and its target folder.

use std::path::{Path, PathBuf};

use anyhow::Result;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in a folder of the workspace")
}

/// Returns `CARGO_TARGET_DIR`, else `target` in the root.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a folder with this name in the target folder, created if missing.
pub(crate) fn work_folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder().join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
