//! Wraps syscalls that take a name relative to an open folder, so that no path component is looked up twice.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use super::sys::{c_text, check};

/// Opens the entry `name` of an open folder, as [`super::sys::open_path`] does; a symlink is opened itself.
pub(super) fn open_at(folder: &File, name: &OsStr) -> io::Result<File> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    made_at(folder, name, flags)
}

/// Makes an empty file in an open folder.
pub(super) fn make_file_at(folder: &File, name: &OsStr) -> io::Result<()> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    made_at(folder, name, flags).map(drop)
}

fn made_at(folder: &File, name: &OsStr, flags: libc::c_int) -> io::Result<File> {
    let name = c_text(name)?;
    // SAFETY: the folder is open, and the name is NUL-terminated and outlives the call.
    let found = check(unsafe { libc::openat(folder.as_raw_fd(), name.as_ptr(), flags, 0o666) })?;
    // SAFETY: openat succeeded, so this is an open descriptor that nothing else owns.
    Ok(unsafe { File::from_raw_fd(found) })
}

/// Makes a folder in an open one.
pub(super) fn make_folder_at(folder: &File, name: &OsStr) -> io::Result<()> {
    let name = c_text(name)?;
    // SAFETY: the folder is open, and the name is NUL-terminated and outlives the call.
    check(unsafe { libc::mkdirat(folder.as_raw_fd(), name.as_ptr(), 0o777) }).map(drop)
}

/// Returns the target of a symlink that [`open_at`] opened.
pub(super) fn read_link(link: &File) -> io::Result<PathBuf> {
    let mut text = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: the descriptor is open, the empty path means itself, and pointer and length describe `text`.
    let length = unsafe {
        libc::readlinkat(
            link.as_raw_fd(),
            c"".as_ptr(),
            text.as_mut_ptr().cast(),
            text.len(),
        )
    };
    text.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    Ok(OsString::from_vec(text).into())
}
