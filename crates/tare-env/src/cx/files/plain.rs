//! Reads files that another user may have planted: only regular files, and only up to a limit.
//!
//! Opening a pipe would block until it has a writer, and a device may have no end.
//! Limits: does not check the owner; callers do where it matters.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use super::{Result, error};

/// Reads a whole regular file of at most `most` bytes, following links.
pub fn read_plain(path: &Path, most: u64) -> Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata().map_err(error("look at", path))?.len();
    if length > most {
        return Err(error("read", path)(io::ErrorKind::FileTooLarge.into()));
    }
    taken(file, path, most)
}

/// The length of a file, following links; `None` if it is not a regular file.
pub fn length(path: &Path) -> Option<u64> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

/// The first bytes of a regular file, at most `length`.
pub fn head(path: &Path, length: usize) -> Result<Vec<u8>> {
    taken(open(path)?, path, length as u64)
}

fn taken(file: File, path: &Path, most: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most)
        .read_to_end(&mut bytes)
        .map_err(error("read", path))?;
    Ok(bytes)
}

fn open(path: &Path) -> Result<File> {
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path).map_err(error("open", path))?;
    let found = file.metadata().map_err(error("look at", path))?;
    if !found.is_file() {
        return Err(error("read", path)(io::Error::other("it is no plain file")));
    }
    Ok(file)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pipe_device_or_oversized_file_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), folder.path()] {
            assert!(read_plain(path, 10).is_err(), "{}", path.display());
            assert!(head(path, 10).is_err(), "{}", path.display());
        }
        let file = folder.path().join("file");
        std::fs::write(&file, "twelve bytes").unwrap();
        assert_eq!(read_plain(&file, 12).unwrap(), b"twelve bytes");
        assert!(read_plain(&file, 11).is_err());
        assert_eq!(head(&file, 6).unwrap(), b"twelve");
    }
}
