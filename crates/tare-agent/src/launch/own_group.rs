//! A control group of its own for an agent on the host and all that it starts.
//!
//! Whoever leaves his parents, his session and his label behind is still in the group that he was born in, so it can
//! be ended whole, also when its agent was killed. The agent moves itself before it starts anything, and everything
//! below inherits the membership: a trial pays nothing for it.
//! The group must not change what is measured, so it has no controller that accounts, limits or schedules: a
//! hierarchy of version 1 that has none at all, or only the freezer; else a plain group of version 2, below one that
//! hands no controllers on. Where there is none of these there is no group, and adopted children are ended one by one.
//! Groups are called `tare-<run>+<agent's process>`; no name of a run holds a `+`.
//! What it cannot see: what a program has others start for it, such as a container of an engine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::control::{self, read, write};
use super::{sweep, sys};
use crate::cgroup::is_own_group;
use crate::cgroup::{self, Hierarchy};

/// How long a group is given to stand still before it is killed anyway.
const FREEZE_LIMIT: Duration = Duration::from_millis(500);

/// The group that this process has moved to.
#[derive(Debug)]
pub(crate) struct OwnGroup {
    folder: PathBuf,
    /// The group that it came from.
    outer: PathBuf,
}

impl OwnGroup {
    /// Makes a group for this process and moves it there; `None` where there is no suitable hierarchy or no right to
    /// use it.
    pub(crate) fn join(run: &str) -> Option<Self> {
        let name = name(run, std::process::id());
        outer_groups(&cgroup::mounted())
            .into_iter()
            .find_map(|outer| {
                let folder = outer.join(&name);
                fs::create_dir(&folder).ok()?;
                let group = Self { folder, outer };
                // Pressure is accounted for each group on the way to the root, at every switch between tasks.
                let _ = write(&group.folder.join("cgroup.pressure"), "0");
                if group.enter(&group.folder).is_err() {
                    let _ = fs::remove_dir(&group.folder);
                    return None;
                }
                Some(group)
            })
    }

    /// Leaves the group, ends whatever is still in it and removes it. What cannot be removed is found by its name.
    pub(crate) fn close(self) {
        if self.enter(&self.outer).is_ok() {
            let _ = end(&self.folder);
        }
    }

    /// Moves this process; `0` stands for whoever writes.
    #[allow(clippy::unused_self, reason = "only who has a group moves")]
    fn enter(&self, folder: &Path) -> io::Result<()> {
        write(&folder.join("cgroup.procs"), "0")
    }
}

fn name(run: &str, agent: u32) -> String {
    format!("tare-{run}+{agent}")
}

/// The groups of this process below which another one changes nothing, the best first.
fn outer_groups(hierarchies: &[Hierarchy]) -> Vec<PathBuf> {
    let is_idle = |one: &&Hierarchy| !one.is_unified && one.controllers.is_empty();
    let freezes = |one: &&Hierarchy| !one.is_unified && one.controllers == ["freezer"];
    // The root may be told to hand controllers on at any time, also while it holds processes.
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

/// Kills all that is in a group, at once where the kernel can, and removes it. How many processes there were.
fn end(folder: &Path) -> io::Result<usize> {
    let n_members = control::members(folder).len();
    if write(&folder.join("cgroup.kill"), "1").is_err() {
        freeze(folder);
        for process in control::members(folder) {
            // It may have ended by itself.
            let _ = sys::kill(process, libc::SIGKILL);
        }
        for (file, go_on) in [("freezer.state", "THAWED"), ("cgroup.freeze", "0")] {
            // Either is there or neither.
            let _ = write(&folder.join(file), go_on);
        }
    }
    control::remove_folder(folder, |_| true)?;
    Ok(n_members)
}

/// Lets a group stand still, so that nothing is born while its members are counted. Version 1 without a freezer has no
/// means for that; there the members are killed again and again.
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

/// Ends the groups of these runs: all of them, or that of one agent. One line for each.
///
/// # Errors
/// A group that cannot be removed, after all were tried.
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
                    "removed the control group {} with {n_members} processes",
                    folder.display()
                )),
                Err(error) => {
                    let what = format!("remove the control group {}: {error}", folder.display());
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
    fn no_group_is_made_where_a_controller_would_count_or_limit() {
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
        // The root of version 2 with controllers, and a group that hands them on.
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
    fn what_counts_nothing_comes_first() {
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
