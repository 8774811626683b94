//! Reads a directory with the raw syscall, without the memory that the C library allocates for it.
//!
//! Limits: entries are only counted, without their kinds.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use tare_model::whole_size;

use crate::meter::ProbeError;

/// Opens the directory `name` of the directory `at`, reads all of it and closes it; returns the number of entries,
/// `.` and `..` included.
pub fn entries(at: RawFd, name: &CStr) -> Result<usize, ProbeError> {
    // SAFETY: `at` is an open directory and the name ends with a zero byte.
    let descriptor = unsafe {
        libc::openat(
            at,
            name.as_ptr(),
            libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC,
        )
    };
    if descriptor < 0 {
        return Err(ProbeError::last("openat"));
    }
    // SAFETY: just opened, and nothing else owns it.
    let directory = unsafe { OwnedFd::from_raw_fd(descriptor) };
    // `u64`, for the alignment of the records.
    let mut buffer = [0u64; 1024];
    let mut count = 0;
    loop {
        // SAFETY: the buffer has the length that is given, and the descriptor is open.
        let length = unsafe {
            libc::syscall(
                libc::SYS_getdents64,
                directory.as_raw_fd(),
                buffer.as_mut_ptr(),
                size_of_val(&buffer),
            )
        };
        match length {
            0 => return Ok(count),
            length if length < 0 => return Err(ProbeError::last("getdents64")),
            length => count += records(&buffer, whole_size(length.cast_unsigned())),
        }
    }
}

/// Counts the records in the first `length` bytes: the length of each is a 16-bit number at its byte 16.
fn records(buffer: &[u64], length: usize) -> usize {
    let (mut place, mut count) = (0, 0);
    while place < length {
        let word = buffer[place / 8 + 2];
        let own = usize::from(word.to_ne_bytes()[0]) | usize::from(word.to_ne_bytes()[1]) << 8;
        if own == 0 {
            break;
        }
        place += own;
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::Folder;

    #[test]
    fn every_entry_is_counted_however_many_reads_it_takes() {
        let folder = Folder::new(&std::env::temp_dir(), "tare-listing").unwrap();
        for number in 0..500 {
            std::fs::write(
                folder.path().join(format!("a file of some name {number}")),
                b"",
            )
            .unwrap();
        }
        assert_eq!(entries(folder.handle().as_raw_fd(), c".").unwrap(), 502);
        assert!(entries(folder.handle().as_raw_fd(), c"nowhere").is_err());
    }
}
