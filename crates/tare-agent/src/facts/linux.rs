//! Collects Linux's facts: kernel, CPUs, mitigations, security, limits, mounts, namespaces.
//!
//! A fact that comes from a file is named after it (`status.Seccomp`, `cgroup.cpu.max`).
//! Sources: proc(5), cgroups(7), the kernel's Documentation/ABI/testing/sysfs-devices-system-cpu.
//! Limits: files that the environment hides are reported as `unreadable`.

use std::ffi::CString;
use std::io;
use std::path::Path;

use tare_model::fact;

use super::{Collector, calls, machine, network, process};
use crate::cgroup;
use tare_model::mountinfo::{Membership, Mount, cgroup_layout};

/// Fields of `/proc/self/status` that show what the kernel forbids this process or slows it down with.
const STATUS: &[&str] = &tare_model::rows! {
    fact::STATUS_SECCOMP, fact::STATUS_SECCOMP_FILTERS, fact::STATUS_STORE_BYPASS,
    fact::STATUS_INDIRECT_BRANCH, fact::STATUS_NO_NEW_PRIVS, fact::STATUS_CAP_INH, fact::STATUS_CAP_PRM,
    fact::STATUS_CAP_EFF, fact::STATUS_CAP_BND, fact::STATUS_CAP_AMB, fact::STATUS_CPUS_ALLOWED,
    fact::STATUS_MEMS_ALLOWED, fact::STATUS_THP_ENABLED, fact::STATUS_UID, fact::STATUS_GID,
};

/// Controllers with the facts from their limit files, v1 and v2. A fact is named after its file.
const LIMITS: &[(&str, &[&str], &[&str])] = &[
    (
        "cpu",
        &[
            fact::CGROUP_CFS_QUOTA,
            fact::CGROUP_CFS_PERIOD,
            fact::CGROUP_CPU_SHARES,
        ],
        &[fact::CGROUP_CPU_MAX, fact::CGROUP_CPU_WEIGHT],
    ),
    (
        "cpuset",
        &[fact::CGROUP_CPUSET_CPUS, fact::CGROUP_CPUSET_MEMS],
        &[
            fact::CGROUP_CPUSET_CPUS_EFFECTIVE,
            fact::CGROUP_CPUSET_MEMS_EFFECTIVE,
        ],
    ),
    (
        "memory",
        &[fact::CGROUP_MEMORY_LIMIT, fact::CGROUP_MEMSW_LIMIT],
        &[
            fact::CGROUP_MEMORY_MAX,
            fact::CGROUP_MEMORY_HIGH,
            fact::CGROUP_SWAP_MAX,
        ],
    ),
    ("pids", &[fact::CGROUP_PIDS_MAX], &[fact::CGROUP_PIDS_MAX]),
    (
        "blkio",
        &[
            fact::CGROUP_READ_BPS,
            fact::CGROUP_WRITE_BPS,
            fact::CGROUP_READ_IOPS,
            fact::CGROUP_WRITE_IOPS,
        ],
        &[fact::CGROUP_IO_MAX, fact::CGROUP_IO_WEIGHT],
    ),
];

/// The C library's type for a resource number.
#[cfg(target_env = "gnu")]
type Resource = libc::__rlimit_resource_t;
/// The C library's type for a resource number.
#[cfg(not(target_env = "gnu"))]
type Resource = libc::c_int;

/// Resource limits that affect a probe.
const RLIMITS: &[(&str, Resource)] = &[
    ("nofile", libc::RLIMIT_NOFILE),
    ("nproc", libc::RLIMIT_NPROC),
    ("stack", libc::RLIMIT_STACK),
    ("memlock", libc::RLIMIT_MEMLOCK),
    ("as", libc::RLIMIT_AS),
    ("core", libc::RLIMIT_CORE),
    ("fsize", libc::RLIMIT_FSIZE),
];

/// Collects all Linux facts; `paths` are those whose mount is wanted.
pub(super) fn collect(facts: &mut Collector, paths: &[String]) {
    kernel(facts);
    processor(facts);
    memory(facts);
    status(facts);
    control_groups(facts);
    namespaces(facts);
    limits(facts);
    machine::collect(facts, &allowed().unwrap_or_default());
    network::collect(facts);
    process::collect(facts);
    calls::collect(facts);
    match std::fs::read_to_string("/proc/self/mountinfo") {
        Ok(mounts) => {
            facts.set(fact::MOUNTS_COUNT, mounts.lines().count().to_string());
            for path in paths.iter().map(String::as_str) {
                mount(facts, path, &mounts);
            }
        }
        Err(error) => facts.unreadable(fact::MOUNTS_COUNT, &error),
    }
}

