//! The facts that Linux gives: kernel, processors, mitigations, security, limits, mounts, namespaces.
//!
//! Names follow the file that a fact comes from where there is one (`status.Seccomp`, `cgroup.cpu.max`).
//! Sources: proc(5), cgroups(7), the kernel's Documentation/ABI/testing/sysfs-devices-system-cpu.
//! What it cannot see: files that the environment hides; they come out as `unreadable`.

use std::ffi::CString;
use std::io;
use std::path::Path;

use super::{Collector, calls, machine, network, process};
use crate::cgroup::{self, Hierarchy, unescape};

/// Fields of `/proc/self/status` that tell what the kernel forbids this process or charges it for.
const STATUS: &[&str] = &[
    "Seccomp",
    "Seccomp_filters",
    "Speculation_Store_Bypass",
    "SpeculationIndirectBranch",
    "NoNewPrivs",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "Cpus_allowed_list",
    "Mems_allowed_list",
    "THP_enabled",
    "Uid",
    "Gid",
];

/// Controllers with the files that hold their limits: v1's name, v2's name.
const LIMITS: &[(&str, &[&str], &[&str])] = &[
    (
        "cpu",
        &["cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.shares"],
        &["cpu.max", "cpu.weight"],
    ),
    (
        "cpuset",
        &["cpuset.cpus", "cpuset.mems"],
        &["cpuset.cpus.effective", "cpuset.mems.effective"],
    ),
    (
        "memory",
        &["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
        &["memory.max", "memory.high", "memory.swap.max"],
    ),
    ("pids", &["pids.max"], &["pids.max"]),
    (
        "blkio",
        &[
            "blkio.throttle.read_bps_device",
            "blkio.throttle.write_bps_device",
            "blkio.throttle.read_iops_device",
            "blkio.throttle.write_iops_device",
        ],
        &["io.max", "io.weight"],
    ),
];

/// Resource limits that change what a probe sees.
const RLIMITS: &[(&str, libc::c_int)] = &[
    ("nofile", libc::RLIMIT_NOFILE as libc::c_int),
    ("nproc", libc::RLIMIT_NPROC as libc::c_int),
    ("stack", libc::RLIMIT_STACK as libc::c_int),
    ("memlock", libc::RLIMIT_MEMLOCK as libc::c_int),
    ("as", libc::RLIMIT_AS as libc::c_int),
    ("core", libc::RLIMIT_CORE as libc::c_int),
    ("fsize", libc::RLIMIT_FSIZE as libc::c_int),
];

/// Collects all of them.
pub(super) fn collect(facts: &mut Collector, paths: &[String]) {
    kernel(facts);
    processor(facts);
    memory(facts);
    status(facts);
    control_groups(facts, &cgroup::hierarchies());
    namespaces(facts);
    limits(facts);
    machine::collect(facts, &allowed().unwrap_or_default());
    network::collect(facts);
    process::collect(facts);
    calls::collect(facts);
    match std::fs::read_to_string("/proc/self/mountinfo") {
        Ok(mounts) => {
            facts.set("mounts.count", mounts.lines().count().to_string());
            for path in paths.iter().map(String::as_str) {
                mount(facts, path, &mounts);
            }
        }
        Err(error) => facts.unreadable("mounts.count", &error),
    }
}

fn kernel(facts: &mut Collector) {
    facts.file("kernel.release", "/proc/sys/kernel/osrelease");
    facts.file("kernel.version", "/proc/sys/kernel/version");
    facts.file("kernel.cmdline", "/proc/cmdline");
    facts.file("kernel.boot_id", "/proc/sys/kernel/random/boot_id");
    facts.file("kernel.hostname", "/proc/sys/kernel/hostname");
    facts.file("kernel.core_pattern", "/proc/sys/kernel/core_pattern");
    // Since Linux 6.6.
    if let Ok(value) = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        facts.set("kernel.io_uring_disabled", value);
    }
    facts.file("lsm.label", "/proc/self/attr/current");
    facts.file("lsm.list", "/sys/kernel/security/lsm");
    match std::fs::read_to_string("/etc/os-release") {
        Ok(text) => {
            let pretty = text
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="));
            facts.set("os.name", pretty.unwrap_or_default().trim_matches('"'));
        }
        Err(error) => facts.unreadable("os.name", &error),
    }
}

