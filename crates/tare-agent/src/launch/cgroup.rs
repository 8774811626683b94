//! The instance's cgroups: made before it starts, joined by its first process, removed after its last.
//!
//! Under version 1 a group is made directly under the caller's own in every hierarchy. Under version 2 a group
//! that hands controllers on may not hold processes itself, so the group is made under the caller's own if
//! that has the controllers to give, else beside it. Groups that are not needed for a limit are a matter of
//! membership alone: where one cannot be made, that is reported and the rest goes on.
//! What it cannot see: a manager such as systemd that moves or removes groups behind its back.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tare_model::launch::{LaunchError, Limits, Missing};
use tare_model::mountinfo::cgroup_layout;

use super::control::{Group, read, remove_folder, write};
use super::{limits, refused};
use crate::cgroup::{self, Hierarchy};

/// The groups of one instance. Not removed when dropped: the launcher removes them when all is over.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) groups: Vec<Group>,
    /// `v1`, `v2` or `hybrid`.
    pub(super) version: Option<&'static str>,
}

/// Makes the group's folder; a group of that name that exists already is an error, because it is not ours.
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

/// A new version 1 cpuset is empty and admits nobody before it has processors and memory nodes.
fn fill_cpuset(folder: &Path, hierarchy: &Hierarchy) -> io::Result<()> {
    for file in ["cpuset.cpus", "cpuset.mems"] {
        if read(&folder.join(file)).is_empty() {
            write(&folder.join(file), &read(&hierarchy.own.join(file)))?;
        }
    }
    Ok(())
}

/// The version 2 folder under which a group gets these controllers, handing them on where that is possible.
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
    /// Makes the groups of `name` and sets the limits. What could not be had without a limit being lost is
    /// added to `missing`. On an error nothing is left.
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
            // The first failure is what the reader needs; groups left here are found by their name.
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
                // Version 1 spreads the controllers: a failure elsewhere takes no limit away.
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

    /// Moves a process into every group.
    pub(super) fn admit(&self, process: libc::pid_t) -> Result<(), LaunchError> {
        for group in &self.groups {
            let file = group.folder.join("cgroup.procs");
            write(&file, &process.to_string()).map_err(|error| {
                refused(&format!("join the cgroup `{}`", group.folder.display()))(error)
            })?;
        }
        Ok(())
    }

    /// Kills whatever is left inside and removes the groups; the first failure is returned, after all were
    /// tried.
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
