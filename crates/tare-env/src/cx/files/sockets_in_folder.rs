//! Finds sockets and named pipes in a folder: opening one talks to another program.
//!
//! Uses the entry types that reading a folder returns, without a stat of each entry. Does not follow links, and skips
//! `/proc` and `/sys`.
//! Limits: folders that this user may not read are skipped; the result says so.

use std::path::{Path, PathBuf};

/// Maximum of entries examined.
const ENTRIES_MOST: usize = 1_000_000;
/// Maximum of sockets and pipes listed.
const LISTED_MOST: usize = 256;

/// The sockets and named pipes that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Talking {
    /// Their paths relative to the folder, sorted.
    pub paths: Vec<String>,
    /// Whether the whole folder was searched.
    pub is_whole: bool,
}

/// Finds the sockets and named pipes below a folder; none if it is not a folder.
pub fn talking_below(folder: &Path) -> Talking {
    let folder = super::real(folder);
    let mut found = Talking {
        paths: Vec::new(),
        is_whole: true,
    };
    if !folder.is_dir() {
        return found;
    }
    let mut waiting: Vec<PathBuf> = vec![folder.clone()];
    let mut n_entries = 0;
    'all: while let Some(place) = waiting.pop() {
        if ["/proc", "/sys"].iter().any(|top| place.starts_with(top)) {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&place) else {
            found.is_whole = false;
            continue;
        };
        for entry in entries.flatten() {
            n_entries += 1;
            if n_entries > ENTRIES_MOST || found.paths.len() == LISTED_MOST {
                found.is_whole = false;
                break 'all;
            }
            let (path, kind) = (entry.path(), entry.file_type());
            let Ok(kind) = kind else {
                found.is_whole = false;
                continue;
            };
            if kind.is_dir() {
                waiting.push(path);
            } else if is_talking(kind) {
                let below = path.strip_prefix(&folder).ok().and_then(Path::to_str);
                match below {
                    Some(below) => found.paths.push(below.to_owned()),
                    None => found.is_whole = false,
                }
            }
        }
    }
    found.paths.sort();
    found
}

/// Whether a path, links followed, is a socket or a named pipe.
pub fn talks(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| is_talking(found.file_type()))
}

#[cfg(unix)]
fn is_talking(kind: std::fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt;
    kind.is_socket() || kind.is_fifo()
}

#[cfg(not(unix))]
fn is_talking(_: std::fs::FileType) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn sockets_and_pipes_are_found_at_any_depth() {
        let place = tempfile::tempdir().unwrap();
        let deep = place.path().join("a/b/c/d");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::write(deep.join("file"), "x").unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(deep.join("s")).unwrap();
        let pipe = place.path().join("pipe");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        std::os::unix::fs::symlink(&deep, place.path().join("link")).unwrap();
        let expected = Talking {
            paths: vec!["a/b/c/d/s".into(), "pipe".into()],
            is_whole: true,
        };
        assert_eq!(talking_below(place.path()), expected);
        assert!(talks(&pipe) && !talks(&deep.join("file")) && !talks(&deep));
        assert_eq!(talking_below(&pipe).paths, Vec::<String>::new());
    }
}