fn kernel(facts: &mut Collector) {
    facts.file(fact::KERNEL_RELEASE, "/proc/sys/kernel/osrelease");
    facts.file(fact::KERNEL_VERSION, "/proc/sys/kernel/version");
    facts.file(fact::KERNEL_CMDLINE, "/proc/cmdline");
    facts.file(fact::KERNEL_BOOT_ID, "/proc/sys/kernel/random/boot_id");
    facts.file(fact::KERNEL_HOSTNAME, "/proc/sys/kernel/hostname");
    facts.file(fact::KERNEL_CORE_PATTERN, "/proc/sys/kernel/core_pattern");
    // Since Linux 6.6.
    if let Ok(value) = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled") {
        facts.set(fact::KERNEL_IO_URING_DISABLED, value);
    }
    facts.file(fact::LSM_LABEL, "/proc/self/attr/current");
    facts.file(fact::LSM_LIST, "/sys/kernel/security/lsm");
    match std::fs::read_to_string("/etc/os-release") {
        Ok(text) => {
            let pretty = text
                .lines()
                .find_map(|line| line.strip_prefix("PRETTY_NAME="));
            facts.set(fact::OS_NAME, pretty.unwrap_or_default().trim_matches('"'));
        }
        Err(error) => facts.unreadable(fact::OS_NAME, &error),
    }
}

fn processor(facts: &mut Collector) {
    match std::fs::read_to_string("/proc/cpuinfo") {
        Ok(text) => {
            // x86 has "flags", ARM "Features"; the first CPU is representative.
            for (name, keys) in [
                (fact::CPU_MODEL, &["model name", "Model", "CPU part"][..]),
                (fact::CPU_FLAGS, &["flags", "Features"][..]),
                (fact::CPU_MICROCODE, &["microcode"][..]),
                (fact::CPU_BUGS, &["bugs"][..]),
            ] {
                let value = keys.iter().find_map(|key| field(&text, key));
                if let Some(value) = value {
                    facts.set(name, value);
                }
            }
        }
        Err(error) => facts.unreadable(fact::CPU_MODEL, &error),
    }
    // SAFETY: `sysconf` takes a number and touches none of this process's memory.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    facts.set(fact::CPU_COUNT, online.to_string());
    facts.try_set(fact::CPU_AFFINITY, affinity());
    let cpu = Path::new("/sys/devices/system/cpu");
    match std::fs::read_dir(cpu.join("vulnerabilities")) {
        Ok(entries) => {
            for entry in entries.flatten() {
                let name = fact::name_for(fact::MITIGATION, &entry.file_name().to_string_lossy());
                facts.file(&name, entry.path());
            }
        }
        Err(error) => facts.unreadable("mitigation", &error),
    }
    facts.file(
        fact::CPU_GOVERNOR,
        cpu.join("cpu0/cpufreq/scaling_governor"),
    );
    facts.file(fact::CPU_SMT, cpu.join("smt/control"));
    let clock = Path::new("/sys/devices/system/clocksource/clocksource0");
    facts.file(fact::CLOCKSOURCE_CURRENT, clock.join("current_clocksource"));
    facts.file(
        fact::CLOCKSOURCE_AVAILABLE,
        clock.join("available_clocksource"),
    );
}

/// Returns the value of `key` in text of the form `key : value`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Returns the CPUs that the scheduler may use for this process, for example `0-3,6`.
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
        // SAFETY: the number is within the set.
        .filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) })
        .collect())
}

/// Formats ascending numbers as ranges.
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
                (fact::MEMORY_TOTAL, "MemTotal"),
                (fact::MEMORY_AVAILABLE, "MemAvailable"),
                (fact::MEMORY_SWAP, "SwapTotal"),
            ] {
                let kibibytes = field(&text, key)
                    .and_then(|value| value.strip_suffix(" kB"))
                    .and_then(|value| value.parse::<u64>().ok());
                if let Some(kibibytes) = kibibytes {
                    facts.set(name, (kibibytes * 1024).to_string());
                }
            }
        }
        Err(error) => facts.unreadable(fact::MEMORY_TOTAL, &error),
    }
    let pages = Path::new("/sys/kernel/mm/transparent_hugepage");
    facts.file(fact::THP_ENABLED, pages.join("enabled"));
    facts.file(fact::THP_DEFRAG, pages.join("defrag"));
    facts.file(fact::THP_SHMEM, pages.join("shmem_enabled"));
    match file_system("/dev/shm") {
        Ok(status) => facts.set(
            fact::SHM_SIZE,
            in_bytes(status.f_blocks, &status).to_string(),
        ),
        Err(error) => facts.unreadable(fact::SHM_SIZE, &error),
    }
}

