//! Creates and opens folders and files that only this user may access.
//!
//! Other users must not read what Tare stores (raw output, commands, standard input, records of what a run created),
//! nor plant files that Tare opens: a record says what is removed, and where.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{FileError, Result, error};

/// Why a folder is not private to this user.
#[derive(Debug, thiserror::Error)]
pub enum NotOwn {
    /// It, or a folder above it, belongs to another user.
    #[error("`{}` belongs to another user (uid {owner}), who could put anything there", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// The owner's user id.
        owner: u32,
    },
    /// Other users may create or replace files in it.
    #[error("other users may change what is in `{}` (mode {mode:04o})", path.display())]
    Open {
        /// The folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It cannot be examined or created.
    #[error(transparent)]
    File(#[from] FileError),
}

impl NotOwn {
    /// What the user can do about it.
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

/// The effective user id of this process.
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Creates a private folder and its parents. An existing one stays unchanged.
pub fn create_folder(path: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(path);
    made.map_err(error("create the folder", path))
}

/// Checks that a folder belongs to this user and that no other user may change its contents. For root, checks all
/// folders on the path too: a user who may rename one of them decides what is found there.
pub fn check_folder(path: &Path) -> Result<(), NotOwn> {
    let found = std::fs::metadata(path).map_err(error("look at", path))?;
    let uid = own_uid();
    check(path, &found, uid, 0o022)?;
    if uid != 0 {
        return Ok(());
    }
    let given = std::path::absolute(path).map_err(error("find", path))?;
    // A path that ends in a slash follows a link.
    let given: PathBuf = given.components().collect();
    let real = super::canonical(path)?;
    for folder in given.ancestors().chain(real.ancestors()) {
        let found = std::fs::symlink_metadata(folder).map_err(error("look at", folder))?;
        // In a sticky folder such as `/tmp`, users cannot replace each other's files.
        let is_sticky = found.permissions().mode() & 0o1000 != 0;
        let of_group = if found.gid() == 0 { 0 } else { 0o020 };
        let is_link = found.is_symlink();
        let closed = if is_sticky || is_link {
            0
        } else {
            0o002 | of_group
        };
        check(folder, &found, 0, closed)?;
    }
    Ok(())
}

fn check(path: &Path, found: &std::fs::Metadata, owner: u32, closed: u32) -> Result<(), NotOwn> {
    let mode = found.permissions().mode() & 0o7777;
    if found.uid() != owner {
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

/// Lets other users traverse a private folder of this user without listing it; any other folder stays unchanged.
pub fn let_through(path: &Path) -> Result<()> {
    change_folder(path, [0o700, 0o711], "open the way through")
}

/// Closes a folder that [`let_through`] opened; any other stays unchanged.
pub fn close_to_others(path: &Path) -> Result<()> {
    change_folder(path, [0o711, 0o700], "close")
}

/// Changes the permissions of a folder of this user that has exactly the first ones.
fn change_folder(path: &Path, [before, after]: [u32; 2], action: &'static str) -> Result<()> {
    let found = std::fs::symlink_metadata(path).map_err(error("look at", path))?;
    let is_meant = found.is_dir() && found.permissions().mode() & 0o777 == before;
    if !is_meant || found.uid() != own_uid() {
        return Ok(());
    }
    super::change_mode(path, after, action)
}

/// Opens a private file of this user for reading and writing; `is_new` creates it if it does not exist. Refuses a
/// link, a pipe or another user's file. `None` if it does not exist and is not to be created.
pub fn open_file(path: &Path, is_new: bool) -> Result<Option<std::fs::File>> {
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

/// The same for a file that may belong to another user, whose permissions stay unchanged.
pub fn open_anybodys(path: &Path, is_new: bool) -> Result<Option<std::fs::File>> {
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
    // Permissions stay unchanged for a caller that only reads.
    if is_new && found.uid() == own_uid() && found.permissions().mode() & 0o077 != 0 {
        let closed = std::fs::Permissions::from_mode(0o600);
        file.set_permissions(closed).map_err(error("close", path))?;
    }
    Ok(Some(file))
}
