//! One run at a time for each store: a lock that the system gives back even after `kill -9`.
//!
//! A file of its own beside the store, held by `File::try_lock`; the file stays, only the lock goes. Two
//! runs at once would be each other's noise, so this guards the measurement and not only the data.
//! What it cannot see: a run into another store on the same machine.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use super::StoreError;
use super::error::of_file;
use crate::cx::files;

/// The lock; given back when dropped.
#[derive(Debug)]
pub(super) struct RunLock {
    // Held for its lock.
    _file: File,
}

/// Where the lock of a store lies.
pub(super) fn lock_path(store: &Path) -> PathBuf {
    let mut path = store.as_os_str().to_owned();
    path.push(".lock");
    PathBuf::from(path)
}

impl RunLock {
    /// Takes the lock and writes this process's id into it.
    pub(super) fn take(store: &Path) -> Result<Self, StoreError> {
        let path = lock_path(store);
        let failed = |error: std::io::Error| of_file(&path, "lock", &error);
        // What is written into it must not go to where a link leads.
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
        // Only for the message above; without it the lock holds all the same (a full disk, for one).
        let _ = write!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}

/// Whether the process that wrote its id into the lock last is there. Asks without locking: a lock held for a moment
/// could turn away a run that begins in it.
pub(super) fn is_held_by_one_that_lives(store: &Path) -> bool {
    let Ok(mut file) = File::open(lock_path(store)) else {
        return false;
    };
    let process = |pid: u32| Path::new("/proc").join(pid.to_string());
    holder(&mut file).is_some_and(|pid| process(pid).exists())
}

/// The process id in the file. Not readable on systems where a lock also keeps readers out.
fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(16).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
