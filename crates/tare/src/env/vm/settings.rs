//! The settings of `vm`, read and checked.
//!
//! What the emulator is asked for by name (a processor model, a machine) is only checked for its letters here;
//! whether it exists, the emulator says when it starts.

use std::path::PathBuf;
use std::time::Duration;

use tare_model::fact;
use tare_model::{Facts, Params, Value};

use crate::env::grammar::{self, parse_size};
use crate::env::reader::{FILES, PACKAGES, PROGRAMS, Reader};
use crate::env::value::{self, shown, wrong};
use crate::env::{SettingSpec, SettingsError, Wanted};

/// What the driver takes.
pub(super) static SETTINGS: &[SettingSpec] = &[
    SettingSpec {
        name: "accel",
        doc: "\"auto\" (default): KVM if a guest boots with it here, else software emulation, which is then said \
              everywhere; \"kvm\": nothing else; \"tcg\": software emulation",
    },
    SettingSpec {
        name: "kernel",
        doc: "path of the guest's kernel; default: the newest /boot/vmlinuz-* that can be read. Its modules are \
              taken from /lib/modules",
    },
    SettingSpec {
        name: "machine",
        doc: "machine type of the emulator; default: \"pc\" (x86-64), \"virt\" (arm64)",
    },
    SettingSpec {
        name: "cpu",
        doc: "processor model with its switches, for example \"qemu64,+aes\"; default: \"host\" with KVM, \"max\" \
              with software emulation",
    },
    SettingSpec {
        name: "cpus",
        doc: "number of virtual processors; default: as many as Tare may use",
    },
    SettingSpec {
        name: "memory",
        doc: "memory in bytes, or with k, m or g (powers of 1024), at least 96m; default \"2g\"",
    },
    SettingSpec {
        name: "disk",
        doc: "\"none\" (default): files lie in the guest's memory; \"virtio\", \"nvme\", \"ide\", \"scsi\": an ext4 \
              file system on a raw image of its own",
    },
    SettingSpec {
        name: "disk_size",
        doc: "size of the disk, as for `memory`, at least 16m; default \"1g\"; allocated when the arm is prepared",
    },
    SettingSpec {
        name: "cache",
        doc: "how the host caches the disk: \"none\" (default), \"writeback\", \"unsafe\", \"directsync\", \
              \"writethrough\"",
    },
    SettingSpec {
        name: "nic",
        doc: "network device: \"virtio\" (default), \"e1000\", \"rtl8139\", \"none\"",
    },
    SettingSpec {
        name: "network",
        doc: "\"auto\" (default): a TAP device where Tare may make one, else the emulator's own stack; \"tap\": \
              nothing else; \"user\": the emulator's own stack, in which the host cannot reach the guest",
    },
    SettingSpec {
        name: "boot_limit",
        doc: "seconds after which a guest that has not booted is given up; default 60",
    },
    PROGRAMS,
    PACKAGES,
    FILES,
];

/// Which accelerator is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accel {
    Auto,
    Kvm,
    Tcg,
}

/// The bus of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disk {
    None,
    Virtio,
    Nvme,
    Ide,
    Scsi,
}

/// The network device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nic {
    None,
    Virtio,
    E1000,
    Rtl8139,
}

/// What the network device is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Auto,
    Tap,
    User,
}

const ACCELS: &[(&str, Accel)] = &[
    ("auto", Accel::Auto),
    ("kvm", Accel::Kvm),
    ("tcg", Accel::Tcg),
];
const DISKS: &[(&str, Disk)] = &[
    ("none", Disk::None),
    ("virtio", Disk::Virtio),
    ("nvme", Disk::Nvme),
    ("ide", Disk::Ide),
    ("scsi", Disk::Scsi),
];
const NICS: &[(&str, Nic)] = &[
    ("virtio", Nic::Virtio),
    ("e1000", Nic::E1000),
    ("rtl8139", Nic::Rtl8139),
    ("none", Nic::None),
];
const NETWORKS: &[(&str, Network)] = &[
    ("auto", Network::Auto),
    ("tap", Network::Tap),
    ("user", Network::User),
];
/// The emulator's own words for its cache modes.
const CACHES: &[(&str, &str)] = &[
    ("none", "none"),
    ("writeback", "writeback"),
    ("unsafe", "unsafe"),
    ("directsync", "directsync"),
    ("writethrough", "writethrough"),
];

/// Below this no kernel of a distribution unpacks its file system.
const FEWEST_MEMORY_BYTES: u64 = 96 << 20;
/// Below this there is no room for a journal.
const FEWEST_DISK_BYTES: u64 = 16 << 20;
/// The emulator's own limit is the machine's; no machine has more.
const MOST_CPUS: i64 = 4096;

/// The settings, checked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Settings {
    pub(super) accel: Accel,
    pub(super) kernel: Option<PathBuf>,
    pub(super) machine: String,
    pub(super) cpu: Option<String>,
    pub(super) cpus: u32,
    pub(super) memory_bytes: u64,
    pub(super) disk: Disk,
    pub(super) disk_bytes: u64,
    pub(super) cache: &'static str,
    pub(super) nic: Nic,
    pub(super) network: Network,
    pub(super) boot_limit: Duration,
    /// What of the host's files the guest holds besides the agent.
    pub(super) wanted: Wanted,
}

