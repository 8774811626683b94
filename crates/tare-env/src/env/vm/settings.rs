//! Reads and checks the settings of `vm`.
//!
//! Names for the emulator (a processor model, a machine type) are only checked for permitted characters; the emulator
//! reports unknown ones when it starts.

use crate::env::prelude::*;

use tare_model::whole_count;

use crate::env::common::{FILES, PACKAGES, PROGRAMS};
use crate::env::grammar::has_only;
use crate::env::reader::Reader;
use crate::env::setting::{Form, meanings, settings, word_for, words};

/// The common setting with another default: a guest has no other programs.
const PACKED: Setting = Setting {
    default: "those of the study's workloads, where neither these nor packages or files are named",
    ..PROGRAMS
};

settings! {
    pub(super) SETTINGS;

    ACCEL("accel", Text(Form::words(&words(&ACCELS))), "`auto`",
        "what runs the guest's processors: `auto` is KVM if a guest boots with it here, else software emulation (`tcg`), which is then said everywhere");
    KERNEL("kernel", Text(Form::new("an absolute path, for example \"/boot/vmlinuz-6.1.0-cloud-amd64\"", is_path)),
        "the newest /boot/vmlinuz-* that can be read", "the guest's kernel; its modules are taken from /lib/modules");
    MACHINE("machine", Text(Form::new("one of those that the emulator lists for `-machine help`", |text| is_name(text, b""))),
        "`pc` (x86-64), `virt` (arm64)", "machine type of the emulator");
    CPU("cpu",
        Text(Form::new("one of those that the emulator lists for `-cpu help`, with switches such as `qemu64,+aes`",
            |text| is_name(text, b",+="))),
        "`host` with KVM, `max` with software emulation", "processor model");
    CPUS("cpus", Whole(1, 4096, "virtual processors"), "as many as Tare may use", "number of virtual processors");
    MEMORY("memory", Size(96 << 20), "`2g`", "the guest's memory");
    DISK("disk", Text(Form::words(&words(&DISKS))), "`none`",
        "where files lie: in the guest's memory, on an ext4 file system on a raw image of its own behind this bus, or in a folder of this machine that virtiofs serves (`shared`)");
    SHARED("shared", Text(Form::words(&words(&SHARES))), "`virtiofs`",
        "how several machines of the arm share a folder: served by this machine (`virtiofs`), or by the first machine's kernel over the network between them (`nfs`, version 4.2, from its memory)");
    INNER("inner", Text(Form::words(&words(&INNERS))), "`none`",
        "a container inside of the machine for everything that is measured, as an engine on a desktop has it: files lie in its layer on the machine's disk, or in the served folder, which is bound into it; its network is the machine's");
    DISK_SIZE("disk_size", Size(16 << 20), "`1g`", "size of the disk; allocated when the arm is prepared");
    SYSTEM("system", Text(Form::new("an absolute path of a folder", is_path)), "none",
        "a folder with a Linux system, as `debootstrap` makes one: the machine's disk gets a copy, its init is started, and everything is measured in it once it is up");
    CACHE("cache", Text(Form::words(CACHES)), "`none`", "how the host caches the disk");
    NIC("nic", Text(Form::words(&words(&NICS))), "`virtio`", "network device");
    NETWORK("network", Text(Form::words(&words(&NETWORKS))), "`auto`",
        "a TAP device, or the emulator's own stack (`user`), in which the host cannot reach the guest and the guest reaches this machine's loopback; `auto` is a TAP device where Tare may make one, and else none");
    BOOT_LIMIT("boot_limit", Number(0.001, 86_400.0, "seconds"), "60",
        "after how long a guest that has not booted is given up");
    PACKED;
    PACKAGES;
    FILES;
}

meanings! {
    /// The requested accelerator.
    pub(super) enum Accel, ACCELS {
        Auto: "auto",
        Kvm: "kvm",
        Tcg: "tcg",
    }
}

meanings! {
    /// The bus of the disk.
    pub(super) enum Disk, DISKS {
        None: "none",
        Virtio: "virtio",
        Nvme: "nvme",
        Ide: "ide",
        Scsi: "scsi",
        Shared: "shared",
    }
}

meanings! {
    /// How machines share a folder.
    pub(super) enum Shared, SHARES {
        Virtiofs: "virtiofs",
        Nfs: "nfs",
    }
}

meanings! {
    /// The environment of the agent within the machine.
    pub(super) enum Inner, INNERS {
        None: "none",
        Container: "container",
    }
}

meanings! {
    /// The network device.
    pub(super) enum Nic, NICS {
        Virtio: "virtio",
        E1000: "e1000",
        Rtl8139: "rtl8139",
        None: "none",
    }
}

meanings! {
    /// What the network device is connected to.
    pub(super) enum Network, NETWORKS {
        Auto: "auto",
        Tap: "tap",
        User: "user",
    }
}

/// The emulator's words for its cache modes.
const CACHES: &[&str] = &["none", "writeback", "unsafe", "directsync", "writethrough"];

