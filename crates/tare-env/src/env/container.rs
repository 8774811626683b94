//! `container`: the built-in container, which the agent's launcher creates by system calls.
//!
//! No daemon, no image, no download: the same programs as on the host, behind exactly the mechanisms that the
//! settings name. The defaults are Docker's, so the difference between this and `docker` is the engine, and the
//! difference between this and `host` is the kernel's mechanisms.
//! The host's side writes a specification, starts the launcher and reads its report; everything privileged happens in
//! the launcher, which has one thread.
//! Its root consists of the host's files, so private ones are covered (`private`).
//! Limits: security modules (LSMs) are not set.

use crate::env::prelude::*;

mod bridge;
mod instance;
pub(crate) mod layers;
pub(super) mod settings;
mod specification;
mod sweep;

pub(super) use self::sweep::{sweep, sweep_run};

use std::sync::atomic::{AtomicU32, Ordering};

use tare_model::launch::{
    DeviceRules, LaunchError, LaunchReport, LaunchSpec, LaunchState, Missing, Network, Rootfs,
    SharedFolder,
};
use tare_model::whole_ns;

use self::instance::{ContainerInstance, lost_place};
use self::layers::Layers;
use self::settings::{SETTINGS, Settings};
use self::specification::{read_report, specification, write};
use super::channel::{LAST_WORDS_LIMIT, ProcessChannel, wait_for_last_words};
use super::siblings::{Gathering, Number, Numbers};
use super::{TURN_PAGE, docker, private};
use crate::cx::turn_page;

/// Time limit for creating a container; it usually takes milliseconds.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long a container may take to end after its agent was asked to. Unmounting an overlay writes back the whole
/// file system below it, which takes longer on a busy disk.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// How often the launcher's report is polled.
const STEP: Duration = Duration::from_micros(200);

/// Folder for the probes' files inside an overlay.
const WORKDIR: &str = "/tare-work";

/// Mount point inside an overlay of the folder that the instances share.
const SHARED: &str = "/tare-shared";

/// The `container` driver.
#[derive(Debug, Clone, Copy)]
pub struct Container;

