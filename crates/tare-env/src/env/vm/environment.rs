//! A configured `vm` arm: prepares, starts and stops its machines.

use crate::env::prelude::*;

use tare_model::guest::{GuestReport, SHARED_FOLDER};
use tare_model::launch::SiblingLink;

use super::accelerator;
use super::boot::{Booted, boot, end, held_back};
use super::channel::VmChannel;
use super::command::{Accelerator, Link, Machine};
use super::disk::Lease;
use super::kernel::Kernel;
use super::settings::{Disk, Network, Nic, Settings};
use super::shared::Sharing;
use super::{Emulator, emulator, guest_agent, initramfs, system};
use crate::env::channel::StreamChannel;
use crate::env::container::instance_name;
use crate::env::image::host_files::{self, HostFile};
use crate::env::siblings::{Gathering, Number, Numbers};

/// Time limit for a machine to power off after its agent's goodbye. It writes its disk back.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// What every instance needs.
#[derive(Debug, Clone)]
struct Prepared {
    emulator: Emulator,
    kernel: Kernel,
    accelerator: Accelerator,
    /// Why it is not KVM, if KVM was tried.
    no_kvm: Option<String>,
    link: Link,
    /// Why it is not a TAP device, if one was tried.
    no_tap: Option<String>,
    initramfs: PathBuf,
    /// How the machines share a folder, or why they do not.
    sharing: Result<Sharing, Reason>,
}

/// A configured `vm`.
pub(super) struct VmEnvironment {
    arm: ArmId,
    settings: Settings,
    /// Programs of the study's workloads.
    provided: FileRequest,
    /// The numbers of the disk images in use.
    disks: Numbers,
    prepared: Option<Prepared>,
    /// The report of the guest started last, and the time until it arrived.
    last: Option<(GuestReport, Duration)>,
    /// User and seccomp mode of its emulator, as the kernel reports them.
    held: Vec<(&'static str, String)>,
    numbers: Numbers,
    gathering: Gathering,
}

impl VmEnvironment {
    pub(super) fn new(arm: ArmId, settings: Settings) -> Self {
        Self {
            arm,
            settings,
            provided: FileRequest::default(),
            disks: Numbers::default(),
            prepared: None,
            last: None,
            held: Vec::new(),
            numbers: Numbers::default(),
            gathering: Gathering::default(),
        }
    }

    /// Returns a machine's address among its siblings, or why it has none.
    fn place(
        &mut self,
        cx: &Context<'_>,
        number: &Number,
        prepared: &Prepared,
        mode: StartMode,
    ) -> Result<SiblingLink, Reason> {
        match prepared.link {
            // A machine for one first instruction needs no siblings.
            Link::Tap if mode == StartMode::Resident => self.gathering.link(cx, number),
            Link::Tap => Err(no_path("it is there for one instruction")),
            Link::None => Err(no_device(prepared.no_tap.as_deref())),
            Link::User => Err(no_path(
                "behind the emulator's own network stack no machine can reach another",
            )),
        }
    }

    fn folder(&self, cx: &Context<'_>) -> PathBuf {
        cx.scratch.join(format!("vm-{}", self.arm))
    }

    /// Prepares what is missing.
    fn ready(&mut self, cx: &Context<'_>) -> Result<Prepared> {
        if let Some(prepared) = &self.prepared
            && prepared.initramfs.exists()
        {
            return Ok(prepared.clone());
        }
        system::check(&self.settings)?;
        let emulator = emulator(cx)?;
        let agent = guest_agent(cx)?;
        let kernel = Kernel::find(self.settings.kernel.as_deref())?;
        let packed = self.packed(cx)?;
        let folder = self.folder(cx);
        let is_served = self.settings.disk == Disk::Shared;
        let sharing = if self.gathering.is_wanted() || is_served {
            Sharing::find(&kernel, self.settings.shared)
        } else {
            Err(not_shared())
        };
        if let (true, Err(why)) = (is_served, &sharing) {
            return Err(EnvError::absent(
                format!("no folder can be served to the machine: {why}"),
                "`apt-get install qemu-system-common` has `virtiofsd`",
            ));
        }
        let mut modules = self.settings.modules();
        if sharing.is_ok() {
            modules.extend(self.settings.shared.modules());
        }
        let initramfs =
            initramfs::make(agent, &kernel, &self.settings, &modules, &packed, &folder)?;
        let (accelerator, no_kvm) =
            accelerator::choose(cx, agent, &emulator, &self.settings, &kernel)?;
        let (link, no_tap) = self.link(cx)?;
        if self.settings.disk.has_image() {
            self.disk(cx)?.keep();
        }
        let prepared = Prepared {
            emulator,
            kernel,
            accelerator,
            no_kvm,
            link,
            no_tap,
            initramfs,
            sharing,
        };
        Ok(self.prepared.insert(prepared).clone())
    }