/// Converts a number of file system blocks to bytes.
#[allow(
    clippy::cast_sign_loss,
    reason = "a length, whose type depends on the C library"
)]
fn in_bytes(blocks: u64, status: &libc::statfs) -> u64 {
    blocks * status.f_bsize as u64
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
            for name in STATUS {
                let key = &name[fact::beginning(fact::STATUS).len()..];
                if let Some(value) = field(&text, key) {
                    facts.set(name, value);
                }
            }
        }
        Err(error) => facts.unreadable("status", &error),
    }
    // SAFETY: `geteuid` has no precondition and cannot fail.
    facts.set(fact::UID, unsafe { libc::geteuid() }.to_string());
}

fn control_groups(facts: &mut Collector) {
    let text = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let is_unified = |member: &Membership<'_>| member.names.is_empty();
    let has_v1 = Membership::all(&text).any(|member| !is_unified(&member));
    let has_v2 = Membership::all(&text).any(|member| is_unified(&member));
    facts.set(fact::CGROUP_LAYOUT, cgroup_layout(has_v1, has_v2));
    for member in Membership::all(&text) {
        let name = match member.names {
            "" => "unified".to_owned(),
            names => names.replace(',', "+").replace("name=", ""),
        };
        let path = cgroup::without_own_group(member.path);
        facts.set(&fact::name_for(fact::CGROUP_PATH, &name), path);
    }
    let hierarchies = cgroup::hierarchies();
    for (controller, v1, v2) in LIMITS {
        let Some(hierarchy) = cgroup::holding(&hierarchies, controller) else {
            let name = fact::name_for(fact::UNREADABLE_CGROUP, controller);
            facts.set(&name, "its hierarchy is not mounted here");
            continue;
        };
        for name in *if hierarchy.is_unified { v2 } else { v1 } {
            // The root cgroup of v2 has no limits, so missing limit files there are no error.
            let path = hierarchy.limited_in().join(&name["cgroup.".len()..]);
            if path.exists() || !hierarchy.is_unified {
                facts.file(name, path);
            }
        }
    }
}

fn namespaces(facts: &mut Collector) {
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"] {
        let link = std::fs::read_link(format!("/proc/self/ns/{name}"));
        facts.try_set(
            &fact::name_for(fact::NS, name),
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
        let result = unsafe { libc::getrlimit(*resource, &raw mut limit) };
        let text = |value: libc::rlim_t| {
            if value == libc::RLIM_INFINITY {
                "unlimited".to_owned()
            } else {
                value.to_string()
            }
        };
        let name = fact::name_for(fact::RLIMIT, name);
        if result == 0 {
            let value = format!("{} {}", text(limit.rlim_cur), text(limit.rlim_max));
            facts.set(&name, value);
        } else {
            facts.unreadable(&name, &io::Error::last_os_error());
        }
    }
}

fn mount(facts: &mut Collector, path: &str, mounts: &str) {
    let real = match std::fs::canonicalize(path) {
        Ok(real) => real,
        Err(error) => return facts.unreadable(&fact::name_for(fact::MOUNT, path), &error),
    };
    let Some(mount) = Mount::under(&real, mounts) else {
        let error = io::Error::new(io::ErrorKind::NotFound, "no mount above it");
        return facts.unreadable(&fact::name_for(fact::MOUNT, path), &error);
    };
    for (name, value) in [
        (fact::MOUNT_FSTYPE, mount.fstype),
        (fact::MOUNT_SOURCE, &mount.source),
        (fact::MOUNT_OPTIONS, mount.options),
        (fact::MOUNT_SUPER_OPTIONS, mount.super_options),
        (fact::MOUNT_DEVICE, mount.device),
        (fact::MOUNT_POINT, &mount.point),
        (fact::MOUNT_ROOT, &mount.root),
    ] {
        facts.set(&fact::name_for(name, path), value);
    }
    machine::block_device(facts, path, mount.device);
    let name = fact::name_for(fact::MOUNT_FREE, path);
    match file_system(path) {
        Ok(status) => {
            let free = in_bytes(status.f_bavail, &status);
            facts.set(&name, free.to_string());
        }
        Err(error) => facts.unreadable(&name, &error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(ranges(&[]), "");
        assert_eq!(ranges(&[3]), "3");
        assert_eq!(ranges(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
    }

    #[test]
    fn collected_facts_include_those_used_by_rules() {
        let facts = super::super::collect(&["/".to_owned(), "/nowhere".to_owned()], &[]);
        for name in [
            fact::KERNEL_RELEASE,
            fact::STATUS_CAP_EFF,
            fact::CGROUP_LAYOUT,
            "mount./.fstype",
            fact::NS_NET,
            fact::RLIMIT_NOFILE,
            fact::MEMORY_TOTAL,
            fact::CPU_AFFINITY,
            "errno.perf_event_open",
            fact::NET_LOOPBACK_MTU,
            fact::LIBC,
            "unreadable.mount./nowhere",
        ] {
            assert!(facts.contains_key(name), "{name} is missing: {facts:#?}");
        }
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
        assert_eq!(facts[fact::KERNEL_RELEASE], release.trim());
    }
}