impl Driver for Container {
    fn declared(&self) -> &Declared {
        &tare_core::driver::container::DECLARED
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn detect(&self, cx: &Context<'_>) -> Availability {
        if !cfg!(target_os = "linux") {
            let why = "it is made from namespaces and cgroups, which only Linux has";
            return EnvError::unavailable(why).into();
        }
        try_out(cx).map(|report| report_facts(&report)).into()
    }

    fn configure(&self, arm: ArmId, settings: &Params) -> Configured {
        Ok(Box::new(ContainerEnvironment {
            arm,
            settings: Settings::read(settings)?,
            layers: None,
            living: Arc::default(),
            report: None,
            numbers: Numbers::default(),
            gathering: Gathering::default(),
        }))
    }

    fn sweep(&self, cx: &Context<'_>, run: &str) -> Result<Vec<String>> {
        sweep_run(cx, run)
    }
}

/// A name that no other instance of this run has, in this process or in an earlier one that this process resumes.
pub(super) fn instance_name(arm: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{arm}-{}-{count}", std::process::id())
}

/// The launcher's error, classified by what the user can do about it.
fn refusal(error: &LaunchError) -> EnvError {
    let what = escaped(error.to_string());
    let fix = error.hint.as_deref().map(escaped);
    // EPERM and EACCES, the same on all Linux architectures.
    match error.errno {
        Some(1 | 13) => EnvError::Denied { what, fix },
        _ => EnvError::Absent { why: what, fix },
    }
}

/// Starts a container whose program exits at once, with the default settings.
fn try_out(cx: &Context<'_>) -> Result<LaunchReport> {
    let settings = Settings::read(&Params::new()).expect("no settings are no contradiction");
    let name = instance_name("detect");
    let folder = cx.scratch.join(&name);
    let spec = specification(cx, (&settings, None), &name, &folder, &["true"]);
    let outcome = write(cx, &spec, None, &folder).and_then(|command| {
        let finished = cx.exec.run(&command, &[], START_LIMIT)?;
        match read_report(&folder) {
            Some(LaunchReport {
                error: Some(error), ..
            }) => Err(refusal(&error)),
            Some(report) if finished.succeeded() => Ok(report),
            _ => Err(EnvError::refused(
                "starting a container",
                escaped(&finished.stderr),
            )),
        }
    });
    if outcome.is_err() {
        let cleaned = clean(cx, &name, &folder);
        return outcome.map_err(|first| and_cleanup(first, cleaned));
    }
    files::remove_folder(&folder)?;
    outcome
}

/// Removes leftovers of an instance whose launcher has ended.
fn clean(cx: &Context<'_>, name: &str, folder: &Path) -> Result<()> {
    let scratch = folder.display().to_string();
    let options = [
        "--run",
        cx.run.as_str(),
        "--name",
        name,
        "--scratch",
        &scratch,
    ];
    let swept = sweep(cx, &options);
    files::remove_folder(folder)?;
    swept.map(drop)
}

/// The facts in a launcher's report.
fn report_facts(report: &LaunchReport) -> Facts {
    let mut facts = Facts::new();
    let mut put =
        |name: &str, value: String| facts.insert(fact::name_for(fact::CONTAINER, name), value);
    let version = report.cgroup_version.as_deref().unwrap_or("none");
    put("cgroup_version", version.to_owned());
    put("user_namespace", report.has_user_namespace.to_string());
    if let Some(filter) = &report.seccomp {
        put("seccomp_instructions", filter.instructions.to_string());
        put("seccomp_skipped", filter.skipped.join(","));
    }
    let rules = match report.device_rules {
        Some(DeviceRules::List) => "a list on the cgroup",
        Some(DeviceRules::Program) => "a program on the cgroup",
        None if report.has_user_namespace => "none; the user namespace opens no devices",
        None => "none",
    };
    put("device_rules", rules.to_owned());
    if let Some(addresses) = report.addresses {
        put("address", addresses.arm.to_string());
    }
    for Missing { what, why } in &report.missing {
        put(&format!("missing.{}", escaped(what)), escaped(why));
    }
    facts
}

/// Name and folder of each instance that was started and not yet stopped.
type Living = Arc<Mutex<BTreeSet<(String, PathBuf)>>>;

/// A configured `container`.
struct ContainerEnvironment {
    arm: ArmId,
    settings: Settings,
    /// The root, if it is not the host's; known after `prepare`.
    layers: Option<Layers>,
    living: Living,
    /// The launcher's report on the last instance.
    report: Option<LaunchReport>,
    numbers: Numbers,
    gathering: Gathering,
}

/// Waits until the program inside has been executed.
fn wait_for_start(
    cx: &Context<'_>,
    running: &mut dyn Running,
    folder: &Path,
) -> Result<LaunchReport> {
    let begin = cx.clock.now_ns();
    loop {
        // Checked before the report is read: a launcher that has ended writes no more.
        let ended = running.wait(Duration::ZERO).ok().flatten();
        match read_report(folder) {
            Some(LaunchReport {
                error: Some(error), ..
            }) => return Err(refusal(&error)),
            Some(report) if report.state != LaunchState::Starting => return Ok(report),
            _ => {}
        }
        if let Some(status) = ended {
            wait_for_last_words(running, LAST_WORDS_LIMIT);
            return Err(EnvError::refused(
                format!("the launcher ended with status {status}"),
                escaped(running.stderr_tail()),
            ));
        }
        if cx.clock.now_ns().saturating_sub(begin) > whole_ns(START_LIMIT) {
            return Err(EnvError::Timeout {
                phase: "starting the container".into(),
                limit: START_LIMIT,
            });
        }
        cx.clock.sleep(STEP);
    }
}

impl ContainerEnvironment {
    /// The host folder that the instances share, if several are wanted.
    fn shared(&self, cx: &Context<'_>) -> Option<PathBuf> {
        let is_wanted = self.gathering.is_wanted();
        is_wanted.then(|| cx.scratch.join(format!("{}-shared", self.arm)))
    }

    /// The address where siblings reach an instance; no other instance has it.
    fn place(
        &mut self,
        cx: &Context<'_>,
        number: &Number,
        spec: &mut LaunchSpec,
    ) -> Result<IpAddr, Reason> {
        match self.settings.launch.network {
            Network::Host => Ok(number.loopback().into()),
            Network::None => Err(no_path("network = \"none\"")),
            Network::Veth => {
                let link = self.gathering.link(cx, number)?;
                spec.siblings = Some(link);
                Ok(link.address.into())
            }
        }
    }

    /// Fails without the veth pair that was requested by name: the arm would measure something else.
    fn check(&self, report: &LaunchReport) -> Result<()> {
        let is_lost = self.settings.launch.network == Network::Veth && report.addresses.is_none();
        if !(is_lost && self.settings.is_network_asked) {
            return Ok(());
        }
        let why = report
            .missing
            .iter()
            .find(|missing| missing.what == Missing::VETH)
            .map_or_else(
                || "it has no addresses".to_owned(),
                |missing| escaped(&missing.why),
            );
        Err(EnvError::absent(
            format!("there is no veth pair: {why}"),
            "run as root, or use network = \"none\" or \"host\"",
        ))
    }
}

impl Environment for ContainerEnvironment {
    fn arm(&self) -> &ArmId {
        &self.arm
    }

