//! Where the host's kernel counts what an instance uses: from outside, whatever the inside is allowed to see.
//!
//! A container's control groups are found from one of its processes, and only where their path bears the
//! container's name: an engine in a virtual machine counts its processes there, and the same number here is
//! somebody else's. What it cannot see: work that others do for the instance, such as the engine that writes its
//! log.

use crate::env::prelude::*;

use tare_model::mountinfo::{Membership, Mount, cgroup_layout};

use crate::cx::processes::with_all_below;

/// Where what an instance uses is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charged {
    /// Not by this machine's kernel, or together with others.
    Nowhere,
    /// In the folders of its control groups, one a hierarchy.
    Groups(Vec<PathBuf>),
    /// In this process and all below it.
    Process(u32),
}

impl Charged {
    /// The groups of the process `pid` whose path holds `name`.
    pub(super) fn to_groups_of(pid: u32, name: &str) -> Self {
        let membership = files::read_text(Path::new(&format!("/proc/{pid}/cgroup")));
        Self::to_groups(&membership.unwrap_or_default(), name, &mounts().1)
    }

    fn to_groups(membership: &str, name: &str, places: &[PathBuf]) -> Self {
        let mut paths: Vec<&str> = Membership::all(membership)
            .map(|membership| membership.path)
            .filter(|path| !name.is_empty() && path.contains(name))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        // A name that is nobody else's is in no hierarchy but its own.
        let folders = places.iter().flat_map(|place| {
            paths
                .iter()
                .map(|path| place.join(path.trim_start_matches('/')))
        });
        Self::of_groups(folders.filter(|folder| folder.is_dir()).collect())
    }

    /// How much memory of this machine's it holds at the moment, bytes: what its group is charged with, or what its
    /// processes have, of what they share with others their part; `None` where that is not counted.
    pub fn memory_bytes(&self) -> Option<u64> {
        match self {
            Self::Nowhere => None,
            Self::Groups(folders) => folders
                .iter()
                .flat_map(|folder| GROUP_MEMORY.iter().map(|name| folder.join(name)))
                .find_map(|path| files::read_text(&path).ok()?.trim().parse().ok()),
            Self::Process(pid) => memory_of(*pid),
        }
    }

    /// Its processes at the moment, as this machine numbers them.
    pub fn processes(&self) -> Vec<u32> {
        let in_group = |group: &PathBuf| {
            let pids = files::read_text(&group.join("cgroup.procs")).unwrap_or_default();
            let pids = pids.lines().filter_map(|line| line.parse().ok());
            pids.collect::<Vec<u32>>()
        };
        match self {
            Self::Nowhere => Vec::new(),
            Self::Groups(folders) => {
                let mut all: Vec<u32> = folders.iter().flat_map(in_group).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
            Self::Process(pid) => with_all_below(&[*pid]),
        }
    }

    /// In these folders, if there is one.
    pub(super) fn of_groups(folders: Vec<PathBuf>) -> Self {
        if folders.is_empty() {
            Self::Nowhere
        } else {
            Self::Groups(folders)
        }
    }
}

/// Where a group's memory stands, in the newer and the older hierarchy.
const GROUP_MEMORY: [&str; 2] = ["memory.current", "memory.usage_in_bytes"];

/// The memory of a process and of all below it.
fn memory_of(pid: u32) -> Option<u64> {
    let read = |path: String| files::read_text(Path::new(&path)).ok();
    let text = read(format!("/proc/{pid}/smaps_rollup"))?;
    let own = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let own_kib: u64 = own.split_whitespace().next()?.parse().ok()?;
    let children = read(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below = children
        .split_whitespace()
        .filter_map(|child| memory_of(child.parse().ok()?));
    Some(own_kib * 1024 + below.sum::<u64>())
}

/// How the host's control groups are mounted: `v1`, `v2`, `hybrid` or `none`; and where.
pub(super) fn mounts() -> (&'static str, Vec<PathBuf>) {
    let text = files::mounts();
    let mounts: Vec<Mount<'_>> = Mount::all(&text)
        .filter(|mount| matches!(mount.fstype, "cgroup" | "cgroup2"))
        .collect();
    let has = |wanted: &str| mounts.iter().any(|mount| mount.fstype == wanted);
    let layout = cgroup_layout(has("cgroup"), has("cgroup2"));
    let places = mounts.into_iter().map(|mount| PathBuf::from(mount.point));
    (layout, places.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_a_group_is_what_it_is_charged_with_and_of_nobody_is_not_known() {
        let place = tempfile::tempdir().unwrap();
        let (cpu, memory) = (place.path().join("cpu"), place.path().join("memory"));
        for folder in [&cpu, &memory] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let charged = Charged::of_groups(vec![cpu, memory.clone()]);
        assert_eq!(charged.memory_bytes(), None);
        std::fs::write(memory.join("memory.usage_in_bytes"), "8192\n").unwrap();
        assert_eq!(charged.memory_bytes(), Some(8192));
        assert_eq!(Charged::Nowhere.memory_bytes(), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_are_those_of_its_groups_or_below_its_own() {
        let own = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let below = Charged::Process(own).processes();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(below.contains(&own) && below.contains(&child.id()));
        let place = tempfile::tempdir().unwrap();
        let groups = ["cpu", "memory"].map(|name| place.path().join(name));
        for group in &groups {
            std::fs::create_dir_all(group).unwrap();
            std::fs::write(group.join("cgroup.procs"), "7\n5\n").unwrap();
        }
        assert_eq!(Charged::of_groups(groups.to_vec()).processes(), [5, 7]);
        assert!(Charged::Nowhere.processes().is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_memory_of_a_process_holds_that_of_its_children() {
        let own = Charged::Process(std::process::id()).memory_bytes().unwrap();
        assert!(own > 64 << 10, "{own}");
    }

    #[test]
    fn a_group_is_a_containers_only_if_its_path_bears_the_name() {
        let place = tempfile::tempdir().unwrap();
        let (cpu, memory) = (place.path().join("cpu"), place.path().join("memory"));
        let own = cpu.join("docker/0a1b");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&memory).unwrap();
        let places = [cpu, memory];
        let membership = "4:memory:/docker/0a1b\n3:cpu,cpuacct:/docker/0a1b\n0::/\n";
        let charged = |name: &str| Charged::to_groups(membership, name, &places);
        assert_eq!(charged("0a1b"), Charged::Groups(vec![own]));
        assert_eq!(charged("ffff"), Charged::Nowhere);
        assert_eq!(charged(""), Charged::Nowhere);
    }
}
