//! `allocate PATH BYTES`: creates a file with all its blocks allocated.
//!
//! A sparse disk image would fail in the middle of a measurement when the host's disk is full, and its first writes
//! would pay for block allocation. So all blocks are allocated up front; where the file system does not support that,
//! zeroes are written. The file must not exist beforehand, and is removed after a failure.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::ExitCode;

use tare_model::whole_size;

/// Runs `allocate`: returns 0 when the file exists, 1 when it could not be made, 2 for wrong arguments.
#[allow(
    clippy::print_stderr,
    reason = "standard error is where the host reads the reason"
)]
pub fn main(arguments: &[String]) -> ExitCode {
    let (path, bytes) = match arguments {
        [path, bytes] => (Path::new(path), bytes.parse::<i64>().ok()),
        _ => (Path::new(""), None),
    };
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
        eprintln!("tare-agent: allocate PATH BYTES is expected");
        return ExitCode::from(2);
    };
    match allocate(path, bytes) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Creates the file.
///
/// # Errors
/// The file exists already, or the system's error, such as a full disk; no file is left behind then.
pub fn allocate(path: &Path, bytes: i64) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    let done = has_room(&file, bytes).and_then(|()| reserve(&mut file, bytes));
    if done.is_err() {
        // Report the first failure, not that of the removal.
        let _ = fs::remove_file(path);
    }
    done
}

/// Fails early when the file cannot fit: trying would fill the disk for all other processes first.
fn has_room(file: &File, bytes: i64) -> io::Result<()> {
    // SAFETY: `statvfs` is plain data for which all zeroes is a valid value.
    let mut room: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, and `room` is a live, exclusively borrowed structure.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), &raw mut room) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if u128::from(room.f_bavail) * u128::from(room.f_frsize) < u128::from(bytes.cast_unsigned()) {
        return Err(io::Error::from_raw_os_error(libc::ENOSPC));
    }
    Ok(())
}

fn reserve(file: &mut File, bytes: i64) -> io::Result<()> {
    // SAFETY: the descriptor is open for the time of the call; the rest are numbers.
    let done = match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, bytes) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    };
    match done {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => fill(file, bytes),
        other => other,
    }
}

fn fill(file: &mut File, bytes: i64) -> io::Result<()> {
    let zeroes = vec![0u8; 1 << 20];
    let mut left = bytes.cast_unsigned();
    while left > 0 {
        let part = whole_size(left).min(zeroes.len());
        file.write_all(&zeroes[..part])?;
        left -= part as u64;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn allocate_reserves_blocks_or_leaves_no_file() {
        let path = std::env::temp_dir().join(format!("tare-allocate-{}", std::process::id()));
        allocate(&path, 1 << 20).unwrap();
        let data = fs::metadata(&path).unwrap();
        assert_eq!(data.len(), 1 << 20);
        assert!(data.blocks() * 512 >= 1 << 20);
        assert_eq!(
            allocate(&path, 1).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        fs::remove_file(&path).unwrap();
        let full = allocate(&path, i64::MAX / 2).unwrap_err();
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
        assert!(!path.exists());
    }
}
