//! A file into which the tests of one run write lines: the standard output of tests that pass is not passed on.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Such a file; removed when it is dropped.
pub(crate) struct Notes(PathBuf);

impl Notes {
    /// An empty one; `name` tells those of one run apart.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
        std::fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// What was written until now.
    pub(crate) fn read(&self) -> Result<String> {
        std::fs::read_to_string(&self.0)
            .with_context(|| format!("cannot read {}", self.0.display()))
    }
}

impl Drop for Notes {
    fn drop(&mut self) {
        // What cannot be removed lies in the folder for temporary files.
        let _ = std::fs::remove_file(&self.0);
    }
}
