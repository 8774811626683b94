//! How much of a disk a file takes, or a folder with all that is in it.
//!
//! Blocks and not lengths where the system tells them, so that a hole takes nothing. What lies on another file system,
//! such as something mounted in the folder, is not in it. What it cannot see: blocks that several files share.

use std::fs::Metadata;
use std::path::Path;

/// Bytes of the disk below this path, links not followed; what cannot be looked at counts as nothing.
pub fn taken_bytes(path: &Path) -> u64 {
    let Ok(found) = std::fs::symlink_metadata(path) else {
        return 0;
    };
    let own = of(&found);
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
fn of(found: &Metadata) -> u64 {
    // In units of 512 bytes, whatever the file system's own blocks are.
    std::os::unix::fs::MetadataExt::blocks(found) * 512
}

#[cfg(not(unix))]
fn of(found: &Metadata) -> u64 {
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
    fn a_folder_takes_what_its_files_take_and_a_link_leads_nowhere() {
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