fn processor(facts: &mut Collector) {
    match std::fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => {
            // x86 says "flags", ARM "Features"; the first processor stands for all.
            for (name, keys) in [
                ("cpu.model", &["model name", "Model", "CPU part"][..]),
                ("cpu.flags", &["flags", "Features"][..]),
                ("cpu.microcode", &["microcode"][..]),
                ("cpu.bugs", &["bugs"][..]),
            ] {
                let value = keys.iter().find_map(|key| field(&text, key));
                if let Some(value) = value {
                    facts.set(name, value);
                }
            }
        }
        Err(error) => facts.unreadable("cpu.model", &error),
    }
    // SAFETY: `sysconf` takes a number and touches no memory of ours.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    facts.set("cpu.count", online.to_string());
    facts.try_set("cpu.affinity", affinity());
    let cpu = Path::new("/sys/devices/system/cpu");
    match std::fs::read_dir(cpu.join("vulnerabilities")) {
        Ok(entries) => {
            for entry in entries.flatten() {
                let name = format!("mitigation.{}", entry.file_name().to_string_lossy());
                facts.file(&name, entry.path());
            }
        }
        Err(error) => facts.unreadable("mitigation", &error),
    }
    facts.file("cpu.governor", cpu.join("cpu0/cpufreq/scaling_governor"));
    facts.file("cpu.smt", cpu.join("smt/control"));
    let clock = Path::new("/sys/devices/system/clocksource/clocksource0");
    facts.file("clocksource.current", clock.join("current_clocksource"));
    facts.file("clocksource.available", clock.join("available_clocksource"));
}

/// The value of `key` in text of the form `key : value`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// The processors that the scheduler may use for this process, for example `0-3,6`.
fn affinity() -> io::Result<String> {
    allowed().map(|cpus| ranges(&cpus))
}

fn allowed() -> io::Result<Vec<usize>> {
    // SAFETY: `cpu_set_t` is plain data for which all zeroes, the empty set, is a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is live and exclusively borrowed, its size is given, and 0 means this thread.
    if unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok((0..libc::CPU_SETSIZE as usize)
        // SAFETY: the number lies within the set.
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Ascending numbers as ranges.
fn ranges(numbers: &[usize]) -> String {
    let mut text = String::new();
    let mut index = 0;
    while index < numbers.len() {
        let first = numbers[index];
        while index + 1 < numbers.len() && numbers[index + 1] == numbers[index] + 1 {
            index += 1;
        }
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if numbers[index] > first {
            text.push('-');
            text.push_str(&numbers[index].to_string());
        }
        index += 1;
    }
    text
}

fn memory(facts: &mut Collector) {
    match std::fs::read_to_string("/proc/meminfo") {
        Ok(text) => {
            for (name, key) in [
                ("memory.total_bytes", "MemTotal"),
                ("memory.available_bytes", "MemAvailable"),
                ("memory.swap_bytes", "SwapTotal"),
            ] {
                let kibibytes = field(&text, key)
                    .and_then(|value| value.strip_suffix(" kB"))
                    .and_then(|value| value.parse::<u64>().ok());
                if let Some(kibibytes) = kibibytes {
                    facts.set(name, (kibibytes * 1024).to_string());
                }
            }
        }
        Err(error) => facts.unreadable("memory.total_bytes", &error),
    }
    let pages = Path::new("/sys/kernel/mm/transparent_hugepage");
    facts.file("thp.enabled", pages.join("enabled"));
    facts.file("thp.defrag", pages.join("defrag"));
    facts.file("thp.shmem_enabled", pages.join("shmem_enabled"));
    match file_system("/dev/shm") {
        Ok(status) => facts.set(
            "shm.size_bytes",
            (status.f_blocks * status.f_bsize as u64).to_string(),
        ),
        Err(error) => facts.unreadable("shm.size_bytes", &error),
    }
}

fn file_system(path: &str) -> io::Result<libc::statfs> {
    let path = CString::new(path)?;
    // SAFETY: `statfs` is plain data for which all zeroes is a valid value.
    let mut status: libc::statfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path ends with a zero byte, and `status` is live and exclusively borrowed.
    if unsafe { libc::statfs(path.as_ptr(), &raw mut status) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(status)
}

fn status(facts: &mut Collector) {
    match std::fs::read_to_string("/proc/self/status") {
        Ok(text) => {
            for key in STATUS {
                if let Some(value) = field(&text, key) {
                    facts.set(&format!("status.{key}"), value);
                }
            }
        }
        Err(error) => facts.unreadable("status", &error),
    }
    // SAFETY: `geteuid` has no precondition and cannot fail.
    facts.set("uid", unsafe { libc::geteuid() }.to_string());
}

fn control_groups(facts: &mut Collector, hierarchies: &[Hierarchy]) {
    let has_v1 = hierarchies.iter().any(|one| !one.is_unified());
    let has_v2 = hierarchies.iter().any(Hierarchy::is_unified);
    let layout = match (has_v1, has_v2) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    };
    facts.set("cgroup.layout", layout);
    for hierarchy in hierarchies {
        let name = if hierarchy.is_unified() {
            "unified".to_owned()
        } else {
            hierarchy.controllers.join("+").replace("name=", "")
        };
        facts.set(&format!("cgroup.path.{name}"), &hierarchy.path);
    }
    for (controller, v1, v2) in LIMITS {
        let Some(hierarchy) = cgroup::folder_of(hierarchies, controller) else {
            let error =
                io::Error::new(io::ErrorKind::NotFound, "its hierarchy is not mounted here");
            facts.unreadable(&format!("cgroup.{controller}"), &error);
            continue;
        };
        let files = if hierarchy.is_unified() { v2 } else { v1 };
        for file in *files {
            if let Some(folder) = &hierarchy.folder {
                // The root group of v2 has no limits, and so no files for them: that is no error.
                let path = folder.join(file);
                if path.exists() || !hierarchy.is_unified() {
                    facts.file(&format!("cgroup.{file}"), path);
                }
            }
        }
    }
}

fn namespaces(facts: &mut Collector) {
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"] {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        facts.try_set(
            &format!("ns.{name}"),
            link.map(|target| target.to_string_lossy().into_owned()),
        );
    }
}

