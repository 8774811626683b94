//! Removing a folder with all that is in it, and nothing else.
//!
//! Every step goes from an open folder to a name in it, so nothing that is renamed meanwhile leads elsewhere.
//! A symbolic link is removed and never followed. A folder that something is mounted on stops the removal: what
//! lies on another file system, or is bound there from elsewhere, belongs to somebody else.
//! What it cannot see: who moves a folder of it elsewhere meanwhile; that ends the removal.

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
    match unlinked(&parent, &name) {
        Ok(true) => return Ok(()),
        Ok(false) => {}
        Err(error) => return Err(stopped(error)),
    }
    let top = open_within(&parent, &name).map_err(|error| stopped_at(path.to_owned(), error))?;
    Walk::begin(top, path, last.map(str::as_bytes))?.empty()?;
    unlinkat(&parent, &name, AtFlags::REMOVEDIR).map_err(stopped)
}

/// A folder on the way down.
struct Level {
    /// What it is called in the one above.
    name: CString,
    /// Numbers of device and file, by which the way back is known.
    id: (u64, u64),
    /// What is still in it, the next one last.
    names: Vec<CString>,
}

/// A walk through a tree from the leaves up, with one folder open at a time: neither its depth nor the number of its
/// folders is bounded by what a process may have.
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
        let failed = |error| stopped_at(self.path.clone(), error);
        Ok(Level {
            name,
            id: id(&self.here).map_err(failed)?,
            names: names(&self.here).map_err(failed)?,
        })
    }

    /// Removes all that is in the folder.
    fn empty(mut self) -> Result<(), Stopped> {
        while let Some(level) = self.levels.last_mut() {
            match level.names.pop() {
                Some(name) => self.remove_one(name)?,
                None => self.leave()?,
            }
        }
        Ok(())
    }

    /// Removes what bears this name, or goes into it.
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
            // Somebody else was quicker.
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(stopped_at(below, error)),
        }
    }

    /// Goes up from an empty folder and removes it; nothing above the first one is opened.
    fn leave(&mut self) -> Result<(), Stopped> {
        let (Some(done), Some(above)) = (self.levels.pop(), self.levels.last()) else {
            return Ok(());
        };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let up = openat(&self.here, c"..", flags, Mode::empty());
        let is_moved = |error| stopped_at(self.path.clone(), error);
        let up = up.map_err(is_moved)?;
        if id(&up).map_err(is_moved)? != above.id {
            let why = "it was moved while it was removed";
            return Err((self.path.clone(), io::Error::other(why)));
        }
        match unlinkat(&up, &done.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(stopped_at(self.path.clone(), error)),
        }
        self.here = up;
        self.path.pop();
        Ok(())
    }
}

fn stopped_at(path: PathBuf, error: Errno) -> Stopped {
    let reason = if error == Errno::XDEV {
        io::Error::other("something is mounted there; unmount it first")
    } else {
        io::Error::from(error)
    };
    (path, reason)
}

/// Removes what bears a name in an open folder; not a folder.
fn unlinked(folder: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
    match unlinkat(folder, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        // A folder: Linux says the one, POSIX the other.
        Err(Errno::ISDIR | Errno::PERM) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Numbers of device and file.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_deeper_than_files_may_be_open_or_a_stack_holds_is_removed() {
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
