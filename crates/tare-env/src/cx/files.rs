//! Files and folders, with the path in every error.
//!
//! What Tare keeps for itself is its user's alone ([`create_folder`], [`write()`]); what a user asked for by name is
//! made with the permissions that the user's own files have ([`create_output_folder`], [`write_output`]).

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tare_model::mountinfo::Mount;

mod devices;
#[cfg(unix)]
mod own;
#[cfg(not(unix))]
mod own_elsewhere;
mod plain;
mod taken;
mod talking;
#[cfg(unix)]
mod tree;
mod unpacked;

pub use devices::is_disk;
#[cfg(not(unix))]
use own_elsewhere as own;

pub use own::{
    NotOwn, check_folder, create_folder, let_nobody_through, let_read, let_through, open_anybodys,
    open_file, own_uid,
};
pub use plain::{head, length, read_plain};
pub use taken::taken_bytes;
pub use talking::{Talking, talking_below, talks};
pub use unpacked::unpack;

/// What could not be done with which path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {source}", path.display())]
pub struct FileError {
    /// The action, as a verb.
    pub action: &'static str,
    /// The path.
    pub path: PathBuf,
    /// The system's reason.
    pub source: io::Error,
}

/// The system's error for a device that does not read or write, the same on every Unix (`EIO`).
#[cfg(unix)]
const DEVICE_FAILED: Option<i32> = Some(5);
/// The same of Windows (`ERROR_IO_DEVICE`).
#[cfg(not(unix))]
const DEVICE_FAILED: Option<i32> = Some(1117);

impl FileError {
    /// What to do, where the disk is at fault.
    pub fn advice(&self) -> Option<&'static str> {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Some("free some space there, or set TARE_HOME to a folder on another disk")
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                Some("set TARE_HOME to a folder on a disk that can be written to")
            }
            _ if self.source.raw_os_error() == DEVICE_FAILED => Some(
                "the disk itself fails, see the kernel's log (`dmesg`); set TARE_HOME to a folder on another one",
            ),
            _ => None,
        }
    }
}

pub(super) fn error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FileError {
    let path = path.to_owned();
    move |source| FileError {
        action,
        path,
        source,
    }
}

/// Reads a whole file as text.
pub fn read_text(path: &Path) -> Result<String, FileError> {
    let mut text = String::new();
    let read = std::fs::File::open(path).and_then(|file| {
        let n_read = file.take(TEXT_LIMIT + 1).read_to_string(&mut text)?;
        if n_read as u64 > TEXT_LIMIT {
            return Err(io::Error::other("it is longer than 16 MiB"));
        }
        Ok(())
    });
    read.map_err(error("read", path))?;
    Ok(text)
}

/// The longest text that is read: a thousand times what studies and settings have. `/dev/zero` has no end.
const TEXT_LIMIT: u64 = 16 << 20;

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(error("read", path))
}

/// Writes a whole file that nobody else may read: no reader sees half of it, and when this returns not even a power
/// cut can take it. What is no plain file, such as `/dev/null` or a named pipe, is written to as it is: a rename
/// would replace it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, 0o600)
}

/// The same for a file that the user has named: with the permissions that the user's files have.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace(path, bytes, 0o666)
}

/// Writes a file that is of no use to anybody after a crash; nobody else may read it.
pub fn write_working(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    // What was there may be open to others, or a link.
    remove(path)?;
    create(path, 0o600)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(error("write", path))
}

/// The same, piece by piece: whoever reads it finds the whole file or the one before.
pub fn write_working_with(
    path: &Path,
    write: impl FnOnce(&mut std::fs::File) -> io::Result<()>,
) -> Result<(), FileError> {
    let neighbour = neighbour(path);
    remove(&neighbour)?;
    let written = create(&neighbour, 0o600)
        .and_then(|mut file| write(&mut file))
        .and_then(|()| std::fs::rename(&neighbour, path));
    written.map_err(|reason| {
        let _ = std::fs::remove_file(&neighbour);
        error("write", path)(reason)
    })
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), FileError> {
    if is_special(path) {
        return std::fs::write(path, bytes).map_err(error("write", path));
    }
    let neighbour = neighbour(path);
    // An earlier one is half of a file, or was put there by somebody else.
    remove(&neighbour)?;
    let written = create(&neighbour, mode)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        })
        .and_then(|()| std::fs::rename(&neighbour, path))
        .and_then(|()| sync_folder(path));
    written.map_err(|reason| {
        // Half of a file is of no use to anybody.
        let _ = std::fs::remove_file(&neighbour);
        error("write", path)(reason)
    })
}