/// Checked settings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) accel: Accel,
    pub(super) kernel: Option<PathBuf>,
    pub(super) machine: String,
    pub(super) cpu: Option<String>,
    pub(super) cpus: u32,
    pub(super) memory_bytes: u64,
    pub(super) disk: Disk,
    pub(super) shared: Shared,
    pub(super) inner: Inner,
    pub(super) disk_bytes: u64,
    /// The folder with the system on the disk, if there is one.
    pub(super) system: Option<PathBuf>,
    pub(super) cache: String,
    pub(super) nic: Nic,
    pub(super) network: Network,
    pub(super) boot_limit: Duration,
    /// The host files in the guest in addition to the agent.
    pub(super) wanted: FileRequest,
}

/// Whether a text is a name for the emulator: it must not begin or continue another option.
fn is_name(text: &str, extra: &[u8]) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.len() <= 256
        && has_only(text, &[b"._-", extra].concat())
}

fn is_path(text: &str) -> bool {
    text.starts_with('/') && !text.contains('\0')
}

impl Disk {
    /// Whether the disk is a raw image.
    pub(super) fn has_image(self) -> bool {
        !matches!(self, Self::None | Self::Shared)
    }
}

impl Settings {
    /// Reads and checks the settings, without side effects.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        let read = Reader::new("vm", SETTINGS, settings)?;
        let disk = read.word(&DISK, &DISKS).unwrap_or(Disk::None);
        let nic = read.word(&NIC, &NICS).unwrap_or(Nic::Virtio);
        let no_disk = (
            "`SELF` needs a disk",
            "add disk = \"virtio\", or leave this setting out",
        );
        let no_device = (
            "`SELF` needs a network device",
            "leave out nic = \"none\" or this setting",
        );
        let own_programs = (
            "`SELF` has no effect with `system`, which has programs of its own",
            "install them into its folder, or leave one of the two out",
        );
        let has_system = read.is_given(&SYSTEM);
        read.consistent(&[
            (!disk.has_image() && has_system, SYSTEM, no_disk),
            (
                has_system && read.is_given(&INNER),
                INNER,
                (
                    "`SELF` has no effect with `system`",
                    "leave one of the two out",
                ),
            ),
            (
                has_system && !read.wanted().is_empty(),
                PROGRAMS,
                own_programs,
            ),
            (!disk.has_image() && read.is_given(&CACHE), CACHE, no_disk),
            (
                !disk.has_image() && read.is_given(&DISK_SIZE),
                DISK_SIZE,
                no_disk,
            ),
            (
                nic == Nic::None && read.is_given(&NETWORK),
                NETWORK,
                no_device,
            ),
            (
                disk == Disk::Shared && read.is_given(&SHARED),
                SHARED,
                (
                    "`SELF` has no effect with disk = \"shared\", which virtiofs serves",
                    "leave one of the two out",
                ),
            ),
        ])?;
        let machine = if cfg!(target_arch = "x86_64") {
            "pc"
        } else {
            "virt"
        };
        let usable =
            || std::thread::available_parallelism().map_or(1, |cpus| whole_count(cpus.get()));
        Ok(Self {
            accel: read.word(&ACCEL, &ACCELS).unwrap_or(Accel::Auto),
            kernel: read.text(&KERNEL).map(PathBuf::from),
            machine: read.text(&MACHINE).unwrap_or(machine).to_owned(),
            cpu: read.owned(&CPU),
            cpus: read.whole(&CPUS).unwrap_or_else(usable),
            memory_bytes: read.size(&MEMORY).unwrap_or(2 << 30),
            disk,
            shared: read.word(&SHARED, &SHARES).unwrap_or(Shared::Virtiofs),
            inner: read.word(&INNER, &INNERS).unwrap_or(Inner::None),
            disk_bytes: read.size(&DISK_SIZE).unwrap_or(1 << 30),
            system: read.text(&SYSTEM).map(PathBuf::from),
            cache: read.text(&CACHE).unwrap_or("none").to_owned(),
            nic,
            network: read.word(&NETWORK, &NETWORKS).unwrap_or(Network::Auto),
            boot_limit: Duration::from_secs_f64(read.number(&BOOT_LIMIT).unwrap_or(60.0)),
            wanted: read.wanted(),
        })
    }

    /// Returns the modules that the channel and the devices need.
    pub(super) fn modules(&self) -> Vec<&'static str> {
        let mut modules = vec!["virtio_pci", "virtio_console"];
        modules.extend(match self.nic {
            Nic::None => &[][..],
            Nic::Virtio => &["virtio_net"],
            Nic::E1000 => &["e1000"],
            // The emulated device is a C+, which has a separate driver.
            Nic::Rtl8139 => &["8139cp"],
        });
        modules.extend((self.inner == Inner::Container).then_some("overlay"));
        modules.extend(match self.disk {
            // The driver for a served folder is added with those for any shared folder.
            Disk::None | Disk::Shared => &[][..],
            Disk::Virtio => &["virtio_blk", "ext4"],
            Disk::Nvme => &["nvme", "ext4"],
            Disk::Ide if self.machine.starts_with("q35") || self.machine.starts_with("pc-q35") => {
                &["ahci", "sd_mod", "ext4"]
            }
            Disk::Ide => &["ata_piix", "sd_mod", "ext4"],
            Disk::Scsi => &["virtio_scsi", "sd_mod", "ext4"],
        });
        modules
    }

    /// Returns the requested settings as facts.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::from([
            (fact::name_for(fact::VM, "machine"), self.machine.clone()),
            (fact::name_for(fact::VM, "cpus"), self.cpus.to_string()),
            (
                fact::name_for(fact::VM, "memory_bytes"),
                self.memory_bytes.to_string(),
            ),
            (
                fact::VM_DISK.to_owned(),
                word_for(&DISKS, self.disk).to_owned(),
            ),
            (
                fact::VM_NIC.to_owned(),
                word_for(&NICS, self.nic).to_owned(),
            ),
            (
                fact::name_for(fact::VM, "inner"),
                word_for(&INNERS, self.inner).to_owned(),
            ),
        ]);
        if let Some(system) = &self.system {
            let name = fact::name_for(fact::VM, "system");
            facts.insert(name, system.display().to_string());
        }
        if self.disk.has_image() {
            facts.insert(fact::VM_CACHE.into(), self.cache.clone());
            facts.insert(
                fact::name_for(fact::VM, "disk_bytes"),
                self.disk_bytes.to_string(),
            );
        }
        facts
    }
}

