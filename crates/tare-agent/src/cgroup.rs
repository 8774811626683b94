//! Where this process's control groups lie: cgroup v1, v2 and both at once (hybrid).
//!
//! A hierarchy's directory is the mount point from `/proc/self/mountinfo` plus what the path from
//! `/proc/self/cgroup` has below the mount's root. Inside a container both may be rewritten by a cgroup
//! namespace, or the mount may show only a part of the tree; where the path does not lie below the mount's
//! root there is no directory to be read, and none is guessed.
//! Source: cgroups(7), cgroup_namespaces(7), proc_pid_mountinfo(5).

use std::path::PathBuf;

use crate::mountinfo::Mount;

/// One hierarchy that this process is a member of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its controllers; empty for the unified hierarchy of v2.
    pub controllers: Vec<String>,
    /// The path as `/proc/self/cgroup` shows it.
    pub path: String,
    /// The directory, where it can be reached.
    pub folder: Option<PathBuf>,
}

impl Hierarchy {
    /// Whether this is the unified hierarchy of cgroup v2.
    pub fn is_unified(&self) -> bool {
        self.controllers.is_empty()
    }
}

/// Whether a folder's name is that of a group that an agent made for itself, `tare-<run>+<agent's process>`; a name of
/// Tare's, and not one that somebody else may have given.
pub fn is_own_group(name: &str) -> bool {
    let agent = name
        .strip_prefix("tare-")
        .and_then(|rest| rest.split_once('+'))
        .map_or("", |(_, agent)| agent);
    !agent.is_empty() && agent.bytes().all(|byte| byte.is_ascii_digit())
}

/// A path without the group that the agent made for itself below the one that it was started in: that has no
/// controllers, so limits and counters are those of the group around it.
fn without_own_group(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((outer, name)) if is_own_group(name) => {
            if outer.is_empty() {
                "/"
            } else {
                outer
            }
        }
        _ => path,
    }
}

/// The hierarchies of this process; empty where `/proc` tells nothing.
pub fn hierarchies() -> Vec<Hierarchy> {
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    parse(&membership, &mounts)
}

/// The directory of the hierarchy that holds `controller`: that of v1 if it has one, else the unified one.
pub fn folder_of<'a>(hierarchies: &'a [Hierarchy], controller: &str) -> Option<&'a Hierarchy> {
    hierarchies
        .iter()
        .find(|hierarchy| hierarchy.controllers.iter().any(|name| name == controller))
        .or_else(|| hierarchies.iter().find(|hierarchy| hierarchy.is_unified()))
        .filter(|hierarchy| hierarchy.folder.is_some())
}

fn parse(membership: &str, mounts: &str) -> Vec<Hierarchy> {
    let mut hierarchies = Vec::new();
    for line in membership.lines() {
        // Only the first two colons separate: a path may contain more.
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) =
            (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let path = without_own_group(path);
        let controllers: Vec<String> = controllers
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        let folder = mounts
            .lines()
            .filter_map(|line| folder_in_mount(line, &controllers, path))
            .next_back();
        hierarchies.push(Hierarchy {
            controllers,
            path: path.to_owned(),
            folder,
        });
    }
    hierarchies
}

/// The directory of `path` if this line of mountinfo is the mount of the hierarchy with these controllers.
fn folder_in_mount(line: &str, controllers: &[String], path: &str) -> Option<PathBuf> {
    let mount = Mount::parse(line)?;
    let is_ours = if controllers.is_empty() {
        mount.fstype == "cgroup2"
    } else {
        mount.fstype == "cgroup"
            && controllers.iter().all(|name| {
                let mut options = mount.super_options.split(',');
                options.any(|option| option == name)
            })
    };
    if !is_ours {
        return None;
    }
    let below = if mount.root == "/" {
        path
    } else {
        let below = path.strip_prefix(&mount.root)?;
        if !below.is_empty() && !below.starts_with('/') {
            return None;
        }
        below
    };
    Some(PathBuf::from(mount.point).join(below.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
25 1 0:21 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
26 25 0:22 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
27 25 0:23 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
";

    #[test]
    fn in_a_hybrid_tree_each_hierarchy_has_its_own_directory() {
        let found = parse("3:cpu,cpuacct:/a:b\n0::/user\n", HYBRID);
        assert_eq!(
            found[0].folder.as_deref(),
            Some("/sys/fs/cgroup/cpu,cpuacct/a:b".as_ref())
        );
        assert_eq!(
            found[1].folder.as_deref(),
            Some("/sys/fs/cgroup/unified/user".as_ref())
        );
        assert_eq!(folder_of(&found, "cpu"), Some(&found[0]));
        assert_eq!(folder_of(&found, "memory"), Some(&found[1]));
    }

    #[test]
    fn a_bind_of_a_part_of_the_tree_is_followed_and_a_path_outside_of_it_is_not_guessed() {
        let mounts = "30 25 0:22 /docker/ab /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        let inside = parse("3:cpu:/docker/ab\n", mounts);
        assert_eq!(
            inside[0].folder.as_deref(),
            Some("/sys/fs/cgroup/cpu".as_ref())
        );
        for outside in ["3:cpu:/\n", "3:cpu:/docker/abc\n"] {
            assert_eq!(parse(outside, mounts)[0].folder, None, "{outside}");
        }
    }

    #[test]
    fn the_agents_own_group_is_stepped_over() {
        let found = parse("3:cpu,cpuacct:/\n0::/user/tare-run-1+77\n", HYBRID);
        assert_eq!(found[1].path, "/user");
        assert_eq!(
            found[1].folder.as_deref(),
            Some("/sys/fs/cgroup/unified/user".as_ref())
        );
        assert_eq!(parse("0::/tare-run-1+77\n", HYBRID)[0].path, "/");
        assert_eq!(
            parse("0::/tare-run-1-arm\n", HYBRID)[0].path,
            "/tare-run-1-arm"
        );
    }
}