/// Makes a file that is not there; never follows a link.
fn create(path: &Path, mode: u32) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Makes the names in the folder of this path last. Only Unix can; elsewhere a rename is logged by itself.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = std::fs::File::open(parent.unwrap_or(Path::new(".")))?;
        match folder.sync_all() {
            // Some file systems have nothing to sync in a folder.
            Err(reason) if reason.kind() == io::ErrorKind::InvalidInput => {}
            other => other?,
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Finds out whether [`write_output`] would be allowed to write this file, and leaves what is there as it is.
pub fn may_write(path: &Path) -> Result<(), FileError> {
    if path.is_dir() {
        return Err(error("write", path)(io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        // Opening a pipe would wait for its reader.
        return Ok(());
    }
    let neighbour = neighbour(path);
    remove(&neighbour)?;
    create(&neighbour, 0o600)
        .and_then(|_| std::fs::remove_file(&neighbour))
        .map_err(error("write", path))
}

fn neighbour(path: &Path) -> PathBuf {
    let mut neighbour = path.as_os_str().to_owned();
    neighbour.push(".part");
    PathBuf::from(neighbour)
}

/// Whether something is there that is no plain file.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

/// Writes a file that everybody may execute who can reach it.
pub fn write_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_working(path, bytes)?;
    set_mode(path, 0o755)
}

/// Writes a file that its owner alone may execute.
pub fn write_own_program(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    write_working(path, bytes)?;
    set_mode(path, 0o700)
}

/// Makes a folder that the user has named, and those above it.
pub fn create_output_folder(path: &Path) -> Result<(), FileError> {
    std::fs::create_dir_all(path).map_err(error("create the folder", path))
}

/// Removes a file; fine if it is not there.
pub fn remove(path: &Path) -> Result<(), FileError> {
    match std::fs::remove_file(path) {
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(error("remove", path)),
    }
}

/// Lets every user make files in a folder and nobody remove those of others, as in `/tmp`.
pub fn open_to_all(path: &Path) -> Result<(), FileError> {
    set_mode(path, 0o1777)
}

/// Lets every user look into a folder, as into the root.
pub fn show_to_all(path: &Path) -> Result<(), FileError> {
    set_mode(path, 0o755)
}

fn set_mode(path: &Path, mode: u32) -> Result<(), FileError> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(error("set the permissions of", path))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

/// Makes another user the owner of a file or folder; for root alone.
pub fn give_away(path: &Path, uid: u32, gid: u32) -> Result<(), FileError> {
    #[cfg(unix)]
    return std::os::unix::fs::chown(path, Some(uid), Some(gid)).map_err(error("give away", path));
    #[cfg(not(unix))]
    {
        let _ = (uid, gid);
        Err(error("give away", path)(io::Error::from(
            io::ErrorKind::Unsupported,
        )))
    }
}

/// Removes a folder with all that is in it; fine if it is not there. Never follows a link out of it, and stops at
/// whatever is mounted in it.
pub fn remove_folder(path: &Path) -> Result<(), FileError> {
    remove_folder_keeping(path, None)
}

/// The same; what bears the name `last` directly in it goes when all the rest is gone.
pub fn remove_folder_keeping(path: &Path, last: Option<&str>) -> Result<(), FileError> {
    #[cfg(unix)]
    let removed = tree::remove(path, last);
    #[cfg(not(unix))]
    let removed = {
        let _ = last;
        std::fs::remove_dir_all(path).map_err(|reason| (path.to_owned(), reason))
    };
    match removed {
        Err((_, reason)) if reason.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(|(path, reason)| error("remove", &path)(reason)),
    }
}

/// Where something is mounted on this folder or in it, if anything is.
pub fn mounted_in(folder: &Path) -> Option<String> {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Mount::within(&folder, &mounts()).map(|mount| mount.point)
}

/// Whether something is mounted in this folder, deeper than on it itself.
pub fn has_mounts_below(folder: &Path) -> bool {
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    Mount::all(&mounts()).any(|mount| mount.is_below(&folder))
}

/// Whether something is mounted on this very path, which has no links.
pub fn is_mounted(path: &Path) -> bool {
    Mount::all(&mounts()).any(|mount| Path::new(&mount.point) == path)
}

/// The table of mounts. A mount point may have any letters.
pub fn mounts() -> String {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&mounts).into_owned()
}

/// What a path is, without following a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder {
        /// Permission bits; 0o755 where the system has none.
        mode: u32,
    },
    /// A regular file.
    File {
        /// Permission bits; 0o755 where the system has none.
        mode: u32,
        /// Length in bytes.
        length: u64,
    },
    /// A symbolic link.
    Link {
        /// Where it leads, as it is written.
        target: PathBuf,
    },
    /// A device, a pipe, a socket.
    Other,
}

