//! Who owns a run: a folder for each, with a lock that its owner holds as long as it lives.
//!
//! `<state folder>/runs/<run>/owner.lock` is locked by the process that carries the run out. The system
//! gives the lock back however that process ends, so a run whose lock is free is dead, and what carries
//! its label may be removed. A process id in a file could not tell that: numbers are used again.
//! The lock's file holds a text (`MARK`), written before anything else is put into the folder and removed after
//! all the rest: a folder without it is somebody else's, whatever its name is, and is left alone.
//! A second lock, `<state folder>/runs/.lock`, is held for the moment in which a run is made, looked at or
//! removed, so that nobody takes a run for dead whose lock is just about to be taken.
//! What it cannot see: owners on another machine that shares the folder by a file system without locks.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use tare_model::RunId;

use super::files::{self, FileError};

/// The file that is locked.
const LOCK: &str = "owner.lock";

/// What stands in it.
const MARK: &str =
    "This folder is a run of Tare's. `tare clean` removes it when the run has ended.\n";

/// What Windows says of a part of a file that another handle has locked: `ERROR_LOCK_VIOLATION`.
#[cfg(windows)]
const LOCKED: Option<i32> = Some(33);
/// Elsewhere a locked file can be read.
#[cfg(not(windows))]
const LOCKED: Option<i32> = None;

/// Why a run cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// Another process is carrying it out.
    #[error("the run `{0}` belongs to another process that is still at work")]
    Busy(RunId),
    /// A folder of its name is there that Tare did not make.
    #[error("`{}` holds files and is no folder of Tare's", .0.display())]
    NotTares(PathBuf),
    /// The folder or its lock cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Owns a run until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct Owner {
    state: PathBuf,
    run: RunId,
    folder: PathBuf,
    lock: File,
}

impl Owner {
    /// Makes the run's folder below `state` and takes its lock; also takes over a dead run.
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

    /// Takes over a run whose owner is gone; `None` for one that lives and for what is no run. Makes nothing.
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

    /// The run's folder, for its files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Gives the run up and removes its folder: when everything that carries its label is gone.
    pub fn remove(self) -> Result<(), FileError> {
        let Self {
            state,
            folder,
            lock,
            ..
        } = self;
        let _all = lock_all(&state)?;
        // Windows does not remove a file that is open; the lock of all keeps others away meanwhile.
        drop(lock);
        files::remove_folder_keeping(&folder, Some(LOCK))?;
        let runs = state.join("runs");
        // The last run closes the way that one of them may have opened to another user.
        if files::names(&runs)?.iter().all(|name| name == ".lock") {
            files::let_nobody_through(&runs)?;
            files::let_nobody_through(&state)?;
        }
        Ok(())
    }
}

/// The runs whose owner is gone, in order of their names. Makes nothing.
pub fn dead_runs(state: &Path) -> Result<Vec<RunId>, FileError> {
    let Some(_all) = lock_all_if_any(state)? else {
        return Ok(Vec::new());
    };
    let mut dead = Vec::new();
    for name in files::names(&state.join("runs"))? {
        // What is not named like a run is none of ours.
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

/// The folder of this run's files, whether it is there or not.
pub fn folder(state: &Path, run: &RunId) -> PathBuf {
    state.join("runs").join(run.as_str())
}

/// Lets another user, as whom a part of the run acts, come through a run's folder to what is made for that user
/// there; nothing else can be seen on the way.
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
    wait(file, path)
}

/// The same where there has been a run; `None`, and nothing is made, where there has been none.
fn lock_all_if_any(state: &Path) -> Result<Option<File>, FileError> {
    let path = all(state);
    let file = files::open_file(&path, false)?;
    file.map(|file| wait(file, path)).transpose()
}

fn all(state: &Path) -> PathBuf {
    state.join("runs").join(".lock")
}

fn wait(file: File, path: PathBuf) -> Result<File, FileError> {
    match file.lock() {
        Ok(()) => Ok(file),
        Err(source) => Err(FileError {
            action: "lock",
            path,
            source,
        }),
    }
}

/// The lock's file of a folder that bears the mark; `None` for any other, and where there is none.
fn open_marked(folder: &Path) -> Result<Option<File>, FileError> {
    if !matches!(files::kind(folder), Ok(files::Kind::Folder { .. })) {
        return Ok(None);
    }
    let path = folder.join(LOCK);
    // A link, or another user's file, is not what Tare has put there.
    let Ok(Some(mut file)) = files::open_file(&path, false) else {
        return Ok(None);
    };
    let mut text = Vec::new();
    let read = (&mut file)
        .take(MARK.len() as u64 + 1)
        .read_to_end(&mut text);
    if let Err(source) = read {
        // Where a lock keeps readers away too, only an owner's can be there.
        if LOCKED.is_some() && source.raw_os_error() == LOCKED {
            return Ok(Some(file));
        }
        return Err(FileError {
            action: "read",
            path,
            source,
        });
    }
    Ok((text == MARK.as_bytes()).then_some(file))
}

/// Marks a folder in which there is nothing yet, or at most a mark whose writing was cut short.
fn mark(folder: &Path) -> Result<File, OwnerError> {
    let path = folder.join(LOCK);
    let is_begun = |name: &String| {
        let is_file = matches!(files::kind(&path), Ok(files::Kind::File { .. }));
        let text = || files::head(&path, MARK.len());
        name == LOCK && is_file && text().is_ok_and(|text| MARK.as_bytes().starts_with(&text))
    };
    let is_folder = matches!(files::kind(folder)?, files::Kind::Folder { .. });
    // A name that is no text is somebody else's too.
    let is_empty = || files::every_name(folder).is_ok_and(|names| names.iter().all(is_begun));
    if !is_folder || !is_empty() {
        return Err(OwnerError::NotTares(folder.to_owned()));
    }
    let mut file = files::open_file(&path, true)?.expect("it is made where there is none");
    let written = file.set_len(0).and_then(|()| {
        file.write_all(MARK.as_bytes())?;
        file.sync_all()
    });
    match written {
        Ok(()) => Ok(file),
        Err(source) => Err(OwnerError::File(FileError {
            action: "write",
            path,
            source,
        })),
    }
}

/// The run's lock; `None` while its owner lives.
fn try_lock(folder: &Path, file: File) -> Result<Option<File>, FileError> {
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(FileError {
            action: "lock",
            path: folder.join(LOCK),
            source,
        }),
    }
}

#[cfg(test)]
mod tests;
