//! A program file on disk that is started only if it is unchanged since it was written.
//!
//! A sealed file in memory takes longer to execute, so one arm starts its agent from a file, which any process of the
//! same user could replace. The written file is held open and started through its descriptor, never by its name.
//! Before each start its ctime and length are compared: a write and the loss of its name change the ctime, which only
//! the kernel sets. Reading the whole file each time would count as start time.
//! Limits: does not detect changes of the clock by root, or a write between the check and the start.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::files::{self, FileError};

/// One file. It can be started as long as this value lives.
#[derive(Debug)]
pub struct Pinned {
    file: File,
    named: PathBuf,
    written: Stamp,
}

/// Changes with every change of a file: its length, and its ctime in seconds and nanoseconds.
type Stamp = (u64, i64, i64);

impl Pinned {
    /// Writes a program that only its owner may execute, replacing any existing file.
    ///
    /// # Errors
    /// It cannot be written or examined.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        files::remove(path)?;
        files::write_own_program(path, bytes)?;
        let held = File::open(path).and_then(|file| Ok((stamp(&file)?, file)));
        let (written, file) = held.map_err(files::error("look at", path))?;
        Ok(Self {
            file,
            named: path.to_owned(),
            written,
        })
    }

    /// The path to start it from.
    ///
    /// # Errors
    /// The file has changed since it was written.
    pub fn program(&self) -> io::Result<PathBuf> {
        if stamp(&self.file)? != self.written {
            return Err(io::Error::other(format!(
                "`{}` is not what was written into it: something that runs as the same user has changed it",
                self.named.display()
            )));
        }
        Ok(self.path())
    }

    /// This process's file descriptor of it, valid for this process and its children.
    #[cfg(target_os = "linux")]
    fn path(&self) -> PathBuf {
        use std::os::fd::AsRawFd as _;
        let path = format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        PathBuf::from(path)
    }

    /// On other systems a descriptor cannot be executed.
    #[cfg(not(target_os = "linux"))]
    fn path(&self) -> PathBuf {
        self.named.clone()
    }
}

#[cfg(unix)]
fn stamp(file: &File) -> io::Result<Stamp> {
    use std::os::unix::fs::MetadataExt as _;
    let found = file.metadata()?;
    Ok((found.len(), found.ctime(), found.ctime_nsec()))
}

/// Where a running program cannot be written to, its length suffices.
#[cfg(not(unix))]
fn stamp(file: &File) -> io::Result<Stamp> {
    Ok((file.metadata()?.len(), 0, 0))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn another_file_of_the_name_is_not_started() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let pinned = Pinned::write(&path, &std::fs::read("/bin/true").unwrap()).unwrap();
        std::fs::copy("/bin/false", folder.path().join("other")).unwrap();
        std::fs::rename(folder.path().join("other"), &path).unwrap();
        // Losing its name changes its ctime too: neither this file nor the other is started.
        assert!(pinned.program().is_err());
    }

    #[test]
    fn a_changed_file_is_refused_and_one_as_written_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        let pinned = Pinned::write(&path, &std::fs::read("/bin/true").unwrap()).unwrap();
        let status = Command::new(pinned.program().unwrap()).status().unwrap();
        assert!(status.success());
        let mut tries = 0;
        // Two changes within one tick of the kernel's clock have the same ctime; wait for the next tick.
        while pinned.program().is_ok() {
            use std::os::unix::fs::FileExt as _;
            tries += 1;
            assert!(tries < 1_000_000, "it was changed unseen");
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(b"#!/bin/false", 0).unwrap();
        }
        let error = pinned.program().unwrap_err().to_string();
        assert!(error.contains("same user"), "{error}");
    }
}
