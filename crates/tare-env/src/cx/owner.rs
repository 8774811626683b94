//! Tracks who owns a run: each run has a folder with a lock that its owner holds as long as it lives.
//!
//! `<state folder>/runs/<run>/owner.lock` is locked by the process that carries out the run. The system releases the
//! lock however that process ends, so a run whose lock is free is dead, and everything with its label may be removed.
//! A process id in a file would not do: ids are reused.
//! The lock file holds a text (`MARK`), written before anything else is put into the folder and removed after all the
//! rest: a folder without it is not Tare's, whatever its name is, and is left alone.
//! A second lock, `<state folder>/runs/.lock`, is held while a run is created, examined or removed, so that a run
//! whose lock is about to be taken is not mistaken for dead.
//! Limits: owners on another machine are not seen if the shared file system has no locks.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use tare_model::RunId;

use super::files::{self, FileError};

/// Name of the lock file.
const LOCK: &str = "owner.lock";

/// Contents of the lock file.
const MARK: &str =
    "This folder is a run of Tare's. `tare clean` removes it when the run has ended.\n";

/// Windows's error when reading a range that another handle has locked: `ERROR_LOCK_VIOLATION`.
#[cfg(windows)]
const LOCKED: Option<i32> = Some(33);
/// On other systems a locked file can be read.
#[cfg(not(windows))]
const LOCKED: Option<i32> = None;

/// Why a run cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// Another process carries it out.
    #[error("the run `{0}` belongs to another process that is still at work")]
    Busy(RunId),
    /// A folder of its name exists that Tare did not create.
    #[error("`{}` holds files and is no folder of Tare's", .0.display())]
    NotTares(PathBuf),
    /// The folder or its lock cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Owns a run until it is dropped or the process ends, however that happens.
#[derive(Debug)]
pub struct Owner {
    state: PathBuf,
    run: RunId,
    folder: PathBuf,
    lock: File,
}

impl Owner {
    /// Creates the run's folder below `state` and takes its lock; also takes over a dead run.
    pub fn acquire(state: &Path, run: &RunId) -> Result<Self, OwnerError> {
        let _all = lock_all(state)?;
        let folder = folder(state, run);
        files::create_folder(&folder)?;
        let lock = match open_marked(&folder)? {
            Some(file) => file,
            None => mark(&folder)?,
        };
        match try_lock(&folder, lock)? {
            Some(lock) => Ok(Self::new(state, run, folder, lock)),
            None => Err(OwnerError::Busy(run.clone())),
        }
    }

    /// Takes over a run whose owner is gone; `None` if the owner lives or if it is no run. Creates nothing.
    pub fn take_dead(state: &Path, run: &RunId) -> Result<Option<Self>, FileError> {
        let Some(_all) = lock_all_if_any(state)? else {
            return Ok(None);
        };
        let folder = folder(state, run);
        let lock = open_marked(&folder)?.map(|file| try_lock(&folder, file));
        let lock = lock.transpose()?.flatten();
        Ok(lock.map(|lock| Self::new(state, run, folder, lock)))
    }

