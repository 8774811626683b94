//! Finds the mounted cgroup hierarchies and this process's cgroup in each.
//!
//! Read from /proc/self/mountinfo and /proc/self/cgroup, never assumed: version 1, version 2 and hybrid setups all
//! exist, and a process may have a different path in each hierarchy. Inside a container a cgroup namespace may
//! rewrite both files, or a mount may show only a part of the tree; if the path is not below the mount's root, there
//! is no readable directory, and none is guessed.
//! Limits: hierarchies that are not mounted in this mount namespace are missed.
//! Source: cgroups(7), cgroup_namespaces(7).

use std::fs;
use std::path::{Path, PathBuf};

use tare_model::mountinfo::{Membership, Mount};

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its mount point.
    pub mount_point: PathBuf,
    /// The directory of this process's cgroup.
    pub own: PathBuf,
    /// The options that `mount` needs to mount it again: `cpu,cpuacct`, `none,name=systemd`; empty for version 2.
    pub options: String,
    /// Its controllers; for version 2 those of this process's cgroup, if they were looked up.
    pub controllers: Vec<String>,
    /// Whether it is version 2.
    pub is_unified: bool,
}

impl Hierarchy {
    /// Returns whether it has this controller.
    pub fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|own| own == controller)
    }

    /// Returns the directory with this process's limits and counters. That is the cgroup that the agent was started
    /// in: the one that the agent makes below it has no controllers.
    pub fn limited_in(&self) -> &Path {
        let is_own = |name: &std::ffi::OsStr| name.to_str().is_some_and(is_own_group);
        match self.own.parent() {
            Some(outer) if self.own.file_name().is_some_and(is_own) => outer,
            _ => &self.own,
        }
    }
}

/// Returns whether a directory's name is that of a cgroup made by an agent, `tare-<run>+<agent's pid>`, which no
/// other program would use.
pub fn is_own_group(name: &str) -> bool {
    let agent = name
        .strip_prefix("tare-")
        .and_then(|rest| rest.split_once('+'))
        .map_or("", |(_, agent)| agent);
    !agent.is_empty() && agent.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns a path without the agent's cgroup at its end.
pub fn without_own_group(path: &str) -> &str {
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

/// Returns whether a word of a mount's super-block options names a controller.
fn is_controller(word: &str) -> bool {
    const OTHERS: [&str; 7] = tare_model::rows! {
        "rw", "ro", "xattr", "clone_children", "noprefix", "seclabel", "relatime",
    };
    !word.is_empty() && !OTHERS.contains(&word) && !word.contains('=')
}

/// Returns the directory of the cgroup `path` under a mount that shows the tree from `root` on; `None` if the mount
/// does not reach it.
fn place(mount_point: &Path, root: &str, path: &str) -> Option<PathBuf> {
    let below = if root == "/" {
        path
    } else {
        path.strip_prefix(root)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))?
    };
    // A path that begins with `/..` is outside this cgroup namespace.
    if below.split('/').any(|part| part == "..") {
        return None;
    }
    Some(mount_point.join(below.trim_start_matches('/')))
}

fn parse(mountinfo: &str, membership: &str) -> Vec<Hierarchy> {
    let mut found: Vec<Hierarchy> = Vec::new();
    for mount in Mount::all(mountinfo) {
        let is_unified = match mount.fstype {
            "cgroup" => false,
            "cgroup2" => true,
            _ => continue,
        };
        let words = || mount.super_options.split(',');
        let named = words().find(|word| word.starts_with("name="));
        let controllers: Vec<String> = words()
            .filter(|word| !is_unified && is_controller(word))
            .map(str::to_owned)
            .collect();
        let is_this = |member: &Membership<'_>| match controllers.first() {
            _ if is_unified => member.names.is_empty(),
            Some(controller) => member.names.split(',').any(|name| name == controller),
            None => named.is_some_and(|named| member.names == named),
        };
        let mount_point = PathBuf::from(mount.point);
        let Some(own) = Membership::all(membership)
            .find(is_this)
            .and_then(|member| place(&mount_point, &mount.root, member.path))
        else {
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

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the hierarchies that are mounted here, without looking up the version 2 controllers.
pub fn hierarchies() -> Vec<Hierarchy> {
    let of_self = |name: &str| read(&Path::new("/proc/self").join(name));
    parse(&of_self("mountinfo"), &of_self("cgroup"))
}

/// Returns the hierarchies that are mounted here, with the version 2 controllers.
pub fn mounted() -> Vec<Hierarchy> {
    let mut found = hierarchies();
    for hierarchy in found.iter_mut().filter(|one| one.is_unified) {
        let controllers = read(&hierarchy.own.join("cgroup.controllers"));
        hierarchy.controllers = controllers.split_whitespace().map(str::to_owned).collect();
    }
    found
}

/// Returns the hierarchy that has a controller: that of version 1 if there is one, else the unified one.
pub fn holding<'a>(hierarchies: &'a [Hierarchy], controller: &str) -> Option<&'a Hierarchy> {
    let mut old = hierarchies.iter().filter(|one| !one.is_unified);
    old.find(|one| one.has(controller))
        .or_else(|| hierarchies.iter().find(|one| one.is_unified))
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
    }

    #[test]
    fn cgroup_path_is_relative_to_mount_root() {
        let mountinfo = r"1 0 0:1 /docker/x /sys/fs/cgroup\040two rw - cgroup2 cgroup2 rw";
        let found = parse(mountinfo, "0::/docker/x/y");
        assert_eq!(found[0].own, Path::new("/sys/fs/cgroup two/y"));
        assert!(parse(mountinfo, "0::/docker/xy").is_empty());
        assert!(parse(mountinfo, "0::/../z").is_empty());
    }

    #[test]
    fn hybrid_cgroup_prefers_v1_controller() {
        let found = parse(HYBRID, "2:cpu,cpuacct:/a:b\n0::/user");
        let folder = |controller: &str| holding(&found, controller).unwrap().limited_in();
        assert_eq!(folder("cpu"), Path::new("/sys/fs/cgroup/cpu,cpuacct/a:b"));
        assert_eq!(folder("memory"), Path::new("/sys/fs/cgroup/unified/user"));
    }

    #[test]
    fn the_agents_own_group_is_stepped_over() {
        for (path, outer, folder) in [
            ("/user/tare-run-1+77", "/user", "user"),
            ("/tare-run-1+77", "/", ""),
            ("/tare-run-1-arm", "/tare-run-1-arm", "tare-run-1-arm"),
        ] {
            let found = parse(HYBRID, &format!("0::{path}\n"));
            let place = Path::new("/sys/fs/cgroup/unified").join(folder);
            assert_eq!(found[0].limited_in(), place);
            assert_eq!(without_own_group(path), outer);
        }
    }
}
