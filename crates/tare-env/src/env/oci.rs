//! `oci`: a container started by any program with the OCI runtime's command line.
//!
//! runc, crun, youki, runsc (gVisor), Kata: no engine, no image, no shim. So the difference between this and `docker`
//! is the engine, and the difference between two runtimes is the runtime. The specification is Tare's, the user's, or
//! the one that Docker used, with single mechanisms switched off by settings.
//! The specification's types are in `spec` rather than from the crate `oci-spec`, which knows one version of the
//! format, loses fields of others, and brings 37 crates for five structures.
//! A runtime always runs in private mount and PID namespaces, which the agent creates: otherwise it mounts on the
//! host, and its leftovers would survive a kill.
//! Limits: a runtime's work in a separate service is not seen. Runtimes without root need a user mapping that Tare
//! does not create.

use crate::env::prelude::*;

mod engine_spec;
mod instance;
mod runtime;
mod seccomp;
mod settings;
mod spec;

use std::sync::OnceLock;

use tare_model::launch::{CAPABILITIES, DockerRelease, PairAddresses};
use tare_model::whole_ns;

use self::instance::{Living, OciInstance, clean};
use self::runtime::{Container, KNOWN, Runtime, refusal};
use self::settings::{Rootfs, SETTINGS, Settings, Source};
use self::spec::{AGENT, Built, Spec, SpecTarget, WORKDIR};
use super::channel::{LAST_WORDS_LIMIT, ProcessChannel, wait_for_last_words};
use super::charged;
use super::private;
use super::{TURN_PAGE, container, docker};
use crate::cx::turn_page;

/// Time limit for starting a container: tens of milliseconds with most runtimes, seconds with a VM inside.
const START_LIMIT: Duration = Duration::from_secs(20);

/// Time limit for the probe of [`Driver::detect`] per runtime.
const DETECT_LIMIT: Duration = Duration::from_secs(5);

/// Polling interval for the container's start.
const STEP: Duration = Duration::from_micros(200);

/// The driver.
#[derive(Debug, Clone, Copy)]
pub struct Oci;

impl Driver for Oci {
    fn declared(&self) -> &Declared {
        &tare_core::driver::oci::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        if !cfg!(target_os = "linux") {
            return EnvError::unavailable("OCI runtimes are started on Linux only").into();
        }
        let mut facts = Facts::from([(
            fact::name_for(fact::OCI, "cgroups"),
            charged::mounts().0.to_owned(),
        )]);
        let mut first = None;
        let mut is_ready = false;
        for (name, _) in KNOWN {
            let fact = match try_out(cx, name) {
                Ok(runtime) => {
                    is_ready = true;
                    let note = if runtime.hides_unified {
                        ", with the second cgroup version hidden from it"
                    } else {
                        ""
                    };
                    format!("{} ({}){note}", runtime.version, runtime.path.display())
                }
                Err(error) => {
                    let fact = match error.hint() {
                        Some(fix) => format!("absent: {error}; {fix}"),
                        None => format!("absent: {error}"),
                    };
                    first.get_or_insert(error);
                    fact
                }
            };
            facts.insert(fact::name_for(fact::OCI, name), fact);
        }
        match first {
            Some(error) if !is_ready => error.into(),
            _ => Availability::Ready(facts),
        }
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        Ok(Box::new(OciEnvironment {
            arm,
            settings: Settings::read(settings)?,
            is_root_chosen: settings.value("rootfs").is_some(),
            base: None,
            release: None,
            runtime: None,
            remarks: Vec::new(),
            living: Living::default(),
        }))
    }

    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        container::sweep_run(cx, run)
    }
}