    fn prepare(&mut self, cx: &Context<'_>) -> Result<()> {
        files::create_folder(cx.scratch)?;
        if self.settings.private_paths {
            // Searched now, because the start may be timed.
            private::kept_by_root();
        }
        if self.settings.docker.is_none() {
            self.settings.docker = docker::release_here(cx);
        }
        if let Some(file) = &self.settings.like {
            self.layers = Some(Layers::read(file)?);
        }
        if let Some(shared) = self.shared(cx) {
            files::create_folder(&shared)?;
        }
        Ok(())
    }

    fn gather(&mut self, nodes: u32) {
        self.gathering.want(nodes);
    }

    fn start(&mut self, cx: &Context<'_>, mode: StartMode) -> Result<Box<dyn Instance>> {
        let name = instance_name(self.arm.as_str());
        let folder = cx.scratch.join(&name);
        let of = (&self.settings, self.layers.as_ref());
        let mut spec = specification(cx, of, &name, &folder, mode.arguments());
        spec.bridge = self.settings.bridge.as_ref().map(bridge::Bridge::port);
        let number = self.numbers.take();
        // An instance that exists for its first instruction only meets no siblings.
        let place = match mode {
            StartMode::Resident => self.place(cx, &number, &mut spec),
            StartMode::Once => Err(no_path("it is there for one instruction")),
        };
        let inside = |source: &str, path: &str| match self.settings.launch.rootfs {
            Rootfs::Host => source.to_owned(),
            Rootfs::Overlay => path.to_owned(),
        };
        let shared = self.shared(cx).filter(|_| mode == StartMode::Resident);
        let shared = shared.map(|folder| {
            let source = folder.display().to_string();
            let target = inside(&source, SHARED);
            spec.shared = Some(SharedFolder {
                source,
                target: target.clone(),
            });
            target
        });
        let turn_page = turn_page::to_show(cx.scratch);
        let turn_page = turn_page.filter(|_| mode == StartMode::Resident);
        let turn_page = turn_page.map(|source| {
            let target = inside(&source, TURN_PAGE);
            if spec.namespaces.mount {
                spec.binds.push(Bind {
                    source,
                    target: target.clone(),
                    read_only: false,
                });
            }
            target
        });
        let command = write(cx, &spec, self.layers.as_ref(), &folder)?;
        let mut running = cx.exec.spawn(&command)?;
        let started = wait_for_start(cx, running.as_mut(), &folder)
            .and_then(|report| self.check(&report).map(|()| report));
        let report = match started {
            Ok(report) => report,
            Err(error) => {
                running.kill();
                return Err(and_cleanup(error, clean(cx, &name, &folder)));
            }
        };
        let channel = ProcessChannel::new(running, cx.cancel)
            .map_err(|error| and_cleanup(error.into(), clean(cx, &name, &folder)))?;
        self.report = Some(report.clone());
        let living = self.living.clone();
        locked(&living).insert((name.clone(), folder.clone()));
        Ok(Box::new(ContainerInstance {
            channel,
            name,
            folder,
            workdir: spec.workdir,
            network: self.settings.launch.network,
            place: lost_place(&report, spec.siblings.is_some()).map_or(place, Err),
            shared,
            turn_page,
            _number: number,
            report,
            living,
        }))
    }

    fn describe(&self, _cx: &Context<'_>) -> Facts {
        let mut facts = self.settings.facts();
        if let Some(report) = &self.report {
            facts.extend(report_facts(report));
        }
        facts
    }

    fn remove(&mut self, cx: &Context<'_>) -> Result<()> {
        let left = std::mem::take(&mut *locked(&self.living));
        let mut first = Ok(());
        for (name, folder) in left {
            let cleaned = clean(cx, &name, &folder);
            first = first.and(cleaned);
        }
        self.gathering.end();
        if let Some(shared) = self.shared(cx) {
            first = first.and(files::remove_folder(&shared).map_err(EnvError::from));
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_instances_never_share_a_name() {
        assert_ne!(instance_name("a"), instance_name("a"));
    }

    #[test]
    fn missing_rights_differ_from_missing_mechanism() {
        let error = |errno| LaunchError {
            step: "mount".into(),
            problem: "\u{1b}no".into(),
            errno,
            hint: Some("be root".into()),
        };
        assert!(matches!(refusal(&error(Some(1))), EnvError::Denied { .. }));
        let EnvError::Absent { why, fix } = refusal(&error(None)) else {
            panic!("not absent");
        };
        assert_eq!(
            (why.as_str(), fix.as_deref()),
            ("mount: \\u{1b}no", Some("be root"))
        );
    }
}
