//! Reads and writes files and folders, with the path in every error.
//!
//! Tare's private files are closed to other users ([`create_folder`], [`write()`]); files that the user asked for by
//! name get the user's default permissions ([`create_output_folder`], [`write_output`]).

use std::ffi::OsString;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tare_model::mountinfo::Mount;

mod devices;
mod disk_usage;
mod plain;
mod program;
#[cfg(unix)]
mod restrict;
#[cfg(not(unix))]
mod restrict_elsewhere;
mod sockets_in_folder;
#[cfg(unix)]
mod tree;
mod unpacked;

pub use devices::is_disk;
#[cfg(not(unix))]
use restrict_elsewhere as restrict;

pub use disk_usage::taken_bytes;
pub use plain::{head, length, read_plain};
pub use program::{is_program, on_search_path, program};
pub use restrict::{
    NotOwn, check_folder, close_to_others, create_folder, let_through, open_anybodys, open_file,
    own_uid,
};
pub use sockets_in_folder::{Talking, talking_below, talks};
pub use unpacked::unpack;

/// A failed action on a path.
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

/// The result of an action on a path.
pub type Result<T, E = FileError> = std::result::Result<T, E>;

/// The error of a device that fails to read or write, the same on every Unix (`EIO`).
#[cfg(unix)]
const DEVICE_FAILED: Option<i32> = Some(5);
/// The same on Windows (`ERROR_IO_DEVICE`).
#[cfg(not(unix))]
const DEVICE_FAILED: Option<i32> = Some(1117);

impl FileError {
    /// A hint for the user if the disk is at fault.
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
pub fn read_text(path: &Path) -> Result<String> {
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

/// The longest text that is read: a thousand times the length of studies and settings. `/dev/zero` has no end.
const TEXT_LIMIT: u64 = 16 << 20;

/// Reads a whole file.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(error("read", path))
}

/// Writes a whole private file: no reader sees half of it, and it survives a power cut once this returns. Anything
/// but a regular file, such as `/dev/null` or a named pipe, is written to directly: a rename would replace it.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes, 0o600)
}

/// Like `write`, for a file that the user named: with the user's default permissions.
pub fn write_output(path: &Path, bytes: &[u8]) -> Result<()> {
    replace(path, bytes, 0o666)
}

/// Writes a private file that is useless after a crash.
pub fn write_working(path: &Path, bytes: &[u8]) -> Result<()> {
    // An existing file may be open to others, or a link.
    remove(path)?;
    create(path, 0o600)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(error("write", path))
}

/// Writes such a file piecewise; a reader finds either the whole file or the previous one.
pub fn write_working_with(
    path: &Path,
    write: impl FnOnce(&mut std::fs::File) -> io::Result<()>,
) -> Result<()> {
    replace_with(path, 0o600, write)
}

fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    if is_special(path) {
        return std::fs::write(path, bytes).map_err(error("write", path));
    }
    replace_with(path, mode, |file| {
        file.write_all(bytes)?;
        file.sync_all()
    })?;
    sync_folder(path).map_err(error("write", path))
}

fn replace_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut std::fs::File) -> io::Result<()>,
) -> Result<()> {
    let neighbour = neighbour(path);
    // A leftover is half of a file, or was put there by another process.
    remove(&neighbour)?;
    let written = create(&neighbour, mode)
        .and_then(|mut file| write(&mut file))
        .and_then(|()| std::fs::rename(&neighbour, path));
    written.map_err(|reason| {
        // Do not leave half of a file.
        let _ = std::fs::remove_file(&neighbour);
        error("write", path)(reason)
    })
}

/// Creates a file that does not exist yet; never follows a link.
fn create(path: &Path, mode: u32) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Makes the names in this path's folder durable. Only Unix can; elsewhere the file system logs a rename itself.
fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let parent = path
            .parent()
            .filter(|parent| !parent.as_os_str().is_empty());
        let folder = std::fs::File::open(parent.unwrap_or(Path::new(".")))?;
        match folder.sync_all() {
            // Some file systems cannot sync a folder.
            Err(reason) if reason.kind() == io::ErrorKind::InvalidInput => {}
            other => other?,
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Checks that [`write_output`] may write this file, without changing it.
pub fn may_write(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Err(error("write", path)(io::ErrorKind::IsADirectory.into()));
    }
    if is_special(path) {
        // Opening a pipe would block until it has a reader.
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

/// Whether the path exists and is not a regular file.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| !found.is_file())
}

/// Writes a file that all users may execute if they can reach it.
pub fn write_program(path: &Path, bytes: &[u8]) -> Result<()> {
    write_working(path, bytes)?;
    set_mode(path, 0o755)
}

/// Writes a file that only its owner may execute; an existing one stays as it is if that fails.
pub fn write_own_program(path: &Path, bytes: &[u8]) -> Result<()> {
    write_working_with(path, |file| file.write_all(bytes))?;
    set_mode(path, 0o700)
}

/// Creates a folder that the user named, and its parents.
pub fn create_output_folder(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(error("create the folder", path))
}

/// Removes a file; does nothing if it does not exist.
pub fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(error("remove", path)),
    }
}

