//! Where the workspace and its target folder lie.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// The workspace's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("this package lies in a folder of the workspace")
}

/// The target folder: `CARGO_TARGET_DIR`, else `target` in the root.
pub(crate) fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// A folder of that name in the target folder, made where it is missing.
pub(crate) fn work_folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder().join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
