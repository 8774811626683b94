//! Reads and writes cgroup control files, lists members and removes cgroups.
//!
//! Limits: does not notice a manager such as systemd moving or removing cgroups.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::sys;
use crate::cgroup::Hierarchy;

/// How long to wait for cgroups to become empty.
const PATIENCE: Duration = Duration::from_secs(2);

/// A cgroup that was made.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Its directory on the host.
    pub(super) folder: PathBuf,
    pub(super) hierarchy: Hierarchy,
}

/// Writes to an existing control file.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)?
        .write_all(text.as_bytes())
}

/// Returns a control file's text, trimmed; empty if there is none.
pub(super) fn read(path: &Path) -> String {
    fs::read_to_string(path)
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Returns the processes in a cgroup and in those below it.
pub(super) fn members(folder: &Path) -> Vec<libc::pid_t> {
    let mut found: Vec<libc::pid_t> = read(&folder.join("cgroup.procs"))
        .lines()
        .filter_map(|line| line.parse().ok())
        // Processes of another PID namespace are listed as 0.
        .filter(|process| *process > 1)
        .collect();
    for below in folders_below(folder) {
        found.extend(members(&below));
    }
    found
}

fn folders_below(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

/// Removes a cgroup after all those below it. Cgroups hold no files that could be removed.
fn remove_from_below(folder: &Path) -> io::Result<()> {
    for below in folders_below(folder) {
        // If one is not empty yet, removing the cgroup above it fails too.
        let _ = remove_from_below(&below);
    }
    fs::remove_dir(folder)
}

/// Kills the members for which `is_ours` holds until there are none, then removes the cgroup and those below it.
/// Returns the number of signals sent.
pub(super) fn remove_folder(
    folder: &Path,
    is_ours: impl Fn(libc::pid_t) -> bool,
) -> io::Result<usize> {
    let start = Instant::now();
    let mut n_signals = 0;
    loop {
        for process in members(folder) {
            if is_ours(process) && sys::kill(process, libc::SIGKILL).is_ok() {
                n_signals += 1;
            }
        }
        match remove_from_below(folder) {
            Ok(()) => return Ok(n_signals),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(n_signals),
            Err(error) if start.elapsed() > PATIENCE => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_groups_are_removed_at_every_depth() {
        let place = std::env::temp_dir().join(format!("tare-nested-{}", std::process::id()));
        fs::create_dir_all(place.join("a/b/c")).unwrap();
        fs::create_dir(place.join("a/d")).unwrap();
        assert_eq!(remove_folder(&place, |_| true).unwrap(), 0);
        assert!(!place.exists());
    }

    #[test]
    fn folder_removal_is_retried_until_it_succeeds() {
        let place = std::env::temp_dir().join(format!("tare-control-{}", std::process::id()));
        let kept = place.join("kept");
        fs::create_dir(&place).unwrap();
        fs::write(&kept, "").unwrap();
        let (tried, seen) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            // Not before the removal has failed once.
            seen.recv().unwrap();
            fs::remove_file(&kept).unwrap();
        });
        assert!(fs::remove_dir(&place).is_err());
        tried.send(()).unwrap();
        assert_eq!(remove_folder(&place, |_| true).unwrap(), 0);
        other.join().unwrap();
        assert!(!place.exists());
        assert_eq!(remove_folder(&place, |_| true).unwrap(), 0, "and once more");
    }
}
