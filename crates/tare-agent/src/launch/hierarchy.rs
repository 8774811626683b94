//! Which cgroup hierarchies there are and where this process stands in each.
//!
//! Read from /proc/self/mountinfo and /proc/self/cgroup, never assumed: version 1, version 2 and the mix of
//! both all exist, and one process may stand at a different path in each hierarchy.
//! What it cannot see: hierarchies that are not mounted in this mount namespace.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mountinfo::Mount;

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    /// Where it is mounted.
    pub(super) mount_point: PathBuf,
    /// The folder of this process's own cgroup.
    pub(super) own: PathBuf,
    /// What `mount` needs to mount it again: `cpu,cpuacct`, `none,name=systemd`; empty for version 2.
    pub(super) options: String,
    /// Its controllers; for version 2 those of the own cgroup.
    pub(super) controllers: Vec<String>,
    /// Whether it is version 2.
    pub(super) is_unified: bool,
}

impl Hierarchy {
    /// Whether it has this controller.
    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }
}

/// Words of a mount's super-block options that name no controller.
fn is_controller(word: &str) -> bool {
    const OTHERS: [&str; 7] = [
        "rw",
        "ro",
        "xattr",
        "clone_children",
        "noprefix",
        "seclabel",
        "relatime",
    ];
    !word.is_empty() && !OTHERS.contains(&word) && !word.contains('=')
}

/// The folder of the cgroup `path` under a mount that shows the tree from `root` on; `None` when the mount
/// does not reach it.
fn place(mount_point: &Path, root: &str, path: &str) -> Option<PathBuf> {
    let below = if root == "/" {
        path
    } else {
        path.strip_prefix(root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))?
    };
    // A path that begins with `/..` lies outside of what this cgroup namespace shows.
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    Some(mount_point.join(below.trim_start_matches('/')))
}

fn parse(mountinfo: &str, membership: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for line in mountinfo.lines() {
        let Some(mount) = Mount::parse(line) else {
            continue;
        };
        let options = mount.super_options;
        let is_unified = match mount.fstype {
            "cgroup" => false,
            "cgroup2" => true,
            _ => continue,
        };
        let mount_point = PathBuf::from(mount.point);
        let named = options.split(',').find(|word| word.starts_with("name="));
        let controllers: Vec<String> = options
            .split(',')
            .filter(|word| !is_unified && is_controller(word))
            .map(str::to_owned)
            .collect();
        let path = membership.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, names, path) = (parts.next()?, parts.next()?, parts.next()?);
            let is_this = if is_unified {
                number == "0" && names.is_empty()
            } else if let Some(controller) = controllers.first() {
                names.split(',').any(|name| name == controller)
            } else {
                named.is_some_and(|named| names == named)
            };
            is_this.then_some(path)
        });
        let Some(own) = path.and_then(|path| place(&mount_point, &mount.root, path)) else {
            continue;
        };
        let options = match named {
            _ if is_unified => String::new(),
            Some(named) if controllers.is_empty() => format!("none,{named}"),
            _ => controllers.join(","),
        };
        let is_second =
            |other: &Hierarchy| other.is_unified == is_unified && other.options == options;
        if !found.iter().any(is_second) {
            found.push(Hierarchy {
                mount_point,
                own,
                options,
                controllers,
                is_unified,
            });
        }
    }
    found
}

/// The hierarchies that are mounted here.
pub(super) fn mounted() -> Vec<Hierarchy> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let mut found = parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
    for hierarchy in found.iter_mut().filter(|one| one.is_unified) {
        hierarchy.controllers = fs::read_to_string(hierarchy.own.join("cgroup.controllers"))
            .unwrap_or_default()
            .split_whitespace()
            .map(str::to_owned)
            .collect();
    }
    found
}

/// `v1`, `v2` or `hybrid`; `None` where nothing is mounted.
pub(super) fn version(hierarchies: &[Hierarchy]) -> Option<&'static str> {
    let has_unified = hierarchies.iter().any(|one| one.is_unified);
    let has_old = hierarchies.iter().any(|one| !one.is_unified);
    match (has_unified, has_old) {
        (true, true) => Some("hybrid"),
        (true, false) => Some("v2"),
        (false, true) => Some("v1"),
        (false, false) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn each_hierarchy_may_have_another_path() {
        let membership = "4:memory:/jobs/7\n2:cpu,cpuacct:/\n9:name=systemd:/user\n0::/";
        let found = parse(HYBRID, membership);
        let own: Vec<_> = found.iter().map(|one| one.own.to_str().unwrap()).collect();
        assert_eq!(
            own,
            [
                "/sys/fs/cgroup/cpu,cpuacct/",
                "/sys/fs/cgroup/memory/jobs/7",
                "/sys/fs/cgroup/systemd/user",
                "/sys/fs/cgroup/unified/",
            ]
        );
        let options: Vec<_> = found.iter().map(|one| one.options.as_str()).collect();
        assert_eq!(options, ["cpu,cpuacct", "memory", "none,name=systemd", ""]);
        assert_eq!(version(&found), Some("hybrid"));
    }

    #[test]
    fn a_mount_that_shows_a_part_of_the_tree_is_taken_from_that_part_on() {
        let mountinfo = r"1 0 0:1 /docker/x /sys/fs/cgroup\040two rw - cgroup2 cgroup2 rw";
        let found = parse(mountinfo, "0::/docker/x/y");
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup two/y"));
        assert!(parse(mountinfo, "0::/docker/xy").is_empty());
        assert!(parse(mountinfo, "0::/../z").is_empty());
        assert_eq!(version(&[]), None);
    }
}
