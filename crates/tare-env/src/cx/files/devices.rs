//! Detects block devices, which hold someone's files.
//!
//! Limits: a character device that writes to a disk is not recognised.

use std::path::Path;

/// Levels of folders that are searched.
const DEEPEST: u32 = 3;

/// Whether a path is a block device, or a folder with one in it.
pub fn is_disk(path: &Path) -> bool {
    is_disk_within(path, DEEPEST)
}

fn is_disk_within(path: &Path, deepest: u32) -> bool {
    let Ok(found) = std::fs::metadata(path) else {
        return false;
    };
    if !found.is_dir() {
        return is_block(&found);
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    deepest > 0
        && entries
            .into_iter()
            .any(|entry| is_disk_within(&entry.path(), deepest - 1))
}

fn is_block(found: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_block_device(&found.file_type());
    #[cfg(not(unix))]
    {
        let _ = found;
        false
    }
}
