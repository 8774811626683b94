//! The page of memory by which workers of several arms pass the turn to each other; for the host it is a file.
//!
//! The workers map it; the host reads and writes it between blocks only. It is in the run's folder, so it is removed
//! with the run.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tare_model::turns::{DONE, PAGE_BYTES, PAGE_KEY, PAGE_PHASES};

use super::files::{self, FileError};

/// The file's name in the run's folder.
const NAME: &str = "turns";

/// The page's path in this run's folder.
pub fn path(scratch: &Path) -> PathBuf {
    scratch.join(NAME)
}

/// The page's path, if it exists, for an environment that can mount it.
pub fn to_show(scratch: &Path) -> Option<String> {
    let path = path(scratch);
    path.exists().then(|| path.display().to_string())
}

/// Creates the page, accessible only to the user who runs Tare. If an arm's worker is another user, its turns go over
/// the channels.
///
/// # Errors
/// The file cannot be created.
pub fn create(scratch: &Path) -> Result<(), FileError> {
    files::write(&path(scratch), &[0; PAGE_BYTES])
}

/// Removes the page, if it exists.
///
/// # Errors
/// The file cannot be removed.
pub fn remove(scratch: &Path) -> Result<(), FileError> {
    let path = path(scratch);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(files::error("use", &path)),
    }
}

/// Resets the page for the next block: all zeroes except for the key.
///
/// # Errors
/// The file cannot be written.
pub fn clear(scratch: &Path, key: u64) -> Result<(), FileError> {
    let mut bytes = [0; PAGE_BYTES];
    bytes[PAGE_KEY..PAGE_KEY + 8].copy_from_slice(&key.to_ne_bytes());
    with_file_at(scratch, 0, |file| file.write_all(&bytes))
}

/// The phases of the first `places` places.
///
/// # Errors
/// The file cannot be read.
pub fn phases(scratch: &Path, places: usize) -> Result<Vec<u32>, FileError> {
    let mut bytes = vec![0; 4 * places];
    with_file_at(scratch, PAGE_PHASES, |file| file.read_exact(&mut bytes))?;
    Ok(bytes
        .chunks_exact(4)
        .map(|word| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]))
        .collect())
}

/// Marks a place as taking no turns.
///
/// # Errors
/// The file cannot be written.
pub fn leave_out(scratch: &Path, place: usize) -> Result<(), FileError> {
    with_file_at(scratch, PAGE_PHASES + 4 * place, |file| {
        file.write_all(&DONE.to_ne_bytes())
    })
}

fn with_file_at(
    scratch: &Path,
    offset: usize,
    work: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let path = path(scratch);
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(&path)
        .and_then(|mut file| {
            file.seek(SeekFrom::Start(offset as u64))?;
            work(&mut file)
        })
        .map_err(files::error("use", &path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleared_page_holds_only_its_key() {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path()).unwrap();
        clear(folder.path(), 0x0102_0304_0506_0708).unwrap();
        leave_out(folder.path(), 2).unwrap();
        assert_eq!(phases(folder.path(), 4).unwrap(), [0, 0, DONE, 0]);
        clear(folder.path(), 7).unwrap();
        assert_eq!(phases(folder.path(), 4).unwrap(), [0; 4]);
        let bytes = std::fs::read(path(folder.path())).unwrap();
        assert_eq!(bytes.len(), PAGE_BYTES);
        assert_eq!(bytes[..8], 7u64.to_ne_bytes());
    }
}
