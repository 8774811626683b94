//! Collects facts about the machine: hypervisor, cores, NUMA nodes, block devices.
//!
//! A guest is recognised by the CPU's answer (CPUID leaf 0x4000_0000), not by files that an environment may hide or a
//! container inherits. Only cores among the usable CPUs are counted, because two hardware threads of one core are not
//! two CPUs.
//! Sources: Documentation/ABI/stable/sysfs-block, Documentation/ABI/testing/sysfs-devices-system-cpu, Intel SDM vol.
//! 2 and the hypervisors' documentation of the leaf. Limits: what sysfs hides here is missed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use tare_model::fact;

use super::Collector;

/// Collects all but the block devices; `cpus` are the usable CPUs.
pub(super) fn collect(facts: &mut Collector, cpus: &[usize]) {
    #[cfg(target_arch = "x86_64")]
    facts.set(
        fact::HYPERVISOR_VENDOR,
        hypervisor().as_deref().unwrap_or("none"),
    );
    if let Ok(kind) = std::fs::read_to_string("/sys/hypervisor/type") {
        facts.set(fact::HYPERVISOR_TYPE, kind);
    }
    let cpu = Path::new("/sys/devices/system/cpu");
    let cores: Option<BTreeSet<(String, String)>> = cpus
        .iter()
        .map(|number| {
            let topology = cpu.join(format!("cpu{number}/topology"));
            let read = |name: &str| std::fs::read_to_string(topology.join(name)).ok();
            Some((read("physical_package_id")?, read("core_id")?))
        })
        .collect();
    if let Some(cores) = cores.filter(|cores| !cores.is_empty()) {
        facts.set(fact::CPU_CORES, cores.len().to_string());
    }
    // Exist only on CPUs with two kinds of cores.
    for (name, path) in [
        (fact::CPU_PERFORMANCE_CORES, "/sys/devices/cpu_core/cpus"),
        (fact::CPU_EFFICIENCY_CORES, "/sys/devices/cpu_atom/cpus"),
        (
            fact::CPU_FREQUENCY_DRIVER,
            "/sys/devices/system/cpu/cpu0/cpufreq/scaling_driver",
        ),
        (
            fact::CPU_MAX_KHZ,
            "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq",
        ),
        (fact::NUMA_NODES, "/sys/devices/system/node/online"),
        (fact::KSM_RUN, "/sys/kernel/mm/ksm/run"),
        (fact::ZSWAP_ENABLED, "/sys/module/zswap/parameters/enabled"),
    ] {
        if Path::new(path).exists() {
            facts.file(name, path);
        }
    }
}

/// Returns the hypervisor's twelve-character name, if the CPU says that there is one.
#[cfg(target_arch = "x86_64")]
fn hypervisor() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    if __cpuid(1).ecx & (1 << 31) == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .filter(|byte| byte.is_ascii_graphic() || *byte == b' ')
        .collect();
    let name = String::from_utf8(bytes).ok()?;
    let name = name.trim();
    Some(if name.is_empty() { "unnamed" } else { name }.to_owned())
}

/// Records the block device `major:minor` under `path`: its driver, model and the settings that determine what a
/// flush and a queue mean. Records nothing if there is no such device, as for tmpfs and overlay.
pub(super) fn block_device(facts: &mut Collector, path: &str, device: &str) {
    let Ok(node) = std::fs::canonicalize(format!("/sys/dev/block/{device}")) else {
        return;
    };
    // A partition has no queue and no device; its disk does.
    let disk = if node.join("queue").is_dir() {
        node
    } else {
        node.parent().map(Path::to_owned).unwrap_or(node)
    };
    if let Some(name_of_disk) = disk.file_name() {
        facts.set(
            &fact::name_for(fact::BLOCK_NAME, path),
            name_of_disk.to_string_lossy(),
        );
    }
    for (name, file) in [
        (fact::BLOCK_ROTATIONAL, "queue/rotational"),
        (fact::BLOCK_SCHEDULER, "queue/scheduler"),
        (fact::BLOCK_WRITE_CACHE, "queue/write_cache"),
        (fact::BLOCK_FUA, "queue/fua"),
        (fact::BLOCK_REQUESTS, "queue/nr_requests"),
        (fact::BLOCK_READ_AHEAD, "queue/read_ahead_kb"),
        (fact::BLOCK_MODEL, "device/model"),
    ] {
        if let Ok(value) = std::fs::read_to_string(disk.join(file)) {
            facts.set(&fact::name_for(name, path), value);
        }
    }
    if let Some(driver) = driver_above(&disk) {
        facts.set(&fact::name_for(fact::BLOCK_DRIVER, path), driver);
    }
}

/// Returns the driver that moves the bytes. The device's driver may only be the SCSI disk layer (`sd`); then the
/// first other one above it counts (`ata_piix`, `virtio_scsi`).
fn driver_above(disk: &Path) -> Option<String> {
    let mut place: Option<PathBuf> = std::fs::canonicalize(disk.join("device")).ok();
    let mut last = None;
    while let Some(folder) = place {
        if let Ok(target) = std::fs::read_link(folder.join("driver"))
            && let Some(name) = target.file_name()
        {
            let name = name.to_string_lossy().into_owned();
            if name != "sd" && name != "sr" {
                return Some(name);
            }
            last = Some(name);
        }
        place = folder
            .parent()
            .filter(|parent| parent.starts_with("/sys/devices"))
            .map(Path::to_owned);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;

    #[test]
    fn root_disk_facts_include_io_scheduler() {
        use std::os::unix::fs::MetadataExt;
        let device = std::fs::metadata("/").unwrap().dev();
        let (major, minor) = (libc::major(device), libc::minor(device));
        let mut facts = Collector::default();
        block_device(&mut facts, "/", &format!("{major}:{minor}"));
        if facts.facts.is_empty() {
            return skip("block-device", "`/` lies on no block device");
        }
        assert!(
            facts.facts.contains_key("mount./.block.scheduler"),
            "{facts:?}"
        );
        let mut none = Collector::default();
        block_device(&mut none, "/", "0:0");
        assert!(none.facts.is_empty());
    }

    #[test]
    fn hypervisor_vendor_fact_matches_cpuid_flag() {
        let mut facts = Collector::default();
        collect(&mut facts, &[0]);
        #[cfg(target_arch = "x86_64")]
        {
            let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
            let is_guest = flags.contains(" hypervisor");
            assert_eq!(facts.facts["hypervisor.vendor"] != "none", is_guest);
        }
        assert_eq!(facts.facts.get("cpu.cores").map(String::as_str), Some("1"));
    }
}