/// Runs the agent's shortest command in a container of this runtime.
fn try_out(cx: &Context<'_>, name: &str) -> Result<Runtime> {
    let agent = agent(cx)?;
    let runtime = runtime::find(cx, agent, name)?;
    let settings = Settings::read(&Params::new()).expect("no settings are no contradiction");
    let container = Container::new(cx, container::instance_name("detect"));
    let ran = furnish(cx, agent, &container, &settings)
        .and_then(|()| {
            write_spec(
                cx,
                &container,
                &settings,
                None,
                DockerRelease::default(),
                &["true"],
                None,
            )
        })
        .and_then(|_| {
            let command = runtime::run_command(cx, agent, &runtime, &settings, &container);
            Ok(cx.exec.run(&command, &[], DETECT_LIMIT)?)
        })
        .and_then(|finished| match finished.status {
            Some(0) => Ok(()),
            status => Err(refusal(name, status, &finished.stderr_text())),
        });
    match ran {
        Ok(()) => files::remove_folder(&container.folder)?,
        Err(error) => return Err(and_cleanup(error, clean(cx, &container))),
    }
    Ok(runtime)
}

/// Returns the static agent that goes inside and sets up the namespaces.
fn agent<'a>(cx: &Context<'a>) -> Result<&'a AgentBinary> {
    cx.agents.linux(std::env::consts::ARCH).ok_or_else(|| {
        EnvError::absent(
            "there is no static agent for this machine, and a minimal root has no libraries",
            "build one with `cargo xtask dist`, or name one with `--agent`",
        )
    })
}

/// Creates the container's folder: root, agent, state, and a folder for files.
fn furnish(
    cx: &Context<'_>,
    agent: &AgentBinary,
    container: &Container,
    settings: &Settings,
) -> Result<()> {
    let folder = &container.folder;
    files::create_folder(cx.scratch)?;
    for name in ["state", "files"] {
        files::create_folder(&folder.join(name))?;
    }
    let root = match settings.rootfs {
        Rootfs::Minimal => {
            // Mount points that a runtime uses or expects, whatever the specification says.
            let root = folder.join("rootfs");
            for name in ["dev", "etc", "proc", "sys", "tmp"] {
                let place = root.join(name);
                files::create_folder(&place)?;
                files::show_to_all(&place)?;
            }
            root
        }
        Rootfs::OverlayHost => {
            // These characters are separators in the mount options of an overlay.
            let text = folder.display().to_string();
            if text.contains([',', ':', '\\', '"']) {
                return Err(EnvError::absent(
                    format!(
                        "`{}` holds a comma, colon, quote or backslash, which no overlay takes",
                        text.escape_debug()
                    ),
                    "set TARE_HOME to a folder without them, or rootfs = \"minimal\"",
                ));
            }
            for name in ["work", "merged"] {
                files::create_folder(&folder.join(name))?;
            }
            folder.join("upper")
        }
    };
    let workdir = root.join(WORKDIR.trim_start_matches('/'));
    files::create_folder(&workdir)?;
    // A specification may name any user.
    files::show_to_all(&root)?;
    files::open_to_all(&workdir)?;
    files::open_to_all(&folder.join("files"))?;
    let bytes = agent.bytes()?;
    files::write_program(&root.join(AGENT.trim_start_matches('/')), &bytes)?;
    Ok(())
}

