//! Finds programs by their names.

use std::path::{Path, PathBuf};

/// The program that a shell in `directory` would start for `name`: the path itself if it has a slash, else the first
/// match in the folders of the search path.
pub fn program(name: &str, folders: &str, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name)).filter(|path| is_program(path));
    }
    std::env::split_paths(folders)
        .filter(|folder| !folder.as_os_str().is_empty())
        .map(|folder| directory.join(folder).join(name))
        .find(|path| is_program(path))
}

/// The first program of this name in the absolute folders of the search path, and then in others.
pub fn on_search_path(name: &str, others: &[&str]) -> Option<PathBuf> {
    let path = crate::cx::vars::text("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(others.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|path| is_program(path))
}

/// Whether the path is a file that its user may execute.
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
