//! Makes the instance's cgroups before it starts, moves its first process into them, removes them after its last.
//!
//! Under version 1 a cgroup is made directly under the caller's in every hierarchy. Under version 2 a cgroup that
//! delegates controllers may not hold processes, so the new one is made under the caller's if that has the
//! controllers to give, else next to it. Cgroups that no limit needs only provide membership: a failure to make one
//! is reported, and the launch continues.
//! Limits: does not notice a manager such as systemd moving or removing cgroups.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_model::launch::{LaunchError, Limits, Missing};
use tare_model::mountinfo::cgroup_layout;

use super::control::{Group, read, remove_folder, write};
use super::{limits, refused};
use crate::cgroup::{self, Hierarchy};

/// The cgroups of one instance. Not removed on drop: the launcher removes them at the end.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    /// `v1`, `v2` or `hybrid`.
    pub(super) version: Option<&'static str>,
}

/// Makes the cgroup's directory. An existing one is an error, because it belongs to something else.
fn make(folder: &Path) -> Result<(), LaunchError> {
    fs::create_dir(folder).map_err(|error| {
        let mut refusal = refused(&format!("make the cgroup `{}`", folder.display()))(error);
        refusal.hint = match refusal.errno {
            Some(libc::EEXIST) => {
                Some("an earlier run left it; remove it with `tare clean`".into())
            }
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                Some("run as root, or have the cgroup delegated to this user".into())
            }
            _ => None,
        };
        refusal
    })
}

/// Fills a new version 1 cpuset, which is empty and accepts no process until it has CPUs and memory nodes.
fn fill_cpuset(folder: &Path, hierarchy: &Hierarchy) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if read(&folder.join(file)).is_empty() {
            write(&folder.join(file), &read(&hierarchy.own.join(file)))?;
        }
    }
    Ok(())
}

/// Returns the version 2 directory under which a cgroup gets these controllers, enabling them for children if
/// possible.
fn unified_parent(hierarchy: &Hierarchy, controllers: &[&str]) -> Result<PathBuf, String> {
    let gives = |folder: &Path, file: &str, controller: &str| {
        read(&folder.join(file))
            .split_whitespace()
            .any(|given| given == controller)
    };
    let mut why = String::from("the caller's cgroup is not inside the mounted tree");
    for parent in [Some(hierarchy.own.as_path()), hierarchy.own.parent()] {
        let Some(parent) = parent.filter(|parent| parent.starts_with(&hierarchy.mount_point))
        else {
            continue;
        };
        let lacking = controllers.iter().find_map(|controller| {
            if gives(parent, "cgroup.subtree_control", controller) {
                return None;
            }
            if !gives(parent, "cgroup.controllers", controller) {
                return Some(format!(
                    "`{}` has no controller `{controller}`",
                    parent.display()
                ));
            }
            write(
                &parent.join("cgroup.subtree_control"),
                &format!("+{controller}"),
            )
            .err()
            .map(|error| {
                format!(
                    "`{}` cannot hand on `{controller}`: {error}",
                    parent.display()
                )
            })
        });
        match lacking {
            None => return Ok(parent.to_owned()),
            Some(problem) => why = problem,
        }
    }
    Err(why)
}

impl Groups {
    /// Makes the cgroups of `name` and sets the limits. Cgroups that could not be made but that no limit needs are
    /// added to `missing`. On an error nothing is left behind.
    pub(super) fn make(
        name: &str,
        limits: &Limits,
        missing: &mut Vec<Missing>,
    ) -> Result<Self, LaunchError> {
        limits::check(limits)?;
        let hierarchies = cgroup::mounted();
        let has = |unified| hierarchies.iter().any(|one| one.is_unified == unified);
        let mut groups = Self {
            groups: Vec::new(),
            version: (!hierarchies.is_empty()).then(|| cgroup_layout(has(false), has(true))),
        };
        let result = groups.fill(name, limits, hierarchies, missing);
        if let Err(error) = result {
            // Report the first failure; cgroups left here are found by their name.
            let _ = groups.remove();
            return Err(error);
        }
        Ok(groups)
    }

    fn fill(
        &mut self,
        name: &str,
        limits: &Limits,
        hierarchies: Vec<Hierarchy>,
        missing: &mut Vec<Missing>,
    ) -> Result<(), LaunchError> {
        let needed = limits::controllers(limits);
        if hierarchies.is_empty() {
            missing.push(Missing {
                what: "cgroups".into(),
                why: "no cgroup hierarchy is mounted here".into(),
            });
        }
        for hierarchy in hierarchies {
            let wanted: Vec<&str> = needed
                .iter()
                .copied()
                .filter(|controller| hierarchy.has(controller))
                .collect();
            let what = if hierarchy.is_unified {
                "cgroup v2".to_owned()
            } else {
                format!("cgroup {}", hierarchy.options)
            };
            match self.add(name, hierarchy, &wanted) {
                Ok(()) => {}
                // In version 1 a controller is in one hierarchy only: a failure in another loses no limit.
                Err(error) if wanted.is_empty() => missing.push(Missing {
                    what,
                    why: error.to_string(),
                }),
                Err(error) => return Err(error),
            }
        }
        for controller in needed {
            if !self
                .groups
                .iter()
                .any(|group| group.hierarchy.has(controller))
            {
                return Err(LaunchError {
                    step: format!("limit {controller}"),
                    problem: format!(
                        "no cgroup with the controller `{controller}` could be made here"
                    ),
                    errno: None,
                    hint: Some("run as root, or leave the limit out".into()),
                });
            }
        }
        limits::set(limits, &self.groups)
    }

    fn add(
        &mut self,
        name: &str,
        hierarchy: Hierarchy,
        wanted: &[&str],
    ) -> Result<(), LaunchError> {
        let parent = if hierarchy.is_unified {
            unified_parent(&hierarchy, wanted).map_err(|problem| LaunchError {
                step: "make the cgroup".into(),
                problem,
                errno: None,
                hint: Some("run under `systemd-run --user --scope -p Delegate=yes`".into()),
            })?
        } else {
            hierarchy.own.clone()
        };
        let folder = parent.join(name);
        make(&folder)?;
        let is_cpuset = !hierarchy.is_unified && hierarchy.has("cpuset");
        let filled = if is_cpuset {
            fill_cpuset(&folder, &hierarchy)
        } else {
            Ok(())
        };
        self.groups.push(Group { folder, hierarchy });
        filled.map_err(refused("give the cpuset its processors"))
    }

    /// Moves a process into every cgroup.
    pub(super) fn admit(&self, process: libc::pid_t) -> Result<(), LaunchError> {
        for group in &self.groups {
            let file = group.folder.join("cgroup.procs");
            write(&file, &process.to_string()).map_err(|error| {
                refused(&format!("join the cgroup `{}`", group.folder.display()))(error)
            })?;
        }
        Ok(())
    }

    /// Kills all processes left inside and removes the cgroups; tries all of them and returns the first failure.
    pub(super) fn remove(&mut self) -> io::Result<()> {
        let mut first = Ok(());
        for group in self.groups.drain(..) {
            let removed = remove_folder(&group.folder, |_| true).map(drop);
            if first.is_ok() {
                first = removed;
            }
        }
        first
    }
}