fn limits(facts: &mut Collector) {
    for (name, resource) in RLIMITS {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: `limit` is live and exclusively borrowed; a number that is no resource gives an error.
        let result = unsafe { libc::getrlimit(*resource as _, &raw mut limit) };
        let text = |value: libc::rlim_t| {
            if value == libc::RLIM_INFINITY {
                "unlimited".to_owned()
            } else {
                value.to_string()
            }
        };
        let name = format!("rlimit.{name}");
        if result == 0 {
            let value = format!("{} {}", text(limit.rlim_cur), text(limit.rlim_max));
            facts.set(&name, value);
        } else {
            facts.unreadable(&name, &io::Error::last_os_error());
        }
    }
}

/// One line of mountinfo, as far as it is wanted.
#[derive(Debug, PartialEq, Eq)]
struct Mount<'a> {
    device: &'a str,
    root: String,
    point: String,
    options: &'a str,
    fstype: &'a str,
    source: String,
    super_options: &'a str,
}

fn parse_mount(line: &str) -> Option<Mount<'_>> {
    let (left, right) = line.split_once(" - ")?;
    let mut left = left.split(' ').skip(2);
    let mut right = right.split(' ');
    Some(Mount {
        device: left.next()?,
        root: unescape(left.next()?),
        point: unescape(left.next()?),
        options: left.next()?,
        fstype: right.next()?,
        source: unescape(right.next()?),
        super_options: right.next()?,
    })
}

/// The mount that a path lies on: that with the longest mount point above it, the last of equal ones,
/// because it hides the others.
fn mount_of<'a>(path: &Path, mounts: &'a str) -> Option<Mount<'a>> {
    mounts
        .lines()
        .filter_map(parse_mount)
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.len())
}

fn mount(facts: &mut Collector, path: &str, mounts: &str) {
    let real = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => return facts.unreadable(&format!("mount.{path}"), &error),
    };
    let Some(mount) = mount_of(&real, mounts) else {
        let error = io::Error::new(io::ErrorKind::NotFound, "no mount above it");
        return facts.unreadable(&format!("mount.{path}"), &error);
    };
    for (name, value) in [
        ("fstype", mount.fstype),
        ("source", &mount.source),
        ("options", mount.options),
        ("super_options", mount.super_options),
        ("device", mount.device),
        ("point", &mount.point),
        ("root", &mount.root),
    ] {
        facts.set(&format!("mount.{path}.{name}"), value);
    }
    machine::block_device(facts, &format!("mount.{path}"), mount.device);
    match file_system(path) {
        Ok(status) => {
            let free = status.f_bavail * status.f_bsize as u64;
            facts.set(&format!("mount.{path}.free_bytes"), free.to_string());
        }
        Err(error) => facts.unreadable(&format!("mount.{path}.free_bytes"), &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 21 0:30 / /mnt/a\\040b rw,nosuid shared:3 - tmpfs none rw,size=4k
31 21 0:31 / /mnt rw - overlay over rw,lowerdir=/x
32 21 0:32 /sub /mnt ro - xfs /dev/vdb rw
";

    #[test]
    fn a_path_lies_on_the_longest_and_last_mount_above_it() {
        let kind = |path: &str| mount_of(Path::new(path), MOUNTS).unwrap().fstype;
        assert_eq!(kind("/etc"), "ext4");
        assert_eq!(kind("/mnt/a b/c"), "tmpfs");
        assert_eq!(kind("/mnt/a"), "xfs");
        assert_eq!(kind("/mntx"), "ext4");
    }

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn this_place_tells_the_facts_that_rules_ask_for() {
        let facts = super::super::collect(&["/".to_owned(), "/nowhere".to_owned()]);
        for name in [
            "kernel.release",
            "status.CapEff",
            "cgroup.layout",
            "mount./.fstype",
            "ns.net",
            "rlimit.nofile",
            "memory.total_bytes",
            "cpu.affinity",
            "errno.perf_event_open",
            "net.loopback.mtu",
            "libc",
            "unreadable.mount./nowhere",
        ] {
            assert!(facts.contains_key(name), "{name} is missing: {facts:#?}");
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(facts["kernel.release"], release.trim());
    }
}
