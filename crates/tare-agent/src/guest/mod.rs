//! `guest`: the first process of a virtual machine that Tare made.
//!
//! The machine holds only this file, the modules that its devices need and the packed programs. This process mounts
//! the kernel's file systems, loads the modules, brings up the network, the disk and the folder that the host serves,
//! and reports the result to the host. Then a child serves the channel, as every arm's agent does: in the machine
//! itself or in a container. The child ends when the channel closes, and the machine powers off with it, so a guest
//! never outlives its host's use of it. With a system on the disk, its init becomes the first process (`system`).
//! Options come from the kernel command line, after `--`, and arrive as arguments.
//! Limits: does not see whether its CPU is emulated; the host knows how it started the machine.

mod inner;
mod machine;
mod modules;
mod nfs;
mod system;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use tare_model::RunId;
use tare_model::guest::{GUEST_PORT, GuestReport, SHARED_FOLDER, SHARED_TAG};
use tare_model::launch::PairAddresses;
use tare_model::wire::write_frame;

use crate::launch::network;
use crate::launch::sys;

/// How long a device may take to appear after its driver was loaded. Emulated machines are slow.
const DEVICE_LIMIT: Duration = Duration::from_secs(20);

/// Polling interval for a device.
const STEP: Duration = Duration::from_millis(1);

/// The probes' work directory.
const WORKDIR: &str = "/work";

/// The file system of the disk.
const DISK_KIND: &str = "ext4";

/// The file system of the folder that the host serves.
const SHARED_KIND: &str = "virtiofs";

/// The machine's host name, the same as a built-in container's.
const HOST_NAME: &str = "tare";

/// The initial environment variables of every program inside, as in a container.
const VARIABLES: [(&str, &str); 3] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", "/root"),
    ("HOSTNAME", HOST_NAME),
];

/// What the disk is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskUse {
    /// The probes' work directory.
    Work,
    /// The root: it holds a system, whose init is to run.
    System,
}

/// The host's options.
#[derive(Debug, Default, PartialEq, Eq)]
struct GuestOptions {
    addresses: Option<PairAddresses>,
    has_nic: bool,
    /// `None` without a disk.
    disk: Option<DiskUse>,
    /// Whether the host serves a folder.
    has_shared: bool,
    /// Whether the first of the arm's machines serves a folder to the others.
    has_nfs: bool,
    /// The subfolder of the served folder that is the working directory, if any.
    shared_work: Option<String>,
    /// The run's name, if the agent runs in a container inside the machine.
    inner: Option<RunId>,
    /// The address on the network of the arm's other instances, if any.
    sibling: Option<(Ipv4Addr, u8)>,
    /// Arguments passed on to `serve`.
    serve: Vec<String>,
}

impl GuestOptions {
    /// Parses `--nic`, `--address ARM/BITS --gateway HOST`, `--sibling ADDRESS/BITS`, `--disk`, `--system`,
    /// `--shared`, `--shared-work NAME`, `--nfs`, `--inner RUN` and `--no-spare`.
    fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut wanted = Self::default();
        let (mut arm, mut host) = (None, None);
        let mut arguments = arguments.iter().map(String::as_str);
        while let Some(argument) = arguments.next() {
            match argument {
                "--nic" => wanted.has_nic = true,
                "--disk" => wanted.disk = Some(DiskUse::Work),
                "--system" => wanted.disk = Some(DiskUse::System),
                "--shared" => wanted.has_shared = true,
                "--nfs" => wanted.has_nfs = true,
                "--no-spare" => wanted.serve.push(argument.to_owned()),
                "--shared-work" => {
                    let name = arguments.next().filter(|name| !name.contains('/'));
                    wanted.shared_work =
                        Some(name.ok_or("`--shared-work NAME` is expected")?.to_owned());
                }
                "--inner" => {
                    let run = arguments.next().and_then(|text| RunId::new(text).ok());
                    wanted.inner = Some(run.ok_or("`--inner RUN` is expected")?);
                }
                "--address" => arm = arguments.next().and_then(address),
                "--sibling" => {
                    let found = arguments.next().and_then(address);
                    wanted.sibling = Some(found.ok_or("`--sibling ADDRESS/BITS` is expected")?);
                }
                "--gateway" => host = arguments.next().and_then(|text| text.parse().ok()),
                other => return Err(format!("no option `{}`", other.escape_debug())),
            }
        }
        match (arm, host) {
            (Some((arm, prefix_bits)), Some(host)) => {
                wanted.has_nic = true;
                wanted.addresses = Some(PairAddresses {
                    host,
                    arm,
                    prefix_bits,
                });
            }
            (None, None) => {}
            _ => return Err("`--address ARM/BITS` and `--gateway HOST` go together".to_owned()),
        }
        Ok(wanted)
    }
}

/// Parses an address such as `198.18.0.2/30`.
fn address(text: &str) -> Option<(Ipv4Addr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let bits = bits.parse().ok().filter(|bits| *bits <= 32)?;
    Some((address.parse().ok()?, bits))
}

