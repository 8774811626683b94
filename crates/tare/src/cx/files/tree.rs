//! Removing a folder with all that is in it, and nothing else.
//!
//! Every step goes from an open folder to a name in it, so nothing that is renamed meanwhile leads elsewhere.
//! A symbolic link is removed and never followed. A folder that something is mounted on stops the removal: what
//! lies on another file system, or is bound there from elsewhere, belongs to somebody else.
//! What it cannot see: trees deeper than the number of files that a process may have open; those are told.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;

/// What could not be removed, and why.
pub(super) type Stopped = (PathBuf, io::Error);

/// Removes the folder; what bears the name `last` directly in it goes when all the rest is gone.
pub(super) fn remove(path: &Path, last: Option<&str>) -> Result<(), Stopped> {
    let stopped = |error: Errno| (path.to_owned(), io::Error::from(error));
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(stopped(Errno::INVAL));
    };
    let parent = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = openat(CWD, parent, flags, Mode::empty()).map_err(stopped)?;
    let name = CString::new(name.as_encoded_bytes()).map_err(|_| stopped(Errno::INVAL))?;
    remove_entry(&parent, &name, path, last.map(str::as_bytes))
}

/// Removes what bears a name in an open folder.
fn remove_entry(
    folder: &OwnedFd,
    name: &CStr,
    path: &Path,
    last: Option<&[u8]>,
) -> Result<(), Stopped> {
    let stopped = |error: Errno| (path.to_owned(), io::Error::from(error));
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => return Ok(()),
        // A folder: Linux says the one, POSIX the other.
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(stopped(error)),
    }
    let inner = match open_within(folder, name) {
        Ok(inner) => inner,
        Err(Errno::XDEV) => {
            let why = "something is mounted there; unmount it first";
            return Err((path.to_owned(), io::Error::other(why)));
        }
        Err(error) => return Err(stopped(error)),
    };
    let mut names = names(&inner).map_err(stopped)?;
    names.sort_by_key(|name| last.is_some_and(|last| name.as_bytes() == last));
    for name in names {
        let below = path.join(name.to_string_lossy().as_ref());
        match remove_entry(&inner, &name, &below, None) {
            // Somebody else was quicker.
            Err((_, error)) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    unlinkat(folder, name, AtFlags::REMOVEDIR).map_err(stopped)
}

fn names(folder: &OwnedFd) -> Result<Vec<CString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Opens a folder in another one; [`Errno::XDEV`] where that would cross a mount.
fn open_within(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        match openat2(folder, name, flags, Mode::empty(), within) {
            // Kernels before 5.6, and filters that do not know the call.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
    }
    let inner = openat(folder, name, flags, Mode::empty())?;
    // A folder that is bound from the same file system cannot be told apart in this way.
    if fstat(inner.as_fd())?.st_dev == fstat(folder.as_fd())?.st_dev {
        Ok(inner)
    } else {
        Err(Errno::XDEV)
    }
}
