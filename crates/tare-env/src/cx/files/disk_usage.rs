//! Measures the disk usage of a file or folder.
//!
//! Counts blocks and not lengths where the system reports them, so that holes take nothing. Other file systems, such
//! as one mounted in the folder, are not counted.
//! Limits: blocks that several files share are not recognised.

use std::fs::Metadata;
use std::path::Path;

/// Disk usage below this path in bytes, links not followed; what cannot be read counts as zero.
pub fn taken_bytes(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = allocated_bytes(&found);
    if !found.is_dir() {
        return own;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let is_beside = |entry: &Path| {
        let there = std::fs::symlink_metadata(entry);
        there.is_ok_and(|there| file_system(&there) == file_system(&found))
    };
    let below = entries.map(|entry| entry.path()).filter(|it| is_beside(it));
    own + below.map(|entry| taken_bytes(&entry)).sum::<u64>()
}

#[cfg(unix)]
fn allocated_bytes(found: &Metadata) -> u64 {
    // In units of 512 bytes, whatever the file system's block size is.
    std::os::unix::fs::MetadataExt::blocks(found) * 512
}

#[cfg(not(unix))]
fn allocated_bytes(found: &Metadata) -> u64 {
    if found.is_file() { found.len() } else { 0 }
}

#[cfg(unix)]
fn file_system(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(found)
}

#[cfg(not(unix))]
fn file_system(_found: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_size_sums_files_without_following_links() {
        let place = tempfile::tempdir().unwrap();
        let empty = taken_bytes(place.path());
        let inner = place.path().join("inner");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("file"), vec![1; 100_000]).unwrap();
        let file = taken_bytes(&inner.join("file"));
        assert!(file >= 100_000, "{file}");
        let whole = taken_bytes(place.path());
        assert!(whole >= empty + file, "{whole}");
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("/usr", inner.join("link")).unwrap();
            assert!(taken_bytes(place.path()) < whole + file);
            let hole = std::fs::File::create(inner.join("hole")).unwrap();
            hole.set_len(1 << 30).unwrap();
            assert!(taken_bytes(place.path()) < 1 << 29);
        }
        assert_eq!(taken_bytes(&place.path().join("nothing")), 0);
    }
}