/// What a path is, without following a link.
pub fn kind(path: &Path) -> Result<Kind, FileError> {
    let found = std::fs::symlink_metadata(path).map_err(error("look at", path))?;
    #[cfg(unix)]
    let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o7777;
    #[cfg(not(unix))]
    let mode = 0o755;
    Ok(if found.is_symlink() {
        let target = std::fs::read_link(path).map_err(error("read the link", path))?;
        Kind::Link { target }
    } else if found.is_dir() {
        Kind::Folder { mode }
    } else if found.is_file() {
        Kind::File {
            mode,
            length: found.len(),
        }
    } else {
        Kind::Other
    })
}

/// The same place by a path without links; fails where there is nothing.
pub fn canonical(path: &Path) -> Result<PathBuf, FileError> {
    std::fs::canonicalize(path).map_err(error("find", path))
}

/// The program that a shell in `directory` would start for `name`: where the name is no path itself, in the first
/// of the folders of a search path that has it.
pub fn program(name: &str, folders: &str, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(folders)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| directory.join(folder).join(name))
        .find(|path| is_program(path))
}

/// Whether something is there that its user may execute.
pub fn is_program(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else {
        return false;
    };
    #[cfg(unix)]
    let may_run = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let may_run = true;
    found.is_file() && may_run
}

/// Whether a file, or the folder that it is to be in, lies where other machines may write too: on a network file
/// system, as Linux numbers them (statfs(2)). Not known elsewhere.
pub fn is_of_other_machines(path: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        let found = rustix::fs::statfs(path)
            .or_else(|_| rustix::fs::statfs(path.parent().unwrap_or(Path::new("."))));
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the kernel's numbers have 32 bits; some of its structures hold more"
        )]
        found.is_ok_and(|found| is_network(found.f_type as u32))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = path;
        false
    }
}

/// NFS, SMB (three clients), Ceph, AFS (two), Coda, Lustre, GPFS, OCFS2, GFS2.
#[cfg(target_os = "linux")]
fn is_network(kind: u32) -> bool {
    matches!(
        kind,
        0x6969
            | 0x517b
            | 0xff53_4d42
            | 0xfe53_4d42
            | 0x00c3_6400
            | 0x5346_414f
            | 0x6b41_4653
            | 0x7375_7245
            | 0x0bd0_0bd0
            | 0x4750_4653
            | 0x7461_636f
            | 0x0116_1970
    )
}

/// The names of what is in a folder; a name that is not UTF-8 is left out, for Tare makes none.
pub fn names(path: &Path) -> Result<Vec<String>, FileError> {
    let names = listed(path)?.into_iter();
    Ok(names.filter_map(|name| name.into_string().ok()).collect())
}

/// The names of all that is in a folder; one that is not UTF-8 is an error.
pub fn every_name(path: &Path) -> Result<Vec<String>, FileError> {
    let names = listed(path)?.into_iter().map(OsString::into_string);
    let odd = |_| error("name all that is in", path)(io::ErrorKind::InvalidFilename.into());
    names.collect::<Result<_, _>>().map_err(odd)
}

fn listed(path: &Path) -> Result<Vec<OsString>, FileError> {
    let entries = std::fs::read_dir(path).map_err(error("list", path))?;
    entries
        .map(|entry| Ok(entry.map_err(error("list", path))?.file_name()))
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_share_of_the_network_is_told_from_a_disk() {
        assert!(is_network(0x6969));
        assert!(!is_network(0xef53), "ext4");
        assert!(!is_of_other_machines(Path::new("/proc/version")));
    }

    #[test]
    fn a_disk_that_is_full_read_only_or_broken_comes_with_what_to_do_and_nothing_else_does() {
        let advice = |number: i32| {
            FileError {
                action: "write",
                path: "/x".into(),
                source: io::Error::from_raw_os_error(number),
            }
            .advice()
        };
        // ENOSPC, EDQUOT, EROFS and EIO.
        for (number, words) in [
            (28, "free some space"),
            (122, "free some space"),
            (30, "written to"),
            (5, "dmesg"),
        ] {
            let advice = advice(number).unwrap();
            assert!(
                advice.contains(words) && advice.contains("TARE_HOME"),
                "{advice}"
            );
        }
        // ENOENT and EACCES.
        assert_eq!(advice(2), None);
        assert_eq!(advice(13), None);
    }
}
