//! Lists processes of this machine and their descendants, from `/proc`.
//!
//! Limits: misses a process whose parent has ended, because it gets another parent.

use std::path::{Path, PathBuf};

use super::files;

/// These processes and all their descendants, each once.
pub fn with_all_below(pids: &[u32]) -> Vec<u32> {
    let mut all = pids.to_vec();
    let mut known = 0;
    while let Some(pid) = all.get(known) {
        known += 1;
        let folder = PathBuf::from(format!("/proc/{pid}/task"));
        let tasks = numbers_in(&folder).into_iter();
        let below = tasks.filter_map(|task| {
            files::read_text(&folder.join(task.to_string()).join("children")).ok()
        });
        let below: Vec<u32> = below
            .flat_map(|text| {
                let pids = text.split_whitespace().filter_map(|pid| pid.parse().ok());
                pids.collect::<Vec<u32>>()
            })
            .filter(|pid| !all.contains(pid))
            .collect();
        all.extend(below);
    }
    all
}

/// The entries of a folder that are numbers.
pub(crate) fn numbers_in(folder: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}