    fn new(state: &Path, run: &RunId, folder: PathBuf, lock: File) -> Self {
        Self {
            state: state.to_owned(),
            run: run.clone(),
            folder,
            lock,
        }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// The state folder.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The run's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the run's folder and its lock. Call it when everything with the run's label is gone.
    pub fn remove(self) -> Result<(), FileError> {
        let Self {
            state,
            folder,
            lock,
            ..
        } = self;
        let _all = lock_all(&state)?;
        // Windows cannot remove an open file; the lock of all runs keeps others away meanwhile.
        drop(lock);
        files::remove_folder_keeping(&folder, Some(LOCK))?;
        let runs = state.join("runs");
        // The last run closes the folders that one of them may have opened to another user.
        if files::names(&runs)?.iter().all(|name| name == ".lock") {
            files::close_to_others(&runs)?;
            files::close_to_others(&state)?;
        }
        Ok(())
    }
}

/// The runs whose owner is gone, sorted by name. Creates nothing.
pub fn dead_runs(state: &Path) -> Result<Vec<RunId>, FileError> {
    let Some(_all) = lock_all_if_any(state)? else {
        return Ok(Vec::new());
    };
    let mut dead = Vec::new();
    for name in files::names(&state.join("runs"))? {
        // A name that is no run id is not Tare's.
        let Ok(run) = RunId::new(name) else { continue };
        let folder = folder(state, &run);
        let Some(file) = open_marked(&folder)? else {
            continue;
        };
        if try_lock(&folder, file)?.is_some() {
            dead.push(run);
        }
    }
    dead.sort();
    Ok(dead)
}

/// The folder of this run's files, which may not exist.
pub fn folder(state: &Path, run: &RunId) -> PathBuf {
    state.join("runs").join(run.as_str())
}

/// Lets the user that a part of the run acts as traverse the run's folder to files made for that user; nothing else
/// on the path becomes visible.
pub fn let_through(folder: &Path) -> Result<(), FileError> {
    let way = folder.ancestors().take(3);
    way.filter(|folder| !folder.as_os_str().is_empty())
        .try_for_each(files::let_through)
}

/// Waits for the lock of all runs.
fn lock_all(state: &Path) -> Result<File, FileError> {
    files::create_folder(&state.join("runs"))?;
    let path = all(state);
    let file = files::open_file(&path, true)?.expect("it is made where there is none");
    wait(file, &path)
}

/// The same without creating anything; `None` if there has been no run yet.
fn lock_all_if_any(state: &Path) -> Result<Option<File>, FileError> {
    let path = all(state);
    let file = files::open_file(&path, false)?;
    file.map(|file| wait(file, &path)).transpose()
}

fn all(state: &Path) -> PathBuf {
    state.join("runs").join(".lock")
}

fn wait(file: File, path: &Path) -> Result<File, FileError> {
    file.lock().map_err(files::error("lock", path))?;
    Ok(file)
}

/// Opens the lock file of a folder that has the mark; `None` for any other or missing one.
fn open_marked(folder: &Path) -> Result<Option<File>, FileError> {
    if !matches!(files::kind(folder), Ok(files::Kind::Folder { .. })) {
        return Ok(None);
    }
    let path = folder.join(LOCK);
    // A link, or another user's file, was not put there by Tare.
    let Ok(Some(mut file)) = files::open_file(&path, false) else {
        return Ok(None);
    };
    let mut text = Vec::new();
    let read = (&mut file)
        .take(MARK.len() as u64 + 1)
        .read_to_end(&mut text);
    if let Err(source) = read {
        // Where a lock blocks readers too, only an owner can hold it.
        if LOCKED.is_some() && source.raw_os_error() == LOCKED {
            return Ok(Some(file));
        }
        return Err(files::error("read", &path)(source));
    }
    Ok((text == MARK.as_bytes()).then_some(file))
}

/// Marks a folder that is empty, or that holds only an incomplete mark.
fn mark(folder: &Path) -> Result<File, OwnerError> {
    let path = folder.join(LOCK);
    let is_begun = |name: &String| {
        let is_file = matches!(files::kind(&path), Ok(files::Kind::File { .. }));
        let text = || files::head(&path, MARK.len());
        name == LOCK && is_file && text().is_ok_and(|text| MARK.as_bytes().starts_with(&text))
    };
    let is_folder = matches!(files::kind(folder)?, files::Kind::Folder { .. });
    // A name that is not UTF-8 is not Tare's either.
    let is_empty = || files::every_name(folder).is_ok_and(|names| names.iter().all(is_begun));
    if !is_folder || !is_empty() {
        return Err(OwnerError::NotTares(folder.to_owned()));
    }
    let mut file = files::open_file(&path, true)?.expect("it is made where there is none");
    let written = file.set_len(0).and_then(|()| {
        file.write_all(MARK.as_bytes())?;
        file.sync_all()
    });
    written.map_err(files::error("write", &path))?;
    Ok(file)
}

/// Takes the run's lock; `None` while its owner lives.
fn try_lock(folder: &Path, file: File) -> Result<Option<File>, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(files::error("lock", &folder.join(LOCK))(source)),
    }
}

#[cfg(test)]
mod tests;
