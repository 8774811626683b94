//! A folder for a probe that creates and removes names, where little has been removed a moment ago.
//!
//! ext4 without a journal passes over every inode that was removed in an earlier second of the last minutes, a tenth of
//! a microsecond each: creating is slower by a step with each second of the clock, and where others removed thousands
//! of files it is ten or fifty times as slow. Each arm would meet that elsewhere. So the folder is the quickest of some
//! that the file system was asked to put apart from each other, and another is taken in each second of the clock.
//! Known bias: a quiet place is measured, in every arm.
//! What it cannot see: file systems that put folders where they like; there the first stays.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::SystemTime;

use crate::folder::Folder;
use crate::meter::ProbeError;

/// Places to choose from.
const PLACES: usize = 8;

/// Does a little of the probe's work in a folder, leaves nothing there, and says what it took.
pub(crate) type Sample<'a> = dyn FnMut(&Folder) -> Result<f64, ProbeError> + 'a;

/// The folder.
#[derive(Debug)]
pub(crate) struct Quiet {
    // Dropped in this order: the one inside is removed first.
    inside: Folder,
    around: Folder,
    name: &'static str,
    is_apart: bool,
    second: u64,
}

impl Quiet {
    /// Makes one in `parent`, whose name begins with `name`.
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

    /// Where it is now.
    pub(crate) fn folder(&self) -> &Folder {
        &self.inside
    }

    /// Goes elsewhere when the clock has come to another second; says whether it did. What the probe left in the old
    /// place goes with it.
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

/// Of the clock by which the kernel dates a removal.
fn second() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Asks the file system to put the folders in this one where little else is, which ext2 and its successors do for
/// what stands at the top. The others refuse; says whether it was taken.
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

/// Of some new folders the one in which the sample is quickest, not counting its first time.
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
    fn the_quickest_place_is_the_only_one_that_stays_until_the_clock_is_in_another_second() {
        let left = |around: &Folder| -> Vec<_> {
            let entries = std::fs::read_dir(around.path()).unwrap();
            entries.map(|entry| entry.unwrap().path()).collect()
        };
        // The fifth place is quick, and then the third.
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
