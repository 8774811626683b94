//! Chooses a folder for a probe that creates and removes names, with few recently removed inodes nearby.
//!
//! ext4 without a journal skips every inode that was removed in an earlier second of the last minutes, a tenth of a
//! microsecond each: creating gets slower by a step with each second of the clock, and ten or fifty times slower
//! where other programs removed thousands of files. Each arm would meet this in a different folder. So the folder is
//! the fastest of several that the file system was asked to place apart from each other, and a new one is chosen in
//! each second of the clock.
//! Known bias: every arm measures a quiet location.
//! Limits: on a file system that ignores the request to place folders apart, the first folder stays.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::SystemTime;

use crate::folder::Folder;
use crate::meter::ProbeError;

/// Candidate folders.
const PLACES: usize = 8;

/// Does a little of the probe's work in a folder, leaves nothing there, and returns the time.
pub(crate) type Sample<'a> = dyn FnMut(&Folder) -> Result<f64, ProbeError> + 'a;

/// The quiet folder.
#[derive(Debug)]
pub(crate) struct Quiet {
    // Fields are dropped in order: the inner folder is removed first.
    inside: Folder,
    around: Folder,
    name: &'static str,
    is_apart: bool,
    second: u64,
}

impl Quiet {
    /// Creates a quiet folder in `parent`, whose name begins with `name`.
    pub(crate) fn new(
        parent: &Path,
        name: &'static str,
        sample: &mut Sample<'_>,
    ) -> Result<Self, ProbeError> {
        let around = Folder::new(parent, name)?;
        let is_apart = put_apart(around.handle());
        Ok(Self {
            second: second(),
            inside: quickest(&around, name, sample)?,
            around,
            name,
            is_apart,
        })
    }

    /// Returns the current folder.
    pub(crate) fn folder(&self) -> &Folder {
        &self.inside
    }

    /// Moves to a new folder when the clock's second has changed; returns whether it did. Removes the probe's files
    /// in the old folder.
    pub(crate) fn moved(&mut self, sample: &mut Sample<'_>) -> Result<bool, ProbeError> {
        let second = second();
        if !self.is_apart || second == self.second {
            return Ok(false);
        }
        self.inside = quickest(&self.around, self.name, sample)?;
        self.second = second;
        Ok(true)
    }
}

/// Returns the second of the clock with which the kernel dates a removal.
fn second() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Asks the file system to place the subfolders of this one where little else is, which ext2 and its successors do
/// for top-level folders. Returns whether it accepted; other file systems refuse.
fn put_apart(folder: &File) -> bool {
    /// `FS_TOPDIR_FL` of linux/fs.h.
    const AT_THE_TOP: libc::c_int = 0x0002_0000;
    let mut flags: libc::c_int = 0;
    // SAFETY: the folder is open, and the kernel writes one `int` (ioctl_iflags(2)) to a live one.
    if unsafe { libc::ioctl(folder.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) } != 0 {
        return false;
    }
    flags |= AT_THE_TOP;
    // SAFETY: the same, and the kernel reads the `int`.
    unsafe { libc::ioctl(folder.as_raw_fd(), libc::FS_IOC_SETFLAGS, &raw const flags) == 0 }
}

/// Creates new folders and returns the one with the fastest sample, not counting each first sample.
fn quickest(
    around: &Folder,
    name: &'static str,
    sample: &mut Sample<'_>,
) -> Result<Folder, ProbeError> {
    let mut best: Option<(f64, Folder)> = None;
    for _ in 0..PLACES {
        let folder = Folder::new(around.path(), name)?;
        sample(&folder)?;
        let took = sample(&folder)?.min(sample(&folder)?);
        if best.as_ref().is_none_or(|(least, _)| took < *least) {
            best = Some((took, folder));
        }
    }
    let best = best.map(|(_, folder)| folder);
    Ok(best.expect("there are places"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_keeps_only_fastest_folder_until_next_second() {
        let left = |around: &Folder| -> Vec<_> {
            let entries = std::fs::read_dir(around.path()).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        // The fifth candidate is fast, and in the second round the third.
        let mut count = 0;
        let mut sample = |_: &Folder| {
            count += 1;
            Ok(if count == 14 || count == 24 + 8 {
                1.0
            } else {
                2.0
            })
        };
        let mut quiet = Quiet::new(&std::env::temp_dir(), "tare-quiet-test", &mut sample).unwrap();
        let first = quiet.folder().path().to_owned();
        assert_eq!(left(&quiet.around), std::slice::from_ref(&first));
        quiet.second = u64::MAX;
        quiet.is_apart = false;
        assert!(!quiet.moved(&mut sample).unwrap());
        quiet.is_apart = true;
        assert!(quiet.moved(&mut sample).unwrap());
        let second = quiet.folder().path().to_owned();
        assert_ne!(first, second);
        assert_eq!(left(&quiet.around), [second]);
        assert_eq!(count, 48);
        let around = quiet.around.path().to_owned();
        drop(quiet);
        assert!(!around.exists());
    }
}
