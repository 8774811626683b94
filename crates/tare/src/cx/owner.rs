//! Who owns a run: a folder for each, with a lock that its owner holds as long as it lives.
//!
//! `<state folder>/runs/<run>/owner.lock` is locked by the process that carries the run out. The system
//! gives the lock back however that process ends, so a run whose lock is free is dead, and what carries
//! its label may be removed. A process id in a file could not tell that: numbers are used again.
//! A second lock, `<state folder>/runs/.lock`, is held for the moment in which a run is made, looked at or
//! removed, so that nobody takes a run for dead whose lock is just about to be taken.
//! What it cannot see: owners on another machine that shares the folder by a file system without locks.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use tare_model::RunId;

use super::files::{self, FileError};
use super::vars;

/// Why a run cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum OwnerError {
    /// Another process is carrying it out.
    #[error("the run `{0}` belongs to another process that is still at work")]
    Busy(RunId),
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
        match try_lock(&folder)? {
            Some(lock) => Ok(Self {
                state: state.to_owned(),
                run: run.clone(),
                folder,
                lock,
            }),
            None => Err(OwnerError::Busy(run.clone())),
        }
    }

    /// The run.
    pub fn run(&self) -> &RunId {
        &self.run
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
        files::remove_folder(&folder)
    }
}

/// The runs whose remains a sweep removes: the one that is named, or, for `None`, every one whose owner is gone.
pub fn to_sweep(run: Option<&str>) -> Result<Vec<String>, FileError> {
    match (run, vars::state_folder()) {
        (Some(run), _) => Ok(vec![run.to_owned()]),
        (None, Some(state)) => Ok(dead_runs(&state)?.into_iter().map(String::from).collect()),
        (None, None) => Ok(Vec::new()),
    }
}

/// The runs whose owner is gone, in order of their names.
pub fn dead_runs(state: &Path) -> Result<Vec<RunId>, FileError> {
    let runs = state.join("runs");
    if !runs.is_dir() {
        return Ok(Vec::new());
    }
    let _all = lock_all(state)?;
    let mut dead = Vec::new();
    for name in files::names(&runs)? {
        // What is not named like a run is none of ours.
        let Ok(run) = RunId::new(name) else { continue };
        let folder = folder(state, &run);
        if folder.is_dir() && try_lock(&folder)?.is_some() {
            dead.push(run);
        }
    }
    dead.sort();
    Ok(dead)
}

/// Removes the folder of a dead run; `false` if it is not dead.
pub fn remove_dead(state: &Path, run: &RunId) -> Result<bool, FileError> {
    let _all = lock_all(state)?;
    let folder = folder(state, run);
    if try_lock(&folder)?.is_none() {
        return Ok(false);
    }
    files::remove_folder(&folder)?;
    Ok(true)
}

/// The folder of this run's files, whether it is there or not.
pub fn folder(state: &Path, run: &RunId) -> PathBuf {
    state.join("runs").join(run.as_str())
}

/// Waits for the lock of all runs.
fn lock_all(state: &Path) -> Result<File, FileError> {
    let runs = state.join("runs");
    files::create_folder(&runs)?;
    let path = runs.join(".lock");
    let file = files::open_lock(&path)?;
    file.lock().map_err(|source| FileError {
        action: "lock",
        path,
        source,
    })?;
    Ok(file)
}

/// The run's lock; `None` while its owner lives.
fn try_lock(folder: &Path) -> Result<Option<File>, FileError> {
    let path = folder.join("owner.lock");
    let file = files::open_lock(&path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(FileError {
            action: "lock",
            path,
            source,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str) -> RunId {
        RunId::new(name).unwrap()
    }

    #[test]
    fn a_run_is_alive_while_its_owner_lives_and_dead_afterwards() {
        let state = tempfile::tempdir().unwrap();
        let owner = Owner::acquire(state.path(), &run("a")).unwrap();
        assert!(dead_runs(state.path()).unwrap().is_empty());
        assert!(!remove_dead(state.path(), &run("a")).unwrap());
        assert!(matches!(
            Owner::acquire(state.path(), &run("a")),
            Err(OwnerError::Busy(_))
        ));
        drop(owner);
        assert_eq!(dead_runs(state.path()).unwrap(), [run("a")]);
        let again = Owner::acquire(state.path(), &run("a")).unwrap();
        drop(again);
        assert!(remove_dead(state.path(), &run("a")).unwrap());
        assert!(dead_runs(state.path()).unwrap().is_empty());
    }

    #[test]
    fn the_owner_removes_its_folder_with_all_that_is_in_it() {
        let state = tempfile::tempdir().unwrap();
        let owner = Owner::acquire(state.path(), &run("b")).unwrap();
        files::write(&owner.folder().join("file"), b"x").unwrap();
        let folder = owner.folder().to_owned();
        owner.remove().unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn without_a_state_folder_there_is_no_dead_run_and_none_is_made() {
        let state = tempfile::tempdir().unwrap();
        assert!(dead_runs(state.path()).unwrap().is_empty());
        assert!(!state.path().join("runs").exists());
    }
}