    /// Returns the host files to pack: those that the settings name, or else those of the study's workloads that
    /// exist.
    fn packed(&self, cx: &Context<'_>) -> Result<Vec<HostFile>> {
        let named = &self.settings.wanted;
        let wanted = if named.is_empty() {
            host_files::present(cx, &self.provided)
        } else {
            named.clone()
        };
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        Ok(host_files::find(cx, &wanted)?.files)
    }

    /// Returns a disk image that no machine uses.
    fn disk(&self, cx: &Context<'_>) -> Result<Lease> {
        Lease::take(cx, self.disks.take(), &self.folder(cx), &self.settings)
    }

    /// Returns the host folder that the guests share.
    fn shared(&self, cx: &Context<'_>) -> PathBuf {
        self.folder(cx).join("shared")
    }

    /// Decides what the network device is connected to, after trying a TAP device.
    fn link(&self, cx: &Context<'_>) -> Result<(Link, Option<String>)> {
        if self.settings.nic == Nic::None {
            return Ok((Link::None, None));
        }
        if self.settings.network == Network::User {
            return Ok((Link::User, None));
        }
        let agent = cx.agent.pinned().display().to_string();
        let label = instance_name(self.arm.as_str());
        let arguments = [
            "sandbox",
            "--tap",
            cx.run.as_str(),
            &label,
            "--",
            &agent,
            "true",
        ];
        let command = cx.agent.command(arguments);
        let finished = cx.exec.run(&command, &[], CONTROL_LIMIT)?;
        if finished.succeeded() {
            return Ok((Link::Tap, None));
        }
        let why = finished
            .stderr_text()
            .trim()
            .trim_start_matches("tare-agent: sandbox: ")
            .escape_debug()
            .to_string();
        if self.settings.network == Network::Tap {
            return Err(EnvError::denied(
                why,
                "run as root, or use network = \"user\"",
            ));
        }
        // The emulator's network stack would let the guest reach servers on this machine's loopback.
        Ok((Link::None, Some(why)))
    }
}

impl Environment for VmEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn provide(&mut self, wanted: &FileRequest) {
        // A system has programs of its own.
        if self.settings.system.is_none() {
            self.provided.add(wanted);
        }
    }

    fn gather(&mut self, nodes: u32) {
        self.gathering.want(nodes);
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        self.ready(cx).map(drop)
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        let prepared = self.ready(cx)?;
        let name = instance_name(self.arm.as_str());
        let folder = self.folder(cx).join(&name);
        files::create_folder(&folder)?;
        let is_served = self.settings.disk == Disk::Shared;
        let disk = || self.disk(cx);
        let disk = self.settings.disk.has_image().then(disk).transpose()?;
        let (image, console) = (disk.as_ref().map(Lease::image), folder.join("console.log"));
        let number = self.numbers.take();
        let place = self.place(cx, &number, &prepared, mode);
        let serving = match &prepared.sharing {
            Ok(sharing) if mode == StartMode::Resident || is_served => {
                sharing.serve(cx, &self.shared(cx), &folder)
            }
            _ => Ok(None),
        };
        // A folder that another machine serves is reached over the network between them.
        let shared = match (&prepared.sharing, &place) {
            (Ok(Sharing::Nfs), Err(why)) => Err(why.clone()),
            (sharing, _) => sharing.clone().map(drop),
        };
        let booted = serving.and_then(|server| {
            let machine = Machine {
                sibling: place.as_ref().ok().copied(),
                has_nfs: prepared.sharing == Ok(Sharing::Nfs) && place.is_ok(),
                shared: server.as_ref().map(|server| server.socket.as_path()),
                settings: &self.settings,
                accelerator: prepared.accelerator,
                has_own_filter: prepared.emulator.has_own_filter,
                link: prepared.link,
                kernel: &prepared.kernel.path,
                initramfs: &prepared.initramfs,
                console: &console,
                disk: image.as_deref(),
                label: &name,
                run: cx.run.as_str(),
                mode,
            };
            Ok((
                boot(cx, cx.agent, &machine, self.settings.boot_limit)?,
                server,
            ))
        });
        let (booted, server) = match booted {
            Ok(booted) => booted,
            Err(first) => {
                let removed = files::remove_folder(&folder).map_err(EnvError::from);
                return Err(and_cleanup(first, removed));
            }
        };
        let Booted {
            running,
            writer,
            reader,
            report,
            took,
        } = booted;
        self.last = Some((report.clone(), took));
        self.held = held_back(running.id());
        Ok(Box::new(VmInstance {
            channel: VmChannel {
                stream: StreamChannel::new(writer, reader),
                running,
                console,
                server,
            },
            served: is_served.then(|| self.shared(cx).join(&name)),
            folder,
            made_of: [prepared.kernel.path.clone(), prepared.initramfs.clone()],
            disk,
            link: prepared.link,
            no_tap: prepared.no_tap,
            shared,
            place: place.map(|link| link.address.into()),
            _number: number,
            report,
        }))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        let mut facts = self.settings.facts();
        let mut add = |name: &str, value: &str| {
            let name = match fact::what(fact::VM, name) {
                Some(_) => name.to_owned(),
                None => fact::name_for(fact::VM, name),
            };
            facts.insert(name, value.to_owned());
        };
        if let Some(prepared) = &self.prepared {
            add("qemu_version", &prepared.emulator.version);
            add("kernel", &prepared.kernel.path.display().to_string());
            if let Some(release) = &prepared.kernel.release {
                add("kernel_release", release);
            }
            add("accelerator", prepared.accelerator.as_str());
            let is_emulated = prepared.accelerator == Accelerator::Tcg;
            add(fact::VM_EMULATED, &is_emulated.to_string());
            if is_emulated {
                add(fact::VM_EMULATED_DETAIL, accelerator::EMULATED);
            }
            if let Some(why) = &prepared.no_kvm {
                add(fact::VM_NO_KVM, why);
            }
            add(fact::VM_CPU, prepared.accelerator.cpu(&self.settings));
            let link = match prepared.link {
                Link::None => "none",
                Link::Tap => "tap",
                Link::User => "user",
            };
            add("network", link);
            if let Some(why) = &prepared.no_tap {
                add("no_tap", why);
            }
        }
        for (name, value) in &self.held {
            add(name, value);
        }
        if let Some((report, took)) = &self.last {
            add("workdir_filesystem", &report.filesystem);
            add("boot_ms", &took.as_millis().to_string());
            if let Some(system) = &report.system {
                add("system_state", system);
            }
            if let Some(driver) = &report.nic_driver {
                add("nic_driver", driver);
            }
        }
        facts
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        self.prepared = None;
        self.gathering.end();
        Ok(files::remove_folder(&self.folder(cx))?)
    }
}

