//! Where things lie on this machine: the store, the runs' folders, the agent.

use std::path::PathBuf;

use crate::cx::{files, vars};
use crate::failed::{Exit, Failed};

/// What the command line said about places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The agent's file.
    pub(crate) agent: Option<PathBuf>,
    /// The store's file.
    pub(crate) store: Option<PathBuf>,
}

impl Place {
    /// The folder for everything that Tare keeps; made if it is not there, closed to others. What others could have
    /// put something into is refused.
    pub(crate) fn state_folder() -> Result<PathBuf, Failed> {
        let folder = named_state_folder()?;
        files::create_folder(&folder)?;
        files::check_folder(&folder)?;
        Ok(folder)
    }

    /// The same without making it; `None` where there is none.
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
        // The store makes its folder.
        if let Some(file) = &self.store {
            return Ok(file.clone());
        }
        let folder = named_state_folder()?;
        if folder.is_dir() {
            files::check_folder(&folder)?;
        }
        Ok(folder.join("store.sqlite"))
    }
}

/// A folder with nothing in it, which is made if it is not there.
pub(crate) fn empty_folder() -> Result<PathBuf, Failed> {
    let folder = Place::state_folder()?.join("empty");
    files::create_folder(&folder)?;
    Ok(folder)
}

fn named_state_folder() -> Result<PathBuf, Failed> {
    vars::state_folder().ok_or_else(|| {
        Failed::new(
            Exit::Usage,
            "there is no place for the store: none of TARE_HOME, XDG_STATE_HOME and HOME is set",
        )
        .hint("set TARE_HOME to a folder on a disk with space")
    })
}
