//! A file to which the tests of one run write lines, because the stdout of passing tests is not shown.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Such a file; removed on drop.
pub(crate) struct Notes(PathBuf);

impl Notes {
    /// Creates an empty file; `name` distinguishes the files of one run.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
        std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns what has been written so far.
    pub(crate) fn read(&self) -> Result<String> {
        std::fs::read_to_string(&self.0)
            .with_context(|| format!("cannot read {}", self.0.display()))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        // A file that cannot be removed stays in the temporary folder.
        let _ = std::fs::remove_file(&self.0);
    }
}
