//! `vm`: a QEMU virtual machine with a kernel of this machine, and with the agent alone or a system of the user's.
//!
//! No distribution image: the initial file system is made here. It holds the agent as the first process, the modules
//! of the devices and the host programs to run inside, so a machine is ready as soon as its kernel is. If the
//! settings name a system, its copy is on the disk, and its init takes over. The emulator is a program of the user's,
//! called with only what the settings say.
//! KVM is used if a guest really boots with it. Otherwise the processor is emulated, which is stated as a fact, on
//! every result and in the report: the numbers are then not the overhead of a virtual machine.
//! Limits: whether the host is a virtual machine itself is not detected.

use crate::env::prelude::*;

mod accelerator;
mod boot;
mod channel;
mod command;
mod cpio;
mod disk;
mod environment;
mod initramfs;
mod kernel;
mod settings;
mod shared;
mod system;

use self::command::{Accelerator, PROGRAM, PROGRAM_FIX};
use self::environment::VmEnvironment;
use self::kernel::Kernel;
use self::settings::{SETTINGS, Settings};
use super::error::succeed;

/// Time limit for the emulator to print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);

/// The driver.
#[derive(Debug, Clone, Copy)]
pub struct Vm;

impl Driver for Vm {
    fn declared(&self) -> &Declared {
        &tare_core::driver::vm::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        detected(cx).into()
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        let settings = Settings::read(settings)?;
        Ok(Box::new(VmEnvironment::new(arm, settings)))
    }

    /// Ends emulators and sandboxes, which are processes with the run's label; a TAP device is removed with its
    /// emulator.
    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        super::host::lines_of(cx, &["end-runs", run], "ending the machines of dead runs")
    }
}

/// Checks everything that a machine with the default settings needs, except booting it in software.
fn detected(cx: &Context<'_>) -> Result<Facts> {
    let emulator = emulator(cx)?;
    let agent = guest_agent(cx)?;
    let settings = Settings::read(&Params::new()).expect("no settings are no contradiction");
    let kernel = Kernel::find(None)?;
    kernel.modules(&settings.modules())?;
    let (accelerator, no_kvm) = accelerator::choose(cx, agent, &emulator, &settings, &kernel)?;
    let mut facts = Facts::from([
        (
            fact::name_for(fact::VM, "accelerator"),
            accelerator.as_str().to_owned(),
        ),
        (
            fact::name_for(fact::VM, "kernel"),
            kernel.path.display().to_string(),
        ),
        (fact::name_for(fact::VM, "qemu_version"), emulator.version),
    ]);
    if accelerator == Accelerator::Tcg {
        facts.insert(fact::VM_EMULATED.to_owned(), "true".to_owned());
        let how = accelerator::EMULATED.to_owned();
        facts.insert(fact::VM_EMULATED_DETAIL.to_owned(), how);
    }
    if let Some(why) = no_kvm {
        facts.insert(fact::VM_NO_KVM.to_owned(), why);
    }
    Ok(facts)
}

/// Properties of the emulator.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Emulator {
    version: String,
    /// Whether it was built with its seccomp filter: the option is listed only then.
    has_own_filter: bool,
}

impl Emulator {
    /// Parses the emulator's help, which begins with its version.
    fn read(help: &str) -> Self {
        let line = help.lines().next().unwrap_or_default();
        let line = line.trim_start_matches("QEMU emulator version ");
        Self {
            version: escaped(line),
            has_own_filter: help.lines().any(|line| line.starts_with("-sandbox on")),
        }
    }
}

/// Queries the emulator's properties.
fn emulator(cx: &Context<'_>) -> Result<Emulator> {
    if !cfg!(target_os = "linux") {
        return Err(EnvError::unavailable(
            "it is made from a Linux host's kernel and modules",
        ));
    }
    let command = CommandLine::new(PROGRAM, ["-help"]);
    match succeed(cx, &command, VERSION_LIMIT, format!("`{PROGRAM} -help`")) {
        Err(EnvError::Command(error @ CommandError::Missing { .. })) => {
            Err(EnvError::absent(error.to_string(), PROGRAM_FIX))
        }
        finished => Ok(Emulator::read(&finished?.stdout_text())),
    }
}

/// Returns the agent for a guest's first process: a static program.
fn guest_agent<'a>(cx: &Context<'a>) -> Result<&'a AgentBinary> {
    let arch = std::env::consts::ARCH;
    cx.agents.linux(arch).ok_or_else(|| {
        EnvError::absent(
            format!("there is no agent for Linux on {arch} that needs no library"),
            "build one with `cargo xtask dist`",
        )
    })
}