/// Runs `guest` with the arguments after it. Returns only if it is not the first process.
pub fn main(arguments: &[String]) -> ExitCode {
    if std::process::id() != 1 {
        say("`guest` is the first process of a virtual machine and does nothing elsewhere");
        return ExitCode::from(2);
    }
    if let Err(problem) = live(arguments) {
        say(&problem);
    }
    machine::power_off()
}

/// Prints a line on the machine's console, which the host keeps for its error messages.
fn say(text: &str) {
    // A system may have taken the console away.
    let _ = writeln!(io::stderr(), "tare-agent: guest: {text}");
}

fn live(arguments: &[String]) -> Result<(), String> {
    let wanted = GuestOptions::parse(arguments)?;
    if wanted.inner.is_some() {
        // Before anything is mounted, so that nothing is mounted twice.
        inner::leave_first_root()?;
    }
    machine::mount_kernel_file_systems()?;
    // The host name is informational; programs fall back to another one.
    let _ = sys::set_host_name(HOST_NAME);
    let mut report = GuestReport::default();
    let problems = modules::load_all(Path::new("/modules"), &mut report.modules);
    for problem in &problems {
        say(problem);
    }
    let port = wait_for("the port of the channel", || port(GUEST_PORT))?;
    let port = File::options()
        .read(true)
        .write(true)
        .open(&port)
        .map_err(|error| format!("cannot open {}: {error}", port.display()))?;
    let command = enter(&wanted)
        .and_then(|()| equip(&wanted, &mut report))
        .and_then(|()| agent(&wanted, &mut report));
    let command = command.map_err(|problem| {
        let why = std::iter::once(&problem).chain(&problems);
        let why: Vec<&str> = why.map(String::as_str).collect();
        report.error = Some(why.join("; "));
    });
    if command.is_ok() && wanted.disk == Some(DiskUse::System) {
        return system::hand_over(report, port, &wanted.serve);
    }
    tell(&port, &mut report)?;
    let Ok(command) = command else {
        // Power-off would lose bytes that the port has not handed over yet.
        machine::wait_until_taken(&port);
        return Ok(());
    };
    let mut child =
        start_agent(port, command).map_err(|error| format!("cannot start the agent: {error}"))?;
    wait_for_end(&mut child).map_err(|error| format!("cannot wait for the agent: {error}"))
}

/// Sends the report to the host.
fn tell(port: &File, report: &mut GuestReport) -> Result<(), String> {
    report.up_ns = machine::up_ns();
    write_frame(&mut &*port, report).map_err(|error| format!("cannot report: {error}"))
}

/// Makes the system on the disk the root, if there is one.
fn enter(wanted: &GuestOptions) -> Result<(), String> {
    if wanted.disk != Some(DiskUse::System) {
        return Ok(());
    }
    system::enter(&wait_for("the disk", disk)?)
}

/// Sets up the network, the shared folder and the disk.
fn equip(wanted: &GuestOptions, report: &mut GuestReport) -> Result<(), String> {
    let mut addresses = None;
    if wanted.has_nic {
        let device = Path::new("/sys/class/net/eth0");
        wait_for("the network device", || device.exists().then_some(()))?;
        report.nic_driver = fs::read_link(device.join("device/driver"))
            .ok()
            .and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        addresses = wanted.addresses.as_ref();
    }
    network::raise_inside(addresses).map_err(|error| error.to_string())?;
    report.addresses = addresses.copied();
    if let Some((address, prefix_bits)) = wanted.sibling {
        let device = Path::new("/sys/class/net").join(network::SIBLING);
        wait_for("the network device between the machines", || {
            device.exists().then_some(())
        })?;
        network::raise_sibling(address, prefix_bits).map_err(|error| error.to_string())?;
        report.sibling_address = Some(address);
        if wanted.has_nfs {
            make_shared()?;
            nfs::share(address, prefix_bits)?;
        }
    }
    if wanted.has_shared {
        make_shared()?;
        mount_shared()?;
    }
    WORKDIR.clone_into(&mut report.workdir);
    if wanted.disk == Some(DiskUse::System) {
        // The working directory is a folder of the system's disk.
        DISK_KIND.clone_into(&mut report.filesystem);
        return fs::create_dir_all(WORKDIR)
            .map_err(|error| format!("cannot make {WORKDIR} on the disk: {error}"));
    }
    let (source, kind, flags) = if wanted.disk.is_some() {
        let disk = wait_for("the disk", disk)?;
        (disk, DISK_KIND, 0)
    } else if let Some(name) = &wanted.shared_work {
        let folder = Path::new(SHARED_FOLDER).join(name);
        fs::create_dir_all(&folder)
            .map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        (folder, SHARED_KIND, libc::MS_BIND)
    } else {
        (PathBuf::from("tmpfs"), "tmpfs", 0)
    };
    kind.clone_into(&mut report.filesystem);
    fs::create_dir_all(WORKDIR)
        .and_then(|()| sys::mount(source.as_os_str(), Path::new(WORKDIR), kind, flags, ""))
        .map_err(|error| {
            format!(
                "cannot mount {} as {kind} on {WORKDIR}: {error}",
                source.display()
            )
        })
}

