//! The emulator's command line.
//!
//! Nothing is left to its defaults: no user configuration, no default devices, no window, no monitor. The channel is
//! a port of a virtio console on the emulator's standard streams, which carries bytes unchanged; the kernel's console
//! is a pipe whose end the sandbox keeps. No terminal is in the data path.
//! If root starts it, the sandbox runs it as an unprivileged user, with its files opened before. Its built-in seccomp
//! filter, if any, denies what an emulator never does: other programs, other privileges.

use crate::env::prelude::*;

use tare_model::guest::SHARED_TAG;
use tare_model::launch::SiblingLink;

use super::settings::{Disk, Inner, Nic, Settings};

/// The emulator for this machine's processor.
pub(super) const PROGRAM: &str = if cfg!(target_arch = "aarch64") {
    "qemu-system-aarch64"
} else {
    "qemu-system-x86_64"
};

/// The command that installs it.
pub(super) const PROGRAM_FIX: &str = if cfg!(target_arch = "aarch64") {
    "apt-get install qemu-system-arm"
} else {
    "apt-get install qemu-system-x86"
};

/// The console that this machine type's kernel writes to.
const CONSOLE: &str = if cfg!(target_arch = "aarch64") {
    "ttyAMA0"
} else {
    "ttyS0"
};

/// How the guest's processor is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accelerator {
    /// Hardware virtualisation.
    Kvm,
    /// Software translation.
    Tcg,
}

impl Accelerator {
    /// Returns the emulator's word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
        }
    }

    /// Returns the processor model that the settings name, or its default.
    pub(super) fn cpu(self, settings: &Settings) -> &str {
        let default = match self {
            Self::Kvm => "host",
            Self::Tcg => "max",
        };
        settings.cpu.as_deref().unwrap_or(default)
    }
}

/// What the network device is connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// No device.
    None,
    /// A TAP device of the host, with its own addresses.
    Tap,
    /// The emulator's built-in network stack.
    User,
}

pub(super) const KVM: &str = "/dev/kvm";

/// The emulator's seccomp filter. `on` alone denies old syscalls.
const OWN_FILTER: &str = "on,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// The files that the sandbox opens, in order, as paths for the emulator.
const KERNEL_FILE: &str = "/proc/self/fd/{tare.file.0}";
const INITRAMFS_FILE: &str = "/proc/self/fd/{tare.file.1}";
const DISK_FILE: &str = "/proc/self/fd/{tare.file.2}";
/// Index of the shared folder's socket, without a disk; with one it is the next.
const SOCKET_NUMBER: usize = 2;

/// The fd set of the console; the emulator gets one open end of its pipe.
const CONSOLE_SET: u32 = 1;

/// What differs between instances.
pub(super) struct Machine<'a> {
    pub(super) settings: &'a Settings,
    pub(super) accelerator: Accelerator,
    /// Whether the emulator was built with its seccomp filter.
    pub(super) has_own_filter: bool,
    pub(super) link: Link,
    pub(super) kernel: &'a Path,
    pub(super) initramfs: &'a Path,
    pub(super) console: &'a Path,
    pub(super) disk: Option<&'a Path>,
    /// Name of the instance within its run.
    pub(super) label: &'a str,
    pub(super) run: &'a str,
    pub(super) mode: StartMode,
    /// The machine's address on the network of its siblings, if any.
    pub(super) sibling: Option<SiblingLink>,
    /// Whether the first of the siblings serves a folder to the others.
    pub(super) has_nfs: bool,
    /// The socket of the shared folder's server, if any.
    pub(super) shared: Option<&'a Path>,
}

