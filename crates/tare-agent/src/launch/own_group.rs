//! Puts an agent on the host and everything that it starts into a dedicated cgroup.
//!
//! A process that leaves its parents, its session and its label is still in its cgroup, so everything can be killed,
//! even when the agent itself was killed. The agent moves itself before it starts anything, and its children inherit
//! the membership: no overhead for a trial.
//! The cgroup must not change the measurement, so it has no controller that accounts, limits or schedules: it is in a
//! version 1 hierarchy with no controllers or only the freezer, else a plain version 2 cgroup below one that
//! delegates no controllers. Without such a place there is no cgroup, and adopted children are killed one by one.
//! Cgroups are named `tare-<run>+<agent's pid>`; a run's name never contains `+`.
//! Limits: misses processes that a program makes others start, such as a container of an engine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::control::{self, read, write};
use super::{sweep, sys};
use crate::cgroup::is_own_group;
use crate::cgroup::{self, Hierarchy};

/// How long a cgroup may take to freeze before it is killed anyway.
const FREEZE_LIMIT: Duration = Duration::from_millis(500);

/// The cgroup that this process has moved to.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    folder: PathBuf,
    /// The cgroup that it came from.
    outer: PathBuf,
}

impl OwnGroup {
    /// Makes a cgroup for this process and moves it there; `None` if there is no suitable hierarchy or no permission.
    pub(crate) fn join(run: &str) -> Option<Self> {
        let name = name(run, std::process::id());
        outer_groups(&cgroup::mounted())
            .into_iter()
            .find_map(|outer| {
                let folder = outer.join(&name);
                fs::create_dir(&folder).ok()?;
                let group = Self { folder, outer };
                // Pressure accounting costs time at every task switch, for each cgroup on the way to the root.
                let _ = write(&group.folder.join("cgroup.pressure"), "0");
                if group.enter(&group.folder).is_err() {
                    let _ = fs::remove_dir(&group.folder);
                    return None;
                }
                Some(group)
            })
    }

    /// Leaves the cgroup, kills what is still in it and removes it. A leftover is found by its name.
    pub(crate) fn close(self) {
        if self.enter(&self.outer).is_ok() {
            let _ = end(&self.folder);
        }
    }

    /// Moves this process; `0` means the writer.
    #[allow(clippy::unused_self, reason = "only who has a group moves")]
    fn enter(&self, folder: &Path) -> io::Result<()> {
        write(&folder.join("cgroup.procs"), "0")
    }
}

fn name(run: &str, agent: u32) -> String {
    format!("tare-{run}+{agent}")
}

/// Returns this process's cgroups under which a new one does not change the measurement, best first.
fn outer_groups(hierarchies: &[Hierarchy]) -> Vec<PathBuf> {
    let is_idle = |one: &&Hierarchy| !one.is_unified && one.controllers.is_empty();
    let freezes = |one: &&Hierarchy| !one.is_unified && one.controllers == ["freezer"];
    // The root may start to delegate controllers at any time, even while it holds processes.
    let is_plain = |one: &&Hierarchy| {
        one.is_unified
            && read(&one.own.join("cgroup.subtree_control")).is_empty()
            && (one.controllers.is_empty() || one.own != one.mount_point)
    };
    let all = hierarchies.iter();
    let found = all.clone().filter(is_idle);
    let found = found.chain(all.clone().filter(freezes));
    let found = found.chain(all.filter(is_plain));
    found.map(|one| one.own.clone()).collect()
}

/// Kills everything in a cgroup, at once if the kernel can, and removes it. Returns the number of processes.
fn end(folder: &Path) -> io::Result<usize> {
    let n_members = control::members(folder).len();
    if write(&folder.join("cgroup.kill"), "1").is_err() {
        freeze(folder);
        for process in control::members(folder) {
            // It may have exited already.
            let _ = sys::kill(process, libc::SIGKILL);
        }
        for (file, go_on) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
            // Only one of these files exists, or neither.
            let _ = write(&folder.join(file), go_on);
        }
    }
    control::remove_folder(folder, |_| true)?;
    Ok(n_members)
}

