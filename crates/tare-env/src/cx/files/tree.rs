//! Removes a folder recursively, and nothing else.
//!
//! Every step goes from an open folder to a name in it, so a concurrent rename cannot redirect the removal. Symbolic
//! links are removed, never followed. A mount point stops the removal: another file system, or a bind mount, is not
//! part of the folder.
//! Limits: if another process moves a folder of the tree meanwhile, the removal stops with an error.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, fstat, openat, unlinkat};
use rustix::io::Errno;

/// How a folder is opened, but not a link to one.
const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The path that could not be removed, and why.
pub(super) type Stopped = (PathBuf, io::Error);

/// Removes the folder; the entry `last` directly in it is removed after all others.
pub(super) fn remove(path: &Path, last: Option<&str>) -> Result<(), Stopped> {
    let stopped = |error| stopped_at(path, error);
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
    if unlinked(&parent, &name).map_err(stopped)? {
        return Ok(());
    }
    let top = open_within(&parent, &name).map_err(stopped)?;
    Walk::begin(top, path, last.map(str::as_bytes))?.empty()?;
    unlinkat(&parent, &name, AtFlags::REMOVEDIR).map_err(stopped)
}

/// A folder on the current path of the walk.
struct Level {
    /// Its name in its parent.
    name: CString,
    /// Device and inode number, to verify the way back.
    id: (u64, u64),
    /// Entries that remain, in reverse order.
    names: Vec<CString>,
}

/// A walk through a tree from the leaves up, with one open folder at a time, so that neither depth nor number of
/// folders is limited by a process's file descriptors.
struct Walk {
    here: OwnedFd,
    path: PathBuf,
    levels: Vec<Level>,
}

impl Walk {
    fn begin(top: OwnedFd, path: &Path, last: Option<&[u8]>) -> Result<Self, Stopped> {
        let mut walk = Self {
            here: top,
            path: path.to_owned(),
            levels: Vec::new(),
        };
        let mut level = walk.level(CString::default())?;
        level
            .names
            .sort_by_key(|name| last.is_none_or(|last| name.as_bytes() != last));
        walk.levels.push(level);
        Ok(walk)
    }

    fn level(&self, name: CString) -> Result<Level, Stopped> {
        let failed = |error| stopped_at(&self.path, error);
        Ok(Level {
            name,
            id: id(&self.here).map_err(failed)?,
            names: names(&self.here).map_err(failed)?,
        })
    }

    /// Removes everything in the folder.
    fn empty(mut self) -> Result<(), Stopped> {
        while let Some(level) = self.levels.last_mut() {
            match level.names.pop() {
                Some(name) => self.remove_one(name)?,
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// Removes this entry, or descends into it.
    fn remove_one(&mut self, name: CString) -> Result<(), Stopped> {
        let below = self.path.join(name.to_string_lossy().as_ref());
        let opened = match unlinked(&self.here, &name) {
            Ok(true) => return Ok(()),
            Ok(false) => open_within(&self.here, &name),
            Err(error) => Err(error),
        };
        match opened {
            Ok(inner) => {
                self.here = inner;
                self.path = below;
                let level = self.level(name)?;
                self.levels.push(level);
                Ok(())
            }
            // Another process removed it first.
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(stopped_at(&below, error)),
        }
    }

    /// Goes up from an empty folder and removes it; opens nothing above the first one.
    fn leave(&mut self) -> Result<(), Stopped> {
        let (Some(done), Some(above)) = (self.levels.pop(), self.levels.last()) else {
            return Ok(());
        };
        let up = openat(&self.here, c"..", FOLDER, Mode::empty());
        let failed = |error| stopped_at(&self.path, error);
        let up = up.map_err(failed)?;
        if id(&up).map_err(failed)? != above.id {
            let why = "it was moved while it was removed";
            return Err((self.path.clone(), io::Error::other(why)));
        }
        match unlinkat(&up, &done.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error)),
        }
        self.here = up;
        self.path.pop();
        Ok(())
    }
}

fn stopped_at(path: &Path, error: Errno) -> Stopped {
    let reason = if error == Errno::XDEV {
        io::Error::other("something is mounted there; unmount it first")
    } else {
        io::Error::from(error)
    };
    (path.to_owned(), reason)
}

/// Removes an entry of an open folder; returns `false` for a folder.
fn unlinked(folder: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        // A folder: `EISDIR` on Linux, `EPERM` by POSIX.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Device and inode number.
fn id(folder: &OwnedFd) -> Result<(u64, u64), Errno> {
    let found = fstat(folder.as_fd())?;
    #[allow(
        clippy::unnecessary_cast,
        reason = "systems number devices and files differently"
    )]
    Ok((found.st_dev as u64, found.st_ino as u64))
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

/// Opens a folder in another one; [`Errno::XDEV`] if that would cross a mount.
fn open_within(folder: &OwnedFd, name: &CStr) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let within = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        match openat2(folder, name, FOLDER, Mode::empty(), within) {
            // Kernels before 5.6, and seccomp filters that do not know the syscall.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
    }
    let inner = openat(folder, name, FOLDER, Mode::empty())?;
    // This does not detect a bind mount from the same file system.
    if fstat(inner.as_fd())?.st_dev == fstat(folder.as_fd())?.st_dev {
        Ok(inner)
    } else {
        Err(Errno::XDEV)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_deeper_than_fd_limit_or_stack_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("deep");
        std::fs::create_dir(&path).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let mut here = openat(CWD, &path, flags, Mode::empty()).unwrap();
        for _ in 0..20_000 {
            rustix::fs::mkdirat(&here, c"d", Mode::RWXU).unwrap();
            rustix::fs::symlinkat(place.path(), &here, c"link").unwrap();
            here = openat(&here, c"d", flags, Mode::empty()).unwrap();
        }
        drop(here);
        remove(&path, None).unwrap();
        assert!(!path.exists() && place.path().exists());
    }
}