impl Machine<'_> {
    /// Returns the kernel's command line. The words after `--` are the first process's arguments.
    fn append(&self) -> String {
        // Panics and the end of the first process end the machine. Only notices and above are printed, because an
        // emulated serial line is slow.
        let mut words = vec![
            format!("console={CONSOLE}"),
            "panic=-1".into(),
            "loglevel=6".into(),
            // A system on the disk keeps the names of devices by which the first process sets them up.
            "net.ifnames=0".into(),
            "--".into(),
            "guest".into(),
        ];
        let mut add = |text: &str| words.extend(text.split(' ').map(str::to_owned));
        match self.link {
            Link::None => {}
            Link::Tap => add("--address {tare.arm}/{tare.bits} --gateway {tare.host}"),
            // The fixed addresses of the emulator's network stack.
            Link::User => add("--address 10.0.2.15/24 --gateway 10.0.2.2"),
        }
        if let Some(link) = &self.sibling {
            add(&format!("--sibling {}/{}", link.address, link.prefix_bits));
        }
        match (self.disk, &self.settings.system) {
            (None, _) => {}
            (Some(_), None) => add("--disk"),
            (Some(_), Some(_)) => add("--system"),
        }
        if self.has_nfs {
            add("--nfs");
        }
        if self.shared.is_some() {
            add("--shared");
        }
        if self.settings.disk == Disk::Shared {
            add(&format!("--shared-work {}", self.label));
        }
        if self.settings.inner == Inner::Container {
            add(&format!("--inner {}", self.run));
        }
        if self.mode == StartMode::Once {
            add("--no-spare");
        }
        words.join(" ")
    }

    fn devices(&self) -> Vec<String> {
        let mut options = Vec::new();
        let mut add = |option: &str, value: String| options.extend([option.to_owned(), value]);
        match self.link {
            Link::None => {}
            Link::Tap => add("-netdev", "tap,id=network,fd={tare.fd}".into()),
            Link::User => add("-netdev", "user,id=network".into()),
        }
        let nic = match self.settings.nic {
            Nic::None => None,
            Nic::Virtio => Some("virtio-net-pci"),
            Nic::E1000 => Some("e1000"),
            Nic::Rtl8139 => Some("rtl8139"),
        };
        if let (Some(nic), true) = (nic, self.link != Link::None) {
            // Without the network boot ROM, which may not be installed.
            add("-device", format!("{nic},netdev=network,romfile="));
            if let Some(link) = &self.sibling {
                // After the first, so that it is the guest's second device; with an address that no sibling has.
                add("-netdev", "tap,id=siblings,fd={tare.sibling.fd}".into());
                let [_, high, middle, low] = link.number.to_be_bytes();
                add(
                    "-device",
                    format!(
                        "{nic},netdev=siblings,romfile=,mac=52:54:01:{high:02x}:{middle:02x}:{low:02x}"
                    ),
                );
            }
        }
        if self.disk.is_some() {
            let cache = &self.settings.cache;
            add(
                "-drive",
                format!("file={DISK_FILE},format=raw,if=none,id=disk,cache={cache}"),
            );
            match self.settings.disk {
                Disk::None | Disk::Shared => {}
                Disk::Virtio => add("-device", "virtio-blk-pci,drive=disk".into()),
                Disk::Nvme => add("-device", "nvme,drive=disk,serial=tare".into()),
                Disk::Ide => add("-device", "ide-hd,drive=disk".into()),
                Disk::Scsi => {
                    add("-device", "virtio-scsi-pci,id=scsi".into());
                    add("-device", "scsi-hd,drive=disk,bus=scsi.0".into());
                }
            }
        }
        if self.shared.is_some() {
            let number = SOCKET_NUMBER + usize::from(self.disk.is_some());
            // The server reads and writes the guest's memory.
            let memory = self.memory_mib();
            add(
                "-object",
                format!("memory-backend-memfd,id=memory,share=on,size={memory}M"),
            );
            add(
                "-chardev",
                format!("socket,id=shared,fd={{tare.file.{number}}}"),
            );
            add(
                "-device",
                format!("vhost-user-fs-pci,chardev=shared,tag={SHARED_TAG}"),
            );
        }
        options
    }

    fn memory_mib(&self) -> u64 {
        self.settings.memory_bytes >> 20
    }

    /// Returns the machine type, with its shared memory, if any.
    fn kind(&self) -> String {
        let memory = self.shared.map_or("", |_| ",memory-backend=memory");
        format!("{}{memory}", self.settings.machine)
    }

    /// Returns the emulator's arguments.
    fn arguments(&self) -> Vec<String> {
        let switches = ["-nodefaults", "-no-user-config", "-no-reboot"];
        let mut arguments = switches.map(str::to_owned).to_vec();
        let options = [
            ("-display", "none".to_owned()),
            ("-name", format!("tare-{}", self.label)),
            ("-accel", self.accelerator.as_str().to_owned()),
            ("-machine", self.kind()),
            ("-cpu", self.accelerator.cpu(self.settings).to_owned()),
            ("-smp", self.settings.cpus.to_string()),
            // Mebibytes, without a unit.
            ("-m", self.memory_mib().to_string()),
            ("-kernel", KERNEL_FILE.to_owned()),
            ("-initrd", INITRAMFS_FILE.to_owned()),
            ("-append", self.append()),
            ("-add-fd", format!("fd={{tare.console}},set={CONSOLE_SET}")),
            (
                "-chardev",
                format!("file,id=console,path=/dev/fdset/{CONSOLE_SET},append=on"),
            ),
            ("-serial", "chardev:console".to_owned()),
            ("-device", "virtio-serial-pci".to_owned()),
            ("-chardev", "stdio,id=agent,signal=off".to_owned()),
            (
                "-device",
                format!(
                    "virtserialport,chardev=agent,name={}",
                    tare_model::guest::GUEST_PORT
                ),
            ),
        ];
        for (option, value) in options {
            arguments.extend([option.to_owned(), value]);
        }
        if self.has_own_filter {
            arguments.extend(["-sandbox", OWN_FILTER].map(str::to_owned));
        }
        arguments.extend(self.devices());
        arguments
    }

    /// Returns the whole command: the emulator in the agent's sandbox, with the run's label.
    pub(super) fn command(&self, agent: &AgentBinary) -> CommandLine {
        let parent = std::process::id().to_string();
        let mut arguments = ["sandbox", "--parent", &parent, "--unprivileged"]
            .map(str::to_owned)
            .to_vec();
        let mut add = |option: &str, value: &str| {
            arguments.extend([option, value].map(str::to_owned));
        };
        if self.accelerator == Accelerator::Kvm {
            add("--device", KVM);
        }
        add("--read", &self.kernel.display().to_string());
        // A file of the run, so it may be given to the emulator's user.
        add("--write", &self.initramfs.display().to_string());
        if let Some(disk) = self.disk {
            add("--write", &disk.display().to_string());
        }
        if let Some(socket) = self.shared {
            add("--connect", &socket.display().to_string());
        }
        add("--console", &self.console.display().to_string());
        if self.link == Link::Tap {
            arguments.extend(["--tap", self.run, self.label].map(str::to_owned));
        }
        if let Some(link) = &self.sibling {
            arguments.push("--sibling".to_owned());
            arguments.extend([link.hub, link.number].map(|number| number.to_string()));
        }
        arguments.extend(["--".to_owned(), PROGRAM.to_owned()]);
        arguments.extend(self.arguments());
        agent
            .command(arguments)
            .variable(tare_model::launch::RUN_VARIABLE, self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Params;

    fn line(settings: &Params, link: Link, disk: Option<&Path>) -> Vec<String> {
        sharing(settings, link, disk, None)
    }

    fn sharing(
        settings: &Params,
        link: Link,
        disk: Option<&Path>,
        shared: Option<&Path>,
    ) -> Vec<String> {
        let settings = Settings::read(settings).unwrap();
        let machine = Machine {
            settings: &settings,
            accelerator: Accelerator::Tcg,
            has_own_filter: true,
            link,
            kernel: Path::new("/boot/vmlinuz"),
            initramfs: Path::new("/a/initramfs"),
            console: Path::new("/a,b/console 1"),
            disk,
            label: "arm-1",
            run: "run",
            mode: StartMode::Once,
            sibling: None,
            has_nfs: false,
            shared,
        };
        let agent = AgentBinary::fake(Path::new("/agent"));
        machine.command(&agent).arguments
    }

    fn after(line: &[String], option: &str) -> Vec<String> {
        let pairs = line.windows(2);
        pairs
            .filter(|pair| pair[0] == option)
            .map(|pair| pair[1].clone())
            .collect()
    }

    #[test]
    fn paths_reach_the_sandbox_but_not_the_emulator() {
        let disk = Path::new("/x,y z/disk");
        let settings = Params::new().with("disk", "virtio");
        let line = line(&settings, Link::User, Some(disk));
        let end = line.iter().position(|word| word == "--").unwrap();
        let (sandbox, emulator) = line.split_at(end);
        assert_eq!(after(sandbox, "--read"), ["/boot/vmlinuz"]);
        assert_eq!(after(sandbox, "--write"), ["/a/initramfs", "/x,y z/disk"]);
        assert_eq!(after(sandbox, "--console"), ["/a,b/console 1"]);
        assert!(
            !emulator
                .iter()
                .any(|word| word.contains("console 1") || word.contains("y z"))
        );
        assert_eq!(after(emulator, "-add-fd"), ["fd={tare.console},set=1"]);
        let drive = "file=/proc/self/fd/{tare.file.2},format=raw,if=none,id=disk,cache=none";
        assert_eq!(after(emulator, "-drive"), [drive]);
    }

    #[test]
    fn emulator_drops_unneeded_privileges() {
        let line = line(&Params::new(), Link::None, None);
        assert!(line.contains(&"--unprivileged".to_owned()));
        assert_eq!(after(&line, "-sandbox"), [OWN_FILTER]);
    }

    #[test]
    fn shared_folder_uses_socket_connected_by_sandbox() {
        let socket = Some(Path::new("/x,y/shared.sock"));
        let settings = Params::new().with("memory", "512m").with("disk", "virtio");
        for (disk, number) in [(None, 2), (Some(Path::new("/disk")), 3)] {
            let line = sharing(&settings, Link::None, disk, socket);
            assert_eq!(after(&line, "--connect"), ["/x,y/shared.sock"]);
            let chardevs = after(&line, "-chardev");
            let ours = format!("socket,id=shared,fd={{tare.file.{number}}}");
            assert!(chardevs.contains(&ours), "{chardevs:?}");
            assert_eq!(
                after(&line, "-object"),
                ["memory-backend-memfd,id=memory,share=on,size=512M"]
            );
            assert!(after(&line, "-machine")[0].ends_with(",memory-backend=memory"));
            assert!(after(&line, "-append")[0].contains(" --shared"));
        }
        let served = Params::new()
            .with("disk", "shared")
            .with("inner", "container");
        let line = sharing(&served, Link::None, None, socket);
        assert!(after(&line, "-append")[0].contains(" --shared --shared-work arm-1 --inner run"));
        let alone = self::line(&settings, Link::None, None);
        assert!(after(&alone, "-object").is_empty());
        assert!(!after(&alone, "-machine")[0].contains("memory"));
    }

    #[test]
    fn guest_addresses_and_devices_follow_double_dash() {
        let append = |link| {
            let line = line(&Params::new(), link, None);
            after(&line, "-append")[0].clone()
        };
        let shown = append(Link::User);
        let (_, guest) = shown.split_once(" -- ").unwrap();
        assert_eq!(
            guest,
            "guest --address 10.0.2.15/24 --gateway 10.0.2.2 --no-spare"
        );
        assert!(append(Link::Tap).contains("{tare.arm}/{tare.bits}"));
        assert!(append(Link::None).ends_with("-- guest --no-spare"));
    }

    #[test]
    fn sandbox_creates_tap_device_and_no_other_network() {
        let tap = line(&Params::new(), Link::Tap, None);
        let end = tap.iter().position(|word| word == "--").unwrap();
        assert_eq!(&tap[end - 3..end], ["--tap", "run", "arm-1"]);
        let user = line(&Params::new(), Link::User, None);
        assert_eq!(
            (user[0].as_str(), after(&user, "--tap").len()),
            ("sandbox", 0)
        );
        let none = line(&Params::new().with("nic", "none"), Link::None, None);
        assert!(after(&none, "-netdev").is_empty());
    }
}