/// Freezes a cgroup, so that no process is forked while its members are listed. Version 1 without a freezer cannot do
/// that; there the members are killed repeatedly.
fn freeze(folder: &Path) {
    let begin = Instant::now();
    let state = folder.join("freezer.state");
    let is_still = || -> bool {
        if state.exists() {
            read(&state) == "FROZEN"
        } else {
            read(&folder.join("cgroup.events")).contains("frozen 1")
        }
    };
    let can_freeze =
        write(&state, "FROZEN").is_ok() || write(&folder.join("cgroup.freeze"), "1").is_ok();
    while can_freeze && !is_still() && begin.elapsed() < FREEZE_LIMIT {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Ends the cgroups of these runs, all or those of one agent, and returns one line for each.
///
/// # Errors
/// A cgroup that cannot be removed, after all were tried.
pub(crate) fn end_groups(runs: &[String], agent: Option<u32>) -> io::Result<Vec<String>> {
    let is_wanted = |name: &str| {
        is_own_group(name)
            && runs.iter().any(|run| match agent {
                Some(agent) => name == self::name(run, agent),
                None => name
                    .strip_prefix("tare-")
                    .and_then(|rest| rest.strip_prefix(run.as_str()))
                    .is_some_and(|rest| rest.starts_with('+')),
            })
    };
    let mut lines = Vec::new();
    let mut failed = Ok(());
    for hierarchy in cgroup::mounted() {
        for folder in sweep::groups_in(&hierarchy.mount_point) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy();
            if !is_wanted(&name) {
                continue;
            }
            match end(&folder) {
                Ok(n_members) => lines.push(format!(
                    "removed the cgroup {} with {n_members} processes",
                    folder.display()
                )),
                Err(error) => {
                    let what = format!("remove the cgroup {}: {error}", folder.display());
                    failed = Err(io::Error::new(error.kind(), what));
                }
            }
        }
    }
    failed.map(|()| lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hierarchy(controllers: &[&str], is_unified: bool, own: &Path) -> Hierarchy {
        Hierarchy {
            mount_point: own.to_owned(),
            own: own.to_owned(),
            options: String::new(),
            controllers: controllers.iter().map(|it| (*it).to_owned()).collect(),
            is_unified,
        }
    }

    #[test]
    fn own_group_avoids_accounting_controllers() {
        let place = tempfile_folder("controllers");
        let busy = [
            &["cpu", "cpuacct"][..],
            &["memory"],
            &["pids"],
            &["freezer", "cpu"],
        ];
        for controllers in busy {
            let found = outer_groups(&[hierarchy(controllers, false, &place)]);
            assert!(found.is_empty(), "{controllers:?}");
        }
        // The version 2 root with controllers, and a cgroup that delegates them.
        assert!(outer_groups(&[hierarchy(&["cpu"], true, &place)]).is_empty());
        let leaf = Hierarchy {
            mount_point: place.parent().unwrap().to_owned(),
            ..hierarchy(&["cpu"], true, &place)
        };
        assert_eq!(
            outer_groups(std::slice::from_ref(&leaf)),
            std::slice::from_ref(&place)
        );
        fs::write(place.join("cgroup.subtree_control"), "cpu\n").unwrap();
        assert!(outer_groups(&[leaf]).is_empty());
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn outer_groups_without_controllers_sort_first() {
        let (idle, freezer, plain) = (Path::new("/i"), Path::new("/f"), Path::new("/p"));
        let found = outer_groups(&[
            hierarchy(&[], true, plain),
            hierarchy(&["freezer"], false, freezer),
            hierarchy(&["memory"], false, Path::new("/m")),
            hierarchy(&[], false, idle),
        ]);
        assert_eq!(found, [idle, freezer, plain]);
    }

    #[test]
    fn only_names_of_an_agent_are_those_of_such_groups() {
        assert!(is_own_group(&name("run-1", 7)));
        for other in [
            "tare-run-1",
            "tare-run-arm",
            "x+7",
            "tare-run+",
            "tare-run+7x",
        ] {
            assert!(!is_own_group(other), "{other}");
        }
    }

    fn tempfile_folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("tare-own-group-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }
}