/// The word for a choice.
fn word<T: Copy + PartialEq>(choices: &[(&'static str, T)], choice: T) -> &'static str {
    choices
        .iter()
        .find(|(_, known)| *known == choice)
        .map_or("", |(word, _)| word)
}

/// The value as one of the named choices; the first is the default.
fn choice<T: Copy>(
    settings: &Params,
    name: &str,
    choices: &[(&str, T)],
) -> Result<T, SettingsError> {
    Ok(value::choice(settings, name, choices)?.unwrap_or(choices[0].1))
}

/// A name that the emulator understands: it may not begin or continue another option.
fn name(settings: &Params, setting: &str, extra: &[u8]) -> Result<Option<String>, SettingsError> {
    let Some(value) = settings.value(setting) else {
        return Ok(None);
    };
    let text = value.to_string();
    let is_name = text
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && text.len() <= 256
        && text.bytes().all(|byte| {
            byte.is_ascii_alphanumeric() || b"._-".contains(&byte) || extra.contains(&byte)
        });
    if is_name {
        Ok(Some(text))
    } else {
        let option = if setting == "cpu" { "-cpu" } else { "-machine" };
        Err(wrong(
            setting,
            format!("`{}` is no name of a {setting}", shown(value)),
            format!("one of those that the emulator lists for `{option} help`"),
        ))
    }
}

/// An amount of bytes.
fn bytes(
    settings: &Params,
    setting: &str,
    default: u64,
    fewest: u64,
) -> Result<u64, SettingsError> {
    let Some(value) = settings.value(setting) else {
        return Ok(default);
    };
    let found = match value {
        Value::Int(bytes) => u64::try_from(*bytes).ok(),
        Value::Text(text) => parse_size(text),
        _ => None,
    };
    // The emulator counts in mebibytes, and the agent's file lengths are signed.
    match found.filter(|bytes| i64::try_from(*bytes).is_ok()) {
        None => Err(wrong(
            setting,
            format!("`{}` is no amount of bytes", shown(value)),
            "bytes, or a number with k, m or g (powers of 1024), for example \"512m\"",
        )),
        Some(bytes) if bytes < fewest => Err(wrong(
            setting,
            format!("`{}` is too small", shown(value)),
            format!("at least {}m", fewest >> 20),
        )),
        Some(bytes) => Ok(bytes),
    }
}

fn cpus(settings: &Params) -> Result<u32, SettingsError> {
    match settings.value("cpus") {
        None => Ok(std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32)),
        Some(value) => grammar::cpus(value)
            .filter(|cpus| cpus.fract() == 0.0 && (1..=MOST_CPUS).contains(&(*cpus as i64)))
            .map(|cpus| cpus as u32)
            .ok_or_else(|| {
                wrong(
                    "cpus",
                    format!("`{}` is no number of virtual processors", shown(value)),
                    "a whole number from 1, for example 2",
                )
            }),
    }
}

fn boot_limit(settings: &Params) -> Result<Duration, SettingsError> {
    let seconds = match settings.value("boot_limit") {
        None => Some(60.0),
        Some(Value::Int(seconds)) => Some(*seconds as f64),
        Some(Value::Float(seconds)) => Some(*seconds),
        Some(_) => None,
    };
    // The upper end is a day: nobody waits longer for a guest.
    seconds
        .filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0)
        .map(Duration::from_secs_f64)
        .ok_or_else(|| {
            let value = settings.value("boot_limit").map_or_else(String::new, shown);
            wrong(
                "boot_limit",
                format!("`{value}` is no number of seconds"),
                "a number above 0 and at most 86400, for example 60",
            )
        })
}

fn kernel(settings: &Params) -> Result<Option<PathBuf>, SettingsError> {
    match settings.value("kernel") {
        None => Ok(None),
        Some(Value::Text(path)) if path.starts_with('/') && !path.contains('\0') => {
            Ok(Some(PathBuf::from(path)))
        }
        Some(value) => Err(wrong(
            "kernel",
            format!("`{}` is no path of a kernel", shown(value)),
            "an absolute path, for example \"/boot/vmlinuz-6.1.0-cloud-amd64\"",
        )),
    }
}

impl Settings {
    /// Reads and checks; touches nothing outside.
    pub(super) fn read(settings: &Params) -> Result<Self, SettingsError> {
        for name in settings.0.keys() {
            if !SETTINGS.iter().any(|known| known.name == name) {
                let names: Vec<&str> = SETTINGS.iter().map(|known| known.name).collect();
                return Err(wrong(
                    name,
                    format!("`vm` has no setting `{}`", name.escape_debug()),
                    format!("it has {}", names.join(", ")),
                ));
            }
        }
        let read = Self {
            accel: choice(settings, "accel", ACCELS)?,
            kernel: kernel(settings)?,
            machine: name(settings, "machine", b"")?.unwrap_or_else(|| {
                let default = if cfg!(target_arch = "x86_64") {
                    "pc"
                } else {
                    "virt"
                };
                default.to_owned()
            }),
            cpu: name(settings, "cpu", b",+=")?,
            cpus: cpus(settings)?,
            memory_bytes: bytes(settings, "memory", 2 << 30, FEWEST_MEMORY_BYTES)?,
            disk: choice(settings, "disk", DISKS)?,
            disk_bytes: bytes(settings, "disk_size", 1 << 30, FEWEST_DISK_BYTES)?,
            cache: choice(settings, "cache", CACHES)?,
            nic: choice(settings, "nic", NICS)?,
            network: choice(settings, "network", NETWORKS)?,
            boot_limit: boot_limit(settings)?,
            wanted: Reader::new("vm", SETTINGS, settings)?.wanted()?,
        };
        let is_said = |name: &str| settings.value(name).is_some();
        for name in ["cache", "disk_size"] {
            if read.disk == Disk::None && is_said(name) {
                return Err(wrong(
                    name,
                    format!("`{name}` needs a disk"),
                    "add disk = \"virtio\", or leave this setting out",
                ));
            }
        }
        if read.nic == Nic::None && is_said("network") {
            return Err(wrong(
                "network",
                "`network` needs a network device".to_owned(),
                "leave out nic = \"none\" or this setting",
            ));
        }
        Ok(read)
    }

    /// The modules that the channel and the devices need.
    pub(super) fn modules(&self) -> Vec<&'static str> {
        let mut modules = vec!["virtio_pci", "virtio_console"];
        modules.extend(match self.nic {
            Nic::None => &[][..],
            Nic::Virtio => &["virtio_net"],
            Nic::E1000 => &["e1000"],
            // The emulated device is a C+, which has a driver of its own.
            Nic::Rtl8139 => &["8139cp"],
        });
        modules.extend(match self.disk {
            Disk::None => &[][..],
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

    /// What was asked for.
    pub(super) fn facts(&self) -> Facts {
        let mut facts = Facts::from([
            (fact::of(fact::VM, "machine"), self.machine.clone()),
            (fact::of(fact::VM, "cpus"), self.cpus.to_string()),
            (
                fact::of(fact::VM, "memory_bytes"),
                self.memory_bytes.to_string(),
            ),
            (fact::VM_DISK.to_owned(), word(DISKS, self.disk).to_owned()),
            (fact::VM_NIC.to_owned(), word(NICS, self.nic).to_owned()),
        ]);
        if self.disk != Disk::None {
            facts.insert(fact::VM_CACHE.into(), self.cache.to_owned());
            facts.insert(
                fact::of(fact::VM, "disk_bytes"),
                self.disk_bytes.to_string(),
            );
        }
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: impl Into<Value>) -> Result<Settings, SettingsError> {
        Settings::read(&Params::new().with(name, value))
    }

    #[test]
    fn what_is_no_value_of_a_setting_is_refused_under_its_name_with_a_hint() {
        let bad: &[(&str, Value)] = &[
            ("accel", "hvf".into()),
            ("accel", true.into()),
            ("kernel", "vmlinuz".into()),
            ("kernel", 6i64.into()),
            ("kernel", "".into()),
            ("machine", "pc,dump-guest-core=on".into()),
            ("machine", "".into()),
            ("cpu", "-help".into()),
            ("cpu", "max evil".into()),
            ("cpu", "\u{1b}[31m".into()),
            ("cpus", 0i64.into()),
            ("cpus", 5000i64.into()),
            ("cpus", "many".into()),
            ("memory", "1m".into()),
            ("memory", "-1g".into()),
            ("memory", "2x".into()),
            ("memory", "99999999999t".into()),
            ("disk", "floppy".into()),
            ("nic", "pcnet".into()),
            ("network", "bridge".into()),
            ("boot_limit", 0i64.into()),
            ("boot_limit", f64::NAN.into()),
            ("boot_limit", "60".into()),
            ("colour", "red".into()),
        ];
        for (name, value) in bad {
            let error = read(name, value.clone()).expect_err(&value.to_string());
            assert_eq!(error.setting, *name, "{value}");
            assert!(error.hint.is_some(), "{name}");
            assert!(!error.problem.contains('\u{1b}'));
        }
    }

    #[test]
    fn settings_that_only_mean_something_together_are_refused_alone() {
        for (name, value) in [("cache", "unsafe"), ("disk_size", "1g")] {
            assert_eq!(read(name, value).unwrap_err().setting, name);
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
        let none = Params::new().with("nic", "none");
        let none = Settings::read(&none).unwrap().modules();
        assert_eq!(none, ["virtio_pci", "virtio_console"]);
    }

    #[test]
    fn amounts_are_read_with_and_without_a_unit() {
        assert_eq!(read("memory", "1G").unwrap().memory_bytes, 1 << 30);
        assert_eq!(read("memory", 1i64 << 28).unwrap().memory_bytes, 1 << 28);
        assert_eq!(
            read("cpu", "qemu64,+aes").unwrap().cpu.as_deref(),
            Some("qemu64,+aes")
        );
        let limit = read("boot_limit", 2.5).unwrap().boot_limit;
        assert_eq!(limit, Duration::from_millis(2500));
    }
}
