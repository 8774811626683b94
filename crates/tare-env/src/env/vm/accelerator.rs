//! Checks whether KVM works here by booting a guest with it.
//!
//! A device node proves nothing. Some kernels offer `/dev/kvm`, create machines and then never execute an ordinary
//! guest's first instructions, or refuse registers that every guest sets. So the kernel and first process to be
//! measured are booted once per run, with a time limit, and must report.
//! Limits: whether the guest's host is itself a guest is not detected; nested virtualisation passes.

use crate::env::prelude::*;

use super::Emulator;
use super::boot::{boot, end};
use super::command::{Accelerator, KVM, Link, Machine};
use super::initramfs;
use super::kernel::Kernel;
use super::settings::{Accel, Settings};

/// Time limit for a guest's report with KVM; usually it takes a second.
const LIMIT: Duration = Duration::from_secs(5);

/// How a machine without KVM is described everywhere.
pub(super) const EMULATED: &str = "software emulation (TCG): not a VM's cost";

/// What the result depends on: the run, the kernel, the machine type and the processor model.
type Key = (String, PathBuf, String, Option<String>);

/// Cached results: why KVM does not work, or `None` if it does.
static KNOWN: Mutex<BTreeMap<Key, Option<String>>> = Mutex::new(BTreeMap::new());

/// Returns the accelerator to use, and why it is not KVM although KVM was permitted.
pub(super) fn choose(
    cx: &Context<'_>,
    agent: &AgentBinary,
    emulator: &Emulator,
    settings: &Settings,
    kernel: &Kernel,
) -> Result<(Accelerator, Option<String>)> {
    if settings.accel == Accel::Tcg {
        return Ok((Accelerator::Tcg, None));
    }
    let key = (
        cx.run.as_str().to_owned(),
        kernel.path.clone(),
        settings.machine.clone(),
        settings.cpu.clone(),
    );
    // Held during the trial, so that two arms do not try at once and slow each other down.
    let mut known = locked(&KNOWN);
    let why_not = known.entry(key).or_insert_with(|| {
        if !Path::new(KVM).exists() {
            return Some(format!("there is no `{KVM}`"));
        }
        let tried = try_out(cx, agent, emulator, settings, kernel);
        tried.err().map(|error| error.to_string())
    });
    match (why_not.clone(), settings.accel) {
        (None, _) => Ok((Accelerator::Kvm, None)),
        (Some(why), Accel::Kvm) => Err(EnvError::absent(
            format!("KVM does not work here: {why}"),
            "switch virtualisation on in the firmware or nested virtualisation in the host above, or use accel = \"tcg\"",
        )),
        (Some(why), _) => Ok((Accelerator::Tcg, Some(why))),
    }
}

/// Boots a guest without devices; leaves nothing behind.
fn try_out(
    cx: &Context<'_>,
    agent: &AgentBinary,
    emulator: &Emulator,
    settings: &Settings,
    kernel: &Kernel,
) -> Result<()> {
    let small = Params::new()
        .with("nic", "none")
        .with("cpus", 1i64)
        .with("memory", "512m");
    let small = Settings::read(&small).expect("these settings are no contradiction");
    let settings = Settings {
        machine: settings.machine.clone(),
        cpu: settings.cpu.clone(),
        ..small
    };
    let folder = cx.scratch.join(format!("vm-detect-{}", std::process::id()));
    let tried = initramfs::make(agent, kernel, &settings, &settings.modules(), &[], &folder)
        .and_then(|initramfs| {
            let machine = Machine {
                sibling: None,
                has_nfs: false,
                shared: None,
                settings: &settings,
                accelerator: Accelerator::Kvm,
                has_own_filter: emulator.has_own_filter,
                link: Link::None,
                kernel: &kernel.path,
                initramfs: &initramfs,
                console: &folder.join("console.log"),
                disk: None,
                label: "detect",
                run: cx.run.as_str(),
                mode: StartMode::Once,
            };
            let mut booted = boot(cx, cx.agent, &machine, LIMIT)?;
            end(booted.running.as_mut());
            Ok(())
        });
    files::remove_folder(&folder)?;
    tried
}
