//! Paths on this machine: the store, the folders of runs, the agent.

use std::path::PathBuf;

use crate::cx::{files, vars};
use crate::failed::Failed;
use crate::store::Store;

/// Paths given on the command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct GivenPaths {
    /// The agent's file.
    pub(crate) agent: Option<PathBuf>,
    /// The store's file.
    pub(crate) store: Option<PathBuf>,
}

impl GivenPaths {
    /// Returns Tare's state folder; creates it, closed to other users, if it is missing. Refuses a folder into which
    /// others could have put something.
    pub(crate) fn state_folder() -> Result<PathBuf, Failed> {
        let folder = named_state_folder()?;
        files::create_folder(&folder)?;
        files::check_folder(&folder)?;
        Ok(folder)
    }

    /// The same without creating it; `None` if it is missing.
    pub(crate) fn existing_state_folder() -> Result<Option<PathBuf>, Failed> {
        let folder = named_state_folder()?;
        if !folder.is_dir() {
            return Ok(None);
        }
        files::check_folder(&folder)?;
        Ok(Some(folder))
    }

    /// The store's file.
    pub(crate) fn store_file(&self) -> Result<PathBuf, Failed> {
        // The store creates the folder of a named file.
        if let Some(file) = &self.store {
            return Ok(file.clone());
        }
        let folder = named_state_folder()?;
        if folder.is_dir() {
            files::check_folder(&folder)?;
        }
        Ok(folder.join("store.sqlite"))
    }

    /// Opens the store.
    pub(crate) fn store(&self) -> Result<Store, Failed> {
        Ok(Store::open(&self.store_file()?)?)
    }

    /// Opens the store for reading.
    pub(crate) fn store_to_read(&self) -> Result<Store, Failed> {
        Ok(Store::open_to_read(&self.store_file()?)?)
    }
}

/// Returns an empty folder; creates it if it is missing.
pub(crate) fn empty_folder() -> Result<PathBuf, Failed> {
    let folder = GivenPaths::state_folder()?.join("empty");
    files::create_folder(&folder)?;
    Ok(folder)
}

fn named_state_folder() -> Result<PathBuf, Failed> {
    vars::state_folder().ok_or_else(|| {
        Failed::usage(
            "there is no place for the store: none of TARE_HOME, XDG_STATE_HOME and HOME is set",
        )
        .hint("set TARE_HOME to a folder on a disk with space")
    })
}
