//! Folders and files that are this user's alone, where permissions are the system's own affair.
//!
//! On Windows a user's local application data is closed to others as it is.

use std::io;
use std::path::Path;

use super::{FileError, error};

/// Why a folder is not this user's alone.
#[derive(Debug, thiserror::Error)]
pub enum NotOwn {
    /// It cannot be looked at or made.
    #[error(transparent)]
    File(#[from] FileError),
}

impl NotOwn {
    /// What helps.
    pub fn hint(&self) -> &'static str {
        "set TARE_HOME to a folder of your own on a disk with space"
    }
}

/// The user that this process acts as: never root.
pub fn own_uid() -> u32 {
    u32::MAX
}

/// Makes a folder, and those above it.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(error("create the folder", path))
}

/// Whether a folder is there.
pub fn check_folder(path: &Path) -> Result<(), NotOwn> {
    Ok(std::fs::metadata(path)
        .map(drop)
        .map_err(error("look at", path))?)
}

/// Nobody is kept out.
pub fn let_through(_path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Nobody was let in.
pub fn let_nobody_through(_path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// Nobody is kept out.
pub fn let_read(_path: &Path) -> Result<(), FileError> {
    Ok(())
}

/// As [`open_file`].
pub fn open_anybodys(path: &Path, is_new: bool) -> Result<Option<std::fs::File>, FileError> {
    open_file(path, is_new)
}

/// Opens a file to read and write it, where `is_new` makes it; `None` where there is none and none is to be made.
pub fn open_file(path: &Path, is_new: bool) -> Result<Option<std::fs::File>, FileError> {
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
