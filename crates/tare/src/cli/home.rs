//! Where things lie on this machine: the store, the runs' folders, the agent.

use std::path::PathBuf;

use super::{Exit, Failed};
use crate::cx::{files, vars};

/// What the command line said about places.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    /// The agent's file.
    pub(crate) agent: Option<PathBuf>,
    /// The store's file.
    pub(crate) store: Option<PathBuf>,
}

impl Place {
    /// The folder for everything that Tare keeps; made if it is not there.
    pub(crate) fn state_folder() -> Result<PathBuf, Failed> {
        let folder = vars::state_folder().ok_or_else(|| {
            Failed::new(Exit::Usage, "there is no place for the store: none of TARE_HOME, XDG_STATE_HOME and HOME is set")
                .hint("set TARE_HOME to a folder on a disk with space")
        })?;
        files::create_folder(&folder)?;
        Ok(folder)
    }

    /// The store's file.
    pub(crate) fn store_file(&self) -> Result<PathBuf, Failed> {
        match &self.store {
            // The store makes its folder.
            Some(file) => Ok(file.clone()),
            None => Ok(Self::state_folder()?.join("store.sqlite")),
        }
    }
}