#[cfg(test)]
mod tests {

    use super::super::super::reader::tests::{assert_refused, assert_refuses, with};
    use super::*;

    #[test]
    fn invalid_vm_setting_is_refused_by_name_with_hint() {
        let values = json!({
            "accel": ["hvf", true],
            "kernel": ["vmlinuz", 6, ""],
            "machine": ["pc,dump-guest-core=on", ""],
            "cpu": ["-help", "max evil", "\u{1b}[31m"],
            "cpus": [0, 5000, "many"],
            "memory": ["1m", "-1g", "2x", "99999999999t"],
            "disk": ["floppy"],
            "shared": ["smb", true],
            "inner": ["docker", true],
            "system": ["debian", 1],
            "nic": ["pcnet"],
            "network": ["bridge"],
            "boot_limit": [0, "soon"],
            "colour": ["red"],
        });
        assert_refused(Settings::read, &values);
        assert_refuses(Settings::read, "boot_limit", f64::NAN);
    }

    #[test]
    fn dependent_settings_are_refused_alone() {
        for (name, value) in [("cache", "unsafe"), ("disk_size", "1g"), ("system", "/sys")] {
            assert_eq!(
                Settings::read(&with(name, value)).unwrap_err().setting,
                name
            );
        }
        let served = with("disk", "shared").with("cache", "none");
        assert_eq!(Settings::read(&served).unwrap_err().setting, "cache");
        let twice = with("disk", "shared").with("shared", "nfs");
        assert_eq!(Settings::read(&twice).unwrap_err().setting, "shared");
        let of_system = with("disk", "virtio").with("system", "/srv/debian");
        assert!(Settings::read(&of_system).is_ok());
        for (name, value) in [("inner", "container"), ("programs", "ping")] {
            let both = of_system.clone().with(name, value);
            assert_eq!(Settings::read(&both).unwrap_err().setting, name);
        }
        let both = Params::new().with("nic", "none").with("network", "tap");
        assert_eq!(Settings::read(&both).unwrap_err().setting, "network");
    }

    #[test]
    fn each_bus_brings_its_own_driver() {
        let modules = |disk: &str, machine: &str| {
            let settings = Params::new().with("disk", disk).with("machine", machine);
            Settings::read(&settings).unwrap().modules()
        };
        assert!(modules("virtio", "pc").contains(&"virtio_blk"));
        assert!(modules("ide", "pc").contains(&"ata_piix"));
        assert!(modules("ide", "q35").contains(&"ahci"));
        assert!(modules("scsi", "pc").contains(&"virtio_scsi"));
        let inner = Params::new().with("inner", "container");
        let inner = Settings::read(&inner).unwrap().modules();
        assert!(inner.contains(&"overlay"));
        let none = Params::new().with("nic", "none");
        let none = Settings::read(&none).unwrap().modules();
        assert_eq!(none, ["virtio_pci", "virtio_console"]);
    }

    #[test]
    fn amounts_are_read_with_and_without_a_unit() {
        assert_eq!(
            Settings::read(&with("memory", "1G")).unwrap().memory_bytes,
            1 << 30
        );
        assert_eq!(
            Settings::read(&with("memory", 1i64 << 28))
                .unwrap()
                .memory_bytes,
            1 << 28
        );
        assert_eq!(
            Settings::read(&with("cpu", "qemu64,+aes"))
                .unwrap()
                .cpu
                .as_deref(),
            Some("qemu64,+aes")
        );
        let limit = Settings::read(&with("boot_limit", 2.5)).unwrap().boot_limit;
        assert_eq!(limit, Duration::from_millis(2500));
    }
}