/// A started machine.
struct VmInstance {
    channel: VmChannel,
    folder: PathBuf,
    /// Its working directory, if this machine serves it.
    served: Option<PathBuf>,
    /// Its kernel and its initial file system.
    made_of: [PathBuf; 2],
    disk: Option<Lease>,
    link: Link,
    no_tap: Option<String>,
    /// Why it shares no folder with its siblings, if it does not.
    shared: Result<(), Reason>,
    /// Its address for siblings, or why it has none.
    place: Result<IpAddr, Reason>,
    _number: Number,
    report: GuestReport,
}

impl VmInstance {
    fn no_path(&self) -> Reason {
        match self.link {
            Link::None => no_device(self.no_tap.as_deref()),
            Link::Tap | Link::User => {
                no_path("behind the emulator's own network stack the host cannot reach the guest")
            }
        }
    }
}

/// Returns why the guest has no network device.
fn no_device(no_tap: Option<&str>) -> Reason {
    no_path(no_tap.map_or_else(
        || "nic = \"none\"".to_owned(),
        |why| {
            format!(
                "a TAP device cannot be had: {why}; `network = \"user\"` gives the guest the emulator's own network \
                 stack, through which it reaches what listens on this machine's loopback"
            )
        },
    ))
}

impl Instance for VmInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        match (self.link, self.report.addresses) {
            (Link::Tap, Some(addresses)) => Ok(addresses.arm.into()),
            _ => Err(self.no_path()),
        }
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.report
            .addresses
            .map(|addresses| addresses.host.into())
            .ok_or_else(|| self.no_path())
    }

    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        self.place.clone()
    }

    fn shared(&self) -> Result<String, Reason> {
        self.shared.clone()?;
        Ok(SHARED_FOLDER.to_owned())
    }

    fn workdir(&self) -> String {
        self.report.workdir.clone()
    }

    /// The machine with its devices is a single process.
    fn charged(&self) -> Charged {
        Charged::Process(self.channel.running.id())
    }

    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        let image = self.disk.as_ref().map(Lease::image);
        let files = self.made_of.iter().chain(&image);
        Some(files.map(|path| files::taken_bytes(path)).sum())
    }

    fn stop(mut self: Box<Self>, _cx: &Context<'_>) -> Result<()> {
        // A crashed agent cannot receive it, and does not need it: its machine is already powering off.
        let is_sent = self.channel.stream.send(&Request::Bye).is_ok();
        let ended = matches!(self.channel.running.wait(STOP_LIMIT), Ok(Some(_)));
        if !ended {
            end(self.channel.running.as_mut());
        }
        if let (Some(disk), true) = (self.disk.take(), is_sent && ended) {
            disk.keep();
        }
        drop(self.channel.server.take());
        if let Some(folder) = &self.served {
            files::remove_folder(folder)?;
        }
        Ok(files::remove_folder(&self.folder)?)
    }
}
