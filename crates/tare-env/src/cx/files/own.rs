//! Folders and files that are this user's alone.
//!
//! What Tare keeps (raw output, commands, standard input, notes of what a run made) is nobody else's to read, and
//! what it opens there must not have been put there by somebody else: a record says what is removed, and where.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{FileError, error};

/// Why a folder is not this user's alone.
#[derive(Debug, thiserror::Error)]
pub enum NotOwn {
    /// It, or a folder above it, is another user's.
    #[error("`{}` belongs to another user (uid {owner}), who could put anything there", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// Others may make or replace files in it.
    #[error("other users may change what is in `{}` (mode {mode:04o})", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It cannot be looked at or made.
    #[error(transparent)]
    File(#[from] FileError),
}

impl NotOwn {
    /// What helps.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Foreign { .. } => {
                "set TARE_HOME to a folder of your own; `sudo -H` takes that of root"
            }
            Self::Open { .. } => {
                "set TARE_HOME to a folder of your own, or close this one with `chmod go-w`"
            }
            Self::File(_) => "set TARE_HOME to a folder of your own on a disk with space",
        }
    }
}

/// The user that this process acts as.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Makes a folder, and those above it, that nobody else may enter. One that is there stays as it is.
pub fn create_folder(path: &Path) -> Result<(), FileError> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(error("create the folder", path))
}

/// Whether a folder is this user's, and nobody else may change what is in it. For root also all folders on the way
/// to it: whoever may rename one of them decides what is found there.
pub fn check_folder(path: &Path) -> Result<(), NotOwn> {
    let found = std::fs::metadata(path).map_err(error("look at", path))?;
    let uid = own_uid();
    check(path, &found, &[uid], 0o022)?;
    if uid != 0 {
        return Ok(());
    }
    let given = std::path::absolute(path).map_err(error("find", path))?;
    // A path that ends in a slash leads through a link.
    let given: PathBuf = given.components().collect();
    let real = super::canonical(path)?;
    for folder in given.ancestors().chain(real.ancestors()) {
        let found = std::fs::symlink_metadata(folder).map_err(error("look at", folder))?;
        // In a folder such as `/tmp` nobody replaces what is another's.
        let is_sticky = found.permissions().mode() & 0o1000 != 0;
        let of_group = if found.gid() == 0 { 0 } else { 0o020 };
        let is_link = found.is_symlink();
        let closed = if is_sticky || is_link {
            0
        } else {
            0o002 | of_group
        };
        check(folder, &found, &[0], closed)?;
    }
    Ok(())
}

fn check(
    path: &Path,
    found: &std::fs::Metadata,
    owners: &[u32],
    closed: u32,
) -> Result<(), NotOwn> {
    let mode = found.permissions().mode() & 0o7777;
    if !owners.contains(&found.uid()) {
        return Err(NotOwn::Foreign {
            path: path.to_owned(),
            owner: found.uid(),
        });
    }
    if mode & closed != 0 {
        return Err(NotOwn::Open {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

/// Lets others pass through a folder of this user's that is closed, without seeing what is there; any other folder
/// stays as it is.
pub fn let_through(path: &Path) -> Result<(), FileError> {
    let found = std::fs::symlink_metadata(path).map_err(error("look at", path))?;
    let is_closed = found.is_dir() && found.permissions().mode() & 0o777 == 0o700;
    if !is_closed || found.uid() != own_uid() {
        return Ok(());
    }
    set_mode(path, 0o711, "open the way through")
}

/// Closes a folder again that [`let_through`] has opened; any other stays as it is.
pub fn let_nobody_through(path: &Path) -> Result<(), FileError> {
    let found = std::fs::symlink_metadata(path).map_err(error("look at", path))?;
    let is_open = found.is_dir() && found.permissions().mode() & 0o777 == 0o711;
    if !is_open || found.uid() != own_uid() {
        return Ok(());
    }
    set_mode(path, 0o700, "close")
}

/// Lets everybody read a file that lies in a folder of this user's.
pub fn let_read(path: &Path) -> Result<(), FileError> {
    set_mode(path, 0o644, "let others read")
}

fn set_mode(path: &Path, mode: u32, action: &'static str) -> Result<(), FileError> {
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).map_err(error(action, path))
}

/// Opens a file of this user's to read and write it, where `is_new` makes it; nobody else may read it, and a link,
/// a pipe or another user's file is refused. `None` where there is none and none is to be made.
pub fn open_file(path: &Path, is_new: bool) -> Result<Option<std::fs::File>, FileError> {
    let Some(file) = open_anybodys(path, is_new)? else {
        return Ok(None);
    };
    let owner = file.metadata().map_err(error("look at", path))?.uid();
    if owner != own_uid() {
        let why = format!("it belongs to another user (uid {owner})");
        return Err(error("open", path)(io::Error::other(why)));
    }
    Ok(Some(file))
}

/// The same for a file that may be another user's, which stays as open as it is.
pub fn open_anybodys(path: &Path, is_new: bool) -> Result<Option<std::fs::File>, FileError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(is_new)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let file = match opened {
        Err(reason) if reason.kind() == io::ErrorKind::NotFound && !is_new => return Ok(None),
        other => other.map_err(error("open", path))?,
    };
    let found = file.metadata().map_err(error("look at", path))?;
    if !found.is_file() {
        return Err(error("open", path)(io::Error::other("it is no plain file")));
    }
    // Who only looks leaves it as it is.
    if is_new && found.uid() == own_uid() && found.permissions().mode() & 0o077 != 0 {
        let closed = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(closed).map_err(error("close", path))?;
    }
    Ok(Some(file))
}
