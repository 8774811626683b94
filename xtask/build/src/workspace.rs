//! Paths of the workspace and its target folder.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// Returns the folder of the workspace.
pub fn root() -> &'static Path {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2);
    above.expect("this package lies two folders below the workspace")
}

/// Returns `CARGO_TARGET_DIR`, else `target` in the root.
pub fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR")
        .map_or_else(|| root().join("target"), |folder| root().join(folder))
}

/// Returns a folder with this name in the target folder, created if missing.
pub fn work_folder(name: &str) -> Result<PathBuf> {
    let folder = target_folder().join(name);
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}
