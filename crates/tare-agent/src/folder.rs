//! A fresh directory for a probe's files, removed with its contents when it is dropped.
//!
//! Its name begins with `tare-` and holds the process id, so that `tare clean` recognises a killed worker's
//! leftovers. A directory with a mount in it is left alone, because the mounted files belong to someone else.
//! Limits: misses files that a probe makes outside it, and mounts on systems without `/proc`.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use tare_model::Reason;

use crate::meter::ProbeError;

/// The directory; on Unix it is held open.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

impl Folder {
    /// Makes a directory in `parent` whose name begins with `name`. A parent that is read-only or not writable for
    /// this user makes the probe unavailable; everything else is a failure.
    pub fn new(parent: &Path, name: &str) -> Result<Self, ProbeError> {
        // A process may have several at once (in tests).
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // So may equal pids, in environments that share this directory but not their PID namespace.
        let now_ns = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| now.as_nanos());
        let path = parent.join(format!("{name}-{}-{count}-{now_ns}", std::process::id()));
        std::fs::create_dir(&path).map_err(|error| match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                ProbeError::Unavailable(Reason::NeedsPrivilege(format!(
                    "a writable directory: {}: {error}",
                    parent.display().to_string().escape_default()
                )))
            }
            _ => ProbeError::system("mkdir", &error),
        })?;
        #[cfg(not(unix))]
        return Ok(Self { path });
        #[cfg(unix)]
        match File::open(&path) {
            Ok(handle) => Ok(Self { path, handle }),
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                Err(ProbeError::system("open", &error))
            }
        }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open directory.
    #[cfg(unix)]
    pub fn handle(&self) -> &File {
        &self.handle
    }
}

/// Makes a directory the process's current one, which Windows holds open: relative names are looked up there, as they
/// are in an open directory on Unix. Dropping it restores the previous one, because a directory that some process is
/// in cannot be removed.
#[cfg(windows)]
#[derive(Debug)]
pub(crate) struct Entered {
    before: PathBuf,
}

#[cfg(windows)]
impl Entered {
    /// Enters a directory. Only for a worker, which does nothing but its probe.
    pub(crate) fn new(folder: &Folder) -> Result<Self, ProbeError> {
        let before = std::env::current_dir();
        let before = before.map_err(|error| ProbeError::system("GetCurrentDirectory", &error))?;
        std::env::set_current_dir(folder.path())
            .map_err(|error| ProbeError::system("SetCurrentDirectory", &error))?;
        Ok(Self { before })
    }
}

#[cfg(windows)]
impl Drop for Entered {
    fn drop(&mut self) {
        // If the previous directory is gone, the folder stays behind under its recognisable name.
        let _ = std::env::set_current_dir(&self.before);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // There is nowhere to report an error; `tare clean` recognises the leftovers by their name.
        let _ = remove(&self.path);
    }
}

/// Removes a directory with its contents, or nothing at all if something is mounted in it.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        let own = path.canonicalize()?;
        let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
        let mounts = String::from_utf8_lossy(&mounts);
        if tare_model::mountinfo::Mount::within(&own, &mounts).is_some() {
            return Err(io::Error::other("something is mounted in it"));
        }
    }
    std::fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_with_everything_in_it() {
        let folder = Folder::new(&std::env::temp_dir(), "tare-folder-test").unwrap();
        let path = folder.path().to_owned();
        std::fs::create_dir_all(path.join("a/b")).unwrap();
        std::fs::write(path.join("a/b/c"), b"x").unwrap();
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn a_parent_that_does_not_exist_is_a_failure() {
        let error = Folder::new(Path::new("/nowhere/at/all"), "tare-x").unwrap_err();
        assert!(matches!(error, ProbeError::Failed(_)), "{error:?}");
    }
}
