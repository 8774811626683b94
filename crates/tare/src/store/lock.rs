//! Locks a store for one run at a time; the system releases the lock even after `kill -9`.
//!
//! The lock is a separate file next to the store, held by `File::try_lock`; the file stays, only the lock is
//! released. Two runs at once would disturb each other's measurement, so the lock guards not only the data. A run
//! into another store on the same machine only causes a warning (`cx::measuring`).

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::error::of_file;
use crate::cx::files;

/// The lock; released when dropped.
#[derive(Debug)]
pub(super) struct RunLock {
    // Keeps the lock.
    _file: File,
}

/// Path of a store's lock file.
pub(super) fn lock_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

impl RunLock {
    /// Takes the lock and writes this process's ID into it.
    pub(super) fn take(store: &Path) -> Result<Self, StoreError> {
        let path = lock_path(store);
        let failed = |error: std::io::Error| of_file(&path, "lock", &error);
        // A symbolic link must not redirect the write.
        let mut file = files::open_anybodys(&path, true)
            .map_err(|error| failed(error.source))?
            .expect("it is made where there is none");
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::InUse {
                    path: store.to_owned(),
                    pid: holder(&mut file),
                });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        file.set_len(0).map_err(failed)?;
        // Only for the message above; the lock is valid without it, e.g. on a full disk.
        let _ = write!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}

/// Whether the lock is held, according to the kernel's list. It does not lock: even a short lock could turn away a
/// run that is starting. False if there is no such list.
pub(super) fn is_held(store: &Path) -> bool {
    let Ok(Some(mut file)) = files::open_anybodys(&lock_path(store), false) else {
        return false;
    };
    let locks = files::read_text(Path::new("/proc/locks")).unwrap_or_default();
    let number = file_number(&file);
    let pid = holder(&mut file);
    pid.zip(number)
        .is_some_and(|(pid, number)| has_lock(&locks, pid, number))
}

/// Whether a process holds a lock of a whole file with this inode number: `1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789
/// 0 EOF`. The device is that of the underlying file system, which may differ from the one in the file's metadata.
fn has_lock(locks: &str, pid: u32, number: u64) -> bool {
    locks.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, "WRITE", owner, place, ..] = words.as_slice() else {
            return false;
        };
        let of_file = place.rsplit(':').next().and_then(|it| it.parse().ok());
        owner.parse() == Ok(pid) && of_file == Some(number)
    })
}

fn file_number(file: &File) -> Option<u64> {
    #[cfg(unix)]
    return std::os::unix::fs::MetadataExt::ino(&file.metadata().ok()?).into();
    #[cfg(not(unix))]
    {
        let _ = file;
        None
    }
}

/// The process ID in the file. Unreadable on systems where a lock also excludes readers.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_its_owners_and_its_files() {
        let locks = "1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF\n\
                     2: POSIX  ADVISORY  WRITE 77 fe:00:5 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 88 fe:00:56789 0 EOF\n";
        assert!(has_lock(locks, 1234, 56789));
        for (pid, number) in [(1234, 5), (77, 5), (88, 56789), (1, 1)] {
            assert!(!has_lock(locks, pid, number), "{pid} {number}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn held_lock_is_visible_and_symlink_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        assert!(!is_held(&store));
        let lock = RunLock::take(&store).unwrap();
        assert!(is_held(&store));
        let other = folder.path().join("other.db");
        std::os::unix::fs::symlink(lock_path(&store), lock_path(&other)).unwrap();
        assert!(!is_held(&other));
        drop(lock);
        assert!(!is_held(&store));
    }
}