/// Returns the capabilities in this process's bounding set, which it can pass on.
fn available_capabilities() -> Vec<String> {
    let status = files::read_text(Path::new("/proc/self/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("CapBnd:"))
        .and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok())
        .unwrap_or_default();
    CAPABILITIES
        .iter()
        .enumerate()
        .filter(|(number, _)| mask & 1 << number != 0)
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

/// Builds the specification and writes it into the bundle.
fn write_spec(
    cx: &Context<'_>,
    container: &Container,
    settings: &Settings,
    base: Option<&Spec>,
    release: DockerRelease,
    arguments: &[&str],
    turn_page: Option<&str>,
) -> Result<Built> {
    let kernel = files::read_text(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let text = |name: &str| container.folder.join(name).display().to_string();
    let root = match settings.rootfs {
        Rootfs::Minimal => text("rootfs"),
        Rootfs::OverlayHost => text("merged"),
    };
    let (hidden, mut shown) = if settings.private_paths && settings.rootfs == Rootfs::OverlayHost {
        let programs = private::programs(&private::paths(cx.store));
        (private::here(cx.store), programs)
    } else {
        (Vec::new(), Vec::new())
    };
    shown.extend(settings.binds.iter().cloned());
    shown.extend(turn_page.map(|page| Bind {
        source: page.to_owned(),
        target: TURN_PAGE.to_owned(),
        read_only: false,
    }));
    let place = SpecTarget {
        hidden: &hidden,
        shown: &shown,
        id: &container.id,
        run: cx.run.as_str(),
        root,
        files: text("files"),
        netns: settings.has_pair().then(|| text("netns")),
        arguments,
        available: &available_capabilities(),
        kernel: kernel.trim(),
        release,
    };
    let built = spec::build(base, settings, &place)?;
    let path = container.folder.join("config.json");
    files::write_working(&path, &built.spec.to_bytes())?;
    Ok(built)
}

/// A configured `oci`.
struct OciEnvironment {
    arm: ArmId,
    settings: Settings,
    /// Whether the settings name a root file system.
    is_root_chosen: bool,
    /// The user's or Docker's specification, once read, and its origin.
    base: Option<(Spec, String)>,
    /// The Docker release whose defaults Tare's specification repeats: that of the local engine, or the newest.
    release: Option<DockerRelease>,
    runtime: Option<Runtime>,
    /// Remarks for the reader on the specification used last.
    remarks: Vec<(&'static str, String)>,
    living: Living,
}

impl OciEnvironment {
    /// Reads the specification once: Docker's is gone when its container ends.
    fn load(&mut self) -> Result<()> {
        if self.base.is_some() {
            return Ok(());
        }
        self.base = match &self.settings.source {
            Source::Own => None,
            Source::Docker(container) => {
                let found = engine_spec::find(container)?;
                Some((found.spec, found.id))
            }
            Source::File(path) => {
                let shown = path.display().to_string();
                let spec = Spec::parse(&files::read_text(path)?).map_err(|error| {
                    EnvError::refused(
                        format!(
                            "`{}` is no runtime specification for Linux",
                            shown.escape_debug()
                        ),
                        escaped(error.to_string()),
                    )
                })?;
                Some((spec, shown))
            }
        };
        Ok(())
    }

    fn runtime(&mut self, cx: &Context<'_>) -> Result<Runtime> {
        if let Some(runtime) = &self.runtime {
            return Ok(runtime.clone());
        }
        let runtime = runtime::find(cx, agent(cx)?, &self.settings.runtime)?;
        self.runtime = Some(runtime.clone());
        Ok(runtime)
    }

    /// Waits until the runtime reports that the container runs.
    fn wait_for_start(
        &self,
        cx: &Context<'_>,
        running: &mut dyn Running,
        container: &Container,
    ) -> Result<()> {
        let begin = cx.clock.now_ns();
        let pid_file = container.pid_file();
        loop {
            if let Ok(Some(status)) = running.wait(Duration::ZERO) {
                wait_for_last_words(running, LAST_WORDS_LIMIT);
                let words = running.stderr_tail();
                return Err(refusal(&self.settings.runtime, Some(status), &words));
            }
            if files::read_text(&pid_file).is_ok_and(|text| !text.trim().is_empty()) {
                return Ok(());
            }
            if cx.cancel.is_requested() {
                return Err(EnvError::refused(
                    format!("starting `{}`", self.settings.runtime.escape_debug()),
                    "interrupted",
                ));
            }
            if cx.clock.now_ns().saturating_sub(begin) > whole_ns(START_LIMIT) {
                return Err(EnvError::Timeout {
                    phase: format!(
                        "starting a container with `{}`",
                        self.settings.runtime.escape_debug()
                    ),
                    limit: START_LIMIT,
                });
            }
            cx.clock.sleep(STEP);
        }
    }

    /// Checks that limits apply: they need a cgroup, and a runtime may have been configured to create none.
    fn check_limits(&self, container: &Container) -> Result<()> {
        if self.settings.limits.is_empty() || !container.cgroups().is_empty() {
            return Ok(());
        }
        Err(EnvError::refused(
            "limiting the container",
            format!(
                "`{}` made no cgroup `{}`, so the limits that were asked for do not hold",
                self.settings.runtime.escape_debug(),
                container.id
            ),
        ))
    }

    /// Starts the runtime and waits for the container; does not clean up on an error.
    fn launch(
        &mut self,
        cx: &Context<'_>,
        container: &Container,
        mode: StartMode,
    ) -> Result<OciInstance> {
        let runtime = self.runtime(cx)?;
        self.load()?;
        let agent = agent(cx)?;
        furnish(cx, agent, container, &self.settings)?;
        let base = self.base.as_ref().map(|(spec, _)| spec);
        let release = self.release.unwrap_or_default();
        let turn_page = turn_page::to_show(cx.scratch)
            .filter(|_| mode == StartMode::Resident && runtime.shares_the_kernel());
        let settings = &self.settings;
        let page = turn_page.as_deref();
        let built = write_spec(
            cx,
            container,
            settings,
            base,
            release,
            mode.arguments(),
            page,
        )?;
        self.remarks = built.remarks;
        let command = runtime::run_command(cx, agent, &runtime, settings, container);
        let mut running = cx.exec.spawn(&command)?;
        self.wait_for_start(cx, running.as_mut(), container)?;
        self.check_limits(container)?;
        let addresses = if self.settings.has_pair() {
            let text = files::read_text(&container.folder.join("network.json"))?;
            let pair: PairAddresses = serde_json::from_str(&text).map_err(|error| {
                EnvError::refused("reading the addresses of the veth pair", error.to_string())
            })?;
            Some(pair)
        } else {
            None
        };
        Ok(OciInstance {
            channel: ProcessChannel::new(running, cx.cancel)?,
            container: container.clone(),
            network: built.network,
            addresses,
            turn_page: turn_page.map(|_| TURN_PAGE.to_owned()),
            living: Arc::clone(&self.living),
            charged: OnceLock::new(),
        })
    }
}

impl Environment for OciEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    /// The programs are the host's, so if there are any and the settings name no root, the root is an overlay over
    /// the host's.
    fn provide(&mut self, wanted: &FileRequest) {
        if !wanted.is_empty() && !self.is_root_chosen {
            self.settings.rootfs = Rootfs::OverlayHost;
        }
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        self.load()?;
        self.release = self.release.or_else(|| docker::release_here(cx));
        self.runtime(cx)?;
        // Here, because a start may be timed.
        private::kept_by_root();
        Ok(files::create_folder(cx.scratch)?)
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        let name = container::instance_name(self.arm.as_str());
        let container = Container::new(cx, name);
        match self.launch(cx, &container, mode) {
            Ok(instance) => {
                locked(&self.living).insert(container);
                Ok(Box::new(instance))
            }
            // Dropping the process has killed it.
            Err(error) => Err(and_cleanup(error, clean(cx, &container))),
        }
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        let mut facts = self.settings.facts();
        let mut put =
            |name: &str, value: String| facts.insert(fact::name_for(fact::OCI, name), value);
        put("cgroups", charged::mounts().0.to_owned());
        put("docker", self.release.unwrap_or_default().name().to_owned());
        if let Some(runtime) = &self.runtime {
            put("version", runtime.version.clone());
            put("path", escaped(runtime.path.display().to_string()));
            if runtime.hides_unified {
                let what = "the version 2 tree of the hybrid cgroups, which crun refuses";
                put("hidden", what.to_owned());
            }
        }
        if let Some((_, origin)) = &self.base {
            put("spec.origin", escaped(origin));
        }
        for (what, remark) in &self.remarks {
            put(&format!("changed.{what}"), escaped(remark));
        }
        facts
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        let left = std::mem::take(&mut *locked(&self.living));
        let mut first = Ok(());
        for container in left {
            let cleaned = clean(cx, &container);
            first = first.and(cleaned);
        }
        first
    }
}