fn make_shared() -> Result<(), String> {
    fs::create_dir_all(SHARED_FOLDER)
        .map_err(|error| format!("cannot make {SHARED_FOLDER}: {error}"))
}

/// Mounts the folder that the host serves to the arm's machines. Its device may appear after its driver.
fn mount_shared() -> Result<(), String> {
    let folder = Path::new(SHARED_FOLDER);
    let mut refusal = String::new();
    wait_for("the shared folder", || {
        sys::mount(SHARED_TAG.as_ref(), folder, SHARED_KIND, 0, "")
            .map_err(|error| refusal = error.to_string())
            .ok()
    })
    .map_err(|late| format!("{late}: {refusal}"))
}

/// Polls until `look` returns a value, at most for [`DEVICE_LIMIT`].
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if begin.elapsed() > DEVICE_LIMIT {
            let limit = DEVICE_LIMIT.as_secs();
            return Err(format!("{what} did not appear within {limit} s"));
        }
        std::thread::sleep(STEP);
    }
}

/// Returns the device file of the virtio port of this name.
fn port(name: &str) -> Option<PathBuf> {
    let ports = fs::read_dir("/sys/class/virtio-ports").ok()?;
    ports.flatten().find_map(|entry| {
        let found = fs::read_to_string(entry.path().join("name")).ok()?;
        let device = Path::new("/dev").join(entry.file_name());
        (found.trim() == name && device.exists()).then_some(device)
    })
}

/// Returns the device file of the only disk, on any bus.
fn disk() -> Option<PathBuf> {
    let devices = fs::read_dir("/sys/block").ok()?;
    devices.flatten().find_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let is_called = |prefix: &str| name.starts_with(prefix);
        let is_disk = is_called("vd") || is_called("sd") || is_called("nvme");
        let device = Path::new("/dev").join(&name);
        (is_disk && device.exists()).then_some(device)
    })
}

/// Returns the command that starts the agent, in the machine or in a container.
fn agent(wanted: &GuestOptions, report: &mut GuestReport) -> Result<Command, String> {
    let Some(run) = &wanted.inner else {
        let mut command = Command::new("/proc/self/exe");
        command.arg("serve").args(&wanted.serve);
        return Ok(command);
    };
    if let Err(error) = inner::mount_groups() {
        say(&format!("no cgroups: {error}"));
    }
    let is_bound = wanted.shared_work.is_some();
    let (command, workdir) = inner::command(run, is_bound, &wanted.serve)?;
    report.workdir = workdir;
    if !is_bound {
        "overlay".clone_into(&mut report.filesystem);
    }
    Ok(command)
}

/// Starts the agent with the port as stdin and stdout; its stderr stays the console.
fn start_agent(port: File, mut command: Command) -> io::Result<Child> {
    let input = port.try_clone()?;
    command.envs(VARIABLES).stdin(input).stdout(port).spawn()
}

/// Reaps every process, as the first process must, until the agent has exited.
fn wait_for_end(agent: &mut Child) -> io::Result<()> {
    loop {
        match machine::reap_any()? {
            process if process == agent.id() => return Ok(()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Result<GuestOptions, String> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        GuestOptions::parse(&words)
    }

    #[test]
    fn guest_address_requires_gateway_and_implies_nic() {
        let both = wanted("--address 198.18.0.2/30 --gateway 198.18.0.1").unwrap();
        let addresses = both.addresses.unwrap();
        assert!(both.has_nic);
        assert_eq!(addresses.prefix_bits, 30);
        assert_eq!(addresses.host, Ipv4Addr::new(198, 18, 0, 1));
        assert!(wanted("--nic").unwrap().addresses.is_none());
        assert!(wanted("--shared").unwrap().has_shared);
        assert!(wanted("--nfs").unwrap().has_nfs);
        assert_eq!(wanted("--system").unwrap().disk, Some(DiskUse::System));
        let served = wanted("--shared --shared-work arm-1 --inner run").unwrap();
        assert_eq!(served.shared_work.as_deref(), Some("arm-1"));
        assert!(served.inner.is_some());
        let beside = wanted("--nic --sibling 192.0.2.2/24").unwrap().sibling;
        assert_eq!(beside, Some((Ipv4Addr::new(192, 0, 2, 2), 24)));
        assert!(wanted("--sibling 192.0.2.2").is_err());
        for wrong in [
            "--address 198.18.0.2/30",
            "--gateway 198.18.0.1",
            "--address 198.18.0.2 --gateway 198.18.0.1",
            "--address 198.18.0.2/33 --gateway 198.18.0.1",
            "--shared-work a/b",
            "--inner",
            "--format",
        ] {
            assert!(wanted(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn guest_main_fails_unless_pid_1() {
        assert_eq!(main(&[]), ExitCode::from(2));
    }
}
