//! Private folders and files on systems without Unix permissions.
//!
//! On Windows a user's local application data is closed to other users by default.

use std::io;
use std::path::Path;

use super::{FileError, Result, error};

/// Why a folder is not private to this user.
#[derive(Debug, thiserror::Error)]
pub enum NotOwn {
    /// It cannot be examined or created.
    #[error(transparent)]
    File(#[from] FileError),
}

impl NotOwn {
    /// What the user can do about it.
    pub fn hint(&self) -> &'static str {
        "set TARE_HOME to a folder of your own on a disk with space"
    }
}

/// The user id of this process: never root.
pub fn own_uid() -> u32 {
    u32::MAX
}

/// Creates a folder and its parents.
pub fn create_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(error("create the folder", path))
}

/// Checks that a folder exists.
pub fn check_folder(path: &Path) -> Result<(), NotOwn> {
    Ok(std::fs::metadata(path)
        .map(drop)
        .map_err(error("look at", path))?)
}

/// Does nothing here.
pub fn let_through(_path: &Path) -> Result<()> {
    Ok(())
}

/// Does nothing here.
pub fn close_to_others(_path: &Path) -> Result<()> {
    Ok(())
}

/// Same as [`open_file`].
pub fn open_anybodys(path: &Path, is_new: bool) -> Result<Option<std::fs::File>> {
    open_file(path, is_new)
}

/// Opens a file for reading and writing; `is_new` creates it if it does not exist. `None` if it does not exist and is
/// not to be created.
pub fn open_file(path: &Path, is_new: bool) -> Result<Option<std::fs::File>> {
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(is_new)
        .truncate(false)
        .open(path);
    match opened {
        Err(reason) if reason.kind() == io::ErrorKind::NotFound && !is_new => Ok(None),
        other => other.map(Some).map_err(error("open", path)),
    }
}