/// Lets all users create files in a folder but not remove those of others, as in `/tmp`.
pub fn open_to_all(path: &Path) -> Result<()> {
    set_mode(path, 0o1777)
}

/// Lets all users read a folder, like the root folder.
pub fn show_to_all(path: &Path) -> Result<()> {
    set_mode(path, 0o755)
}

/// Lets all users read a file in a folder of this user.
pub fn let_read(path: &Path) -> Result<()> {
    change_mode(path, 0o644, "let others read")
}

fn set_mode(path: &Path, mode: u32) -> Result<()> {
    change_mode(path, mode, "set the permissions of")
}

/// Sets permissions, where the system has them.
fn change_mode(path: &Path, mode: u32, action: &'static str) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(error(action, path))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode, action);
    Ok(())
}

/// Changes the owner of a file or folder; only for root.
pub fn give_away(path: &Path, uid: u32, gid: u32) -> Result<()> {
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

/// Removes a folder recursively; does nothing if it does not exist. Never follows a link out of it, and stops at
/// anything mounted in it.
pub fn remove_folder(path: &Path) -> Result<()> {
    remove_folder_keeping(path, None)
}

/// The same, but removes the entry `last` directly in it after all others.
pub fn remove_folder_keeping(path: &Path, last: Option<&str>) -> Result<()> {
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

/// The first mount point on this folder or below it, if any.
pub fn mounted_in(folder: &Path) -> Option<String> {
    Mount::within(&real(folder), &mounts()).map(|mount| mount.point)
}

/// Whether something is mounted below this folder, not counting a mount on the folder itself.
pub fn has_mounts_below(folder: &Path) -> bool {
    let folder = real(folder);
    Mount::all(&mounts()).any(|mount| mount.is_below(&folder))
}

/// Whether something is mounted on exactly this path, which has no links.
pub fn is_mounted(path: &Path) -> bool {
    Mount::all(&mounts()).any(|mount| Path::new(&mount.point) == path)
}

/// The mount table. A mount point may contain any bytes.
pub fn mounts() -> String {
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    String::from_utf8_lossy(&mounts).into_owned()
}

/// The kind of a path, links not followed.
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
        /// Its target, as written.
        target: PathBuf,
    },
    /// A device, a pipe or a socket.
    Other,
}

/// Returns the kind of a path without following a link.
pub fn kind(path: &Path) -> Result<Kind> {
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

/// The same path without links; fails if it does not exist.
pub fn canonical(path: &Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(error("find", path))
}

/// The same path without links; unchanged if it does not exist.
pub fn real(path: &Path) -> PathBuf {
    canonical(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a file, or the folder that it will be in, is on a network file system, where other machines may write too.
/// By Linux's numbers (statfs(2)); unknown elsewhere.
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

/// The names in a folder; skips names that are not UTF-8, because Tare creates none.
pub fn names(path: &Path) -> Result<Vec<String>> {
    let names = listed(path)?.into_iter();
    Ok(names.filter_map(|name| name.into_string().ok()).collect())
}

/// All names in a folder; a name that is not UTF-8 is an error.
pub fn every_name(path: &Path) -> Result<Vec<String>> {
    let names = listed(path)?.into_iter().map(OsString::into_string);
    let odd = |_| error("name all that is in", path)(io::ErrorKind::InvalidFilename.into());
    names.collect::<Result<_, _>>().map_err(odd)
}

fn listed(path: &Path) -> Result<Vec<OsString>> {
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
    fn network_share_is_distinguished_from_disk() {
        assert!(is_network(0x6969));
        assert!(!is_network(0xef53), "ext4");
        assert!(!is_of_other_machines(Path::new("/proc/version")));
    }

    #[test]
    fn only_full_readonly_or_broken_disk_gets_advice() {
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
