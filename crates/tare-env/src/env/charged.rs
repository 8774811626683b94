//! Finds where the host's kernel accounts for an instance's resource usage, seen from outside.
//!
//! A container's cgroups are found from one of its processes, and only if their path contains the container's name:
//! an engine in a virtual machine numbers processes there, and the same id here is another process.
//! Limits: work that other processes do for the instance is not counted, such as the engine that writes its log.

use crate::env::prelude::*;

use tare_model::mountinfo::{Membership, Mount, cgroup_layout};

use crate::cx::processes::with_all_below;

/// Where an instance's resource usage is accounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Charged {
    /// Not by this machine's kernel, or together with others.
    Nowhere,
    /// In the folders of its cgroups, one per hierarchy.
    Groups(Vec<PathBuf>),
    /// In this process and all its descendants.
    Process(u32),
}

impl Charged {
    /// The cgroups of the process `pid` whose path contains `name`.
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
        // A unique name exists only in its own hierarchy, so trying every combination is safe.
        let folders = places.iter().flat_map(|place| {
            paths
                .iter()
                .map(|path| place.join(path.trim_start_matches('/')))
        });
        Self::of_groups(folders.filter(|folder| folder.is_dir()).collect())
    }

    /// How much of this machine's memory it uses now, bytes: its cgroup's charge, or the proportional set size (PSS)
    /// of its processes; `None` if that is not accounted.
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

    /// Its current processes, by this machine's process ids.
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

    /// Accounted in these folders, or nowhere if there is none.
    pub(super) fn of_groups(folders: Vec<PathBuf>) -> Self {
        if folders.is_empty() {
            Self::Nowhere
        } else {
            Self::Groups(folders)
        }
    }
}

/// Files with a cgroup's memory usage, in v2 and v1.
const GROUP_MEMORY: [&str; 2] = ["memory.current", "memory.usage_in_bytes"];

/// The memory of a process and all its descendants.
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

/// How the host's cgroups are mounted: `v1`, `v2`, `hybrid` or `none`; and where.
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
    fn cgroup_memory_is_read_and_unknown_without_cgroup() {
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
    fn cgroup_is_container_only_if_path_has_its_name() {
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
