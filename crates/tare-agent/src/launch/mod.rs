//! The built-in container: a launcher that makes it from syscalls.
//!
//! No runtime library, no daemon, no image. `tare-agent launch SPEC.json` reads a [`LaunchSpec`], makes cgroups,
//! namespaces, root, mounts and network accordingly, and starts the program inside with the launcher's standard
//! streams. It stays outside as the supervisor, writes a [`LaunchReport`] and cleans up at the end; `kill -9` of it
//! kills everything inside, because the first process has a parent-death signal.
//! The launcher has only one thread: it forks by hand, and after a fork of a threaded program locks may stay held
//! forever.
//! Limits: ignores security modules (AppArmor, SELinux); a study that needs them uses an engine.

mod capabilities;
mod cgroup;
mod control;
mod device_rules;
mod devices;
mod hidden;
mod inner;
mod inside;
mod limits;
mod mounts;
mod netlink;
pub(crate) mod network;
mod openat;
pub(crate) mod own_group;
pub mod private_mounts;
mod rootfs;
mod seccomp;
mod spec;
mod speculation;
mod supervise;
pub mod sweep;
pub(crate) mod sys;

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tare_model::launch::{
    DeviceRules, LaunchError, LaunchReport, LaunchSpec, LaunchState, Missing, REFUSED_STATUS,
    RUN_VARIABLE, Stdio,
};

use cgroup::Groups;
use inside::{Inside, Message};
use seccomp::Filter;
use spec::Plan;
use supervise::{Relay, supervise};

/// Converts a system error into a `LaunchError` for the named step.
fn refused(step: &str) -> impl Fn(io::Error) -> LaunchError + use<> {
    let step = step.to_owned();
    move |error| LaunchError {
        step: step.clone(),
        problem: error.to_string(),
        errno: error.raw_os_error(),
        hint: None,
    }
}

/// The launch report, filled in step by step.
struct Reporter {
    path: PathBuf,
    report: LaunchReport,
}

impl Reporter {
    fn new(path: &str) -> Self {
        Self {
            path: PathBuf::from(path),
            report: LaunchReport {
                state: LaunchState::Starting,
                error: None,
                missing: Vec::new(),
                launcher: std::process::id(),
                init: None,
                agent: String::new(),
                has_user_namespace: false,
                cgroup_version: None,
                cgroups: Vec::new(),
                links: Vec::new(),
                addresses: None,
                seccomp: None,
                device_rules: None,
                exit: None,
            },
        }
    }

    /// Writes a temporary file and renames it, so that no reader sees half a report.
    fn write(&mut self, state: LaunchState) -> Result<(), LaunchError> {
        self.report.state = state;
        let neighbour = self.path.with_extension("part");
        serde_json::to_vec(&self.report)
            .map_err(io::Error::other)
            .and_then(|bytes| fs::write(&neighbour, bytes))
            .and_then(|()| fs::rename(&neighbour, &self.path))
            .map_err(refused(&format!(
                "write the report `{}`",
                self.path.display()
            )))
    }
}

/// The launch's resources outside the container.
#[derive(Debug, Default)]
struct Resources {
    groups: Groups,
    link: Option<String>,
    /// The hub's pid and the instance's port there.
    port: Option<(u32, String)>,
    process: Option<libc::pid_t>,
    scratch: PathBuf,
}

impl Resources {
    /// Removes everything; tries all parts and returns the first failure.
    fn undo(&mut self) -> io::Result<()> {
        let mut first = Ok(());
        let mut keep_first = |result: io::Result<()>| {
            if first.is_ok() {
                first = result;
            }
        };
        if let Some(process) = self.process.take() {
            // It may have exited already; reaping reports that.
            let _ = sys::kill(process, libc::SIGKILL);
            keep_first(sys::reap(process, true).map(drop));
        }
        if let Some(link) = self.link.take() {
            keep_first(network::remove(&link).map(drop));
        }
        if let Some((hub, port)) = self.port.take() {
            keep_first(network::leave_hub(hub, &port));
        }
        keep_first(self.groups.remove());
        rootfs::open_work_layers(&self.scratch);
        first
    }
}

/// Returns why a user namespace may be refused, from the distributions' switches.
fn namespace_hint(plan: &Plan, errno: Option<i32>) -> Option<String> {
    let is =
        |path: &str, value: &str| fs::read_to_string(path).is_ok_and(|text| text.trim() == value);
    if plan.has_user_namespace {
        let switches = [
            (
                "kernel/unprivileged_userns_clone",
                "0",
                "kernel.unprivileged_userns_clone=1",
            ),
            (
                "kernel/apparmor_restrict_unprivileged_userns",
                "1",
                "kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (
                "user/max_user_namespaces",
                "0",
                "user.max_user_namespaces=15000",
            ),
        ];
        for (file, forbidding, command) in switches {
            if is(&format!("/proc/sys/{file}"), forbidding) {
                return Some(format!("run as root, or `sudo sysctl -w {command}`"));
            }
        }
    }
    match errno {
        Some(libc::EPERM) => Some("needs CAP_SYS_ADMIN: run as root".into()),
        Some(libc::ENOSPC) => {
            Some("a limit under /proc/sys/user/max_*_namespaces is reached".into())
        }
        Some(libc::EINVAL) => Some("this kernel was built without one of the namespaces".into()),
        _ => None,
    }
}

/// Maps the ids of a new user namespace: for root the identity, for other users their id to 0.
fn map_ids(process: libc::pid_t, is_rootless: bool) -> Result<(), LaunchError> {
    let write = |file: &str, text: &str| {
        let path = format!("/proc/{process}/{file}");
        fs::OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(refused(&format!("write `{file}` of the user namespace")))
    };
    if is_rootless {
        write("uid_map", &format!("0 {} 1", sys::effective_user()))?;
        // Without this the kernel lets only root map a group.
        write("setgroups", "deny")?;
        write("gid_map", &format!("0 {} 1", sys::effective_group()))
    } else {
        write("uid_map", "0 0 4294967295")?;
        write("gid_map", "0 0 4294967295")
    }
}

/// Sets the device rules. Without them CAP_MKNOD is dropped, unless the specification drops nothing at all. An
/// ordinary user needs no rules: the kernel lets no device be opened through mounts of an unprivileged user
/// namespace.
fn keep_from_devices(
    plan: &Plan,
    groups: &Groups,
    kept: &mut Vec<String>,
    missing: &mut Vec<Missing>,
) -> Option<DeviceRules> {
    const MKNOD: &str = "CAP_MKNOD";
    if plan.is_rootless {
        return None;
    }
    match device_rules::set(&groups.groups) {
        Ok(rules) => return Some(rules),
        Err(why) => missing.push(Missing {
            what: "device rules".into(),
            why,
        }),
    }
    if plan.spec.capabilities.is_some() && kept.iter().any(|name| name == MKNOD) {
        kept.retain(|name| name != MKNOD);
        missing.push(Missing {
            what: MKNOD.into(),
            why: "without device rules it would reach the host's disks".into(),
        });
    }
    None
}

/// Makes and starts everything; `made` holds what exists even on an error.
fn start(plan: &Plan, made: &mut Resources, reporter: &mut Reporter) -> Result<Relay, LaunchError> {
    let spec = &plan.spec;
    let report = &mut reporter.report;
    report.has_user_namespace = plan.has_user_namespace;
    report.agent = inside::agent_path(plan);
    made.scratch = PathBuf::from(&spec.scratch);

    if spec.cgroup {
        made.groups = Groups::make(&plan.cgroup_name(), &spec.limits, &mut report.missing)?;
        report.cgroup_version = made.groups.version.map(str::to_owned);
        report.cgroups = made
            .groups
            .groups
            .iter()
            .map(|group| group.folder.display().to_string())
            .collect();
    }
    let mut kept = capabilities::kept(
        spec.capabilities.as_deref(),
        plan.has_user_namespace,
        &mut report.missing,
    )?;
    if spec.device_rules {
        report.device_rules = keep_from_devices(plan, &made.groups, &mut kept, &mut report.missing);
    }
    let filter = Filter::new(spec.seccomp, spec.docker, spec.seccomp_spec_allow, &kept)?;
    report.seccomp = filter.as_ref().map(Filter::report);
    let layers = rootfs::prepare(spec)?;
    report.addresses = network::addresses(plan)?;
    let (relay, streams) = match spec.stdio {
        Stdio::Inherit => (Relay::default(), None),
        Stdio::Relay => {
            let (relay, streams) = Relay::new().map_err(refused("make the pipes"))?;
            (relay, Some(streams))
        }
    };
    let (go_read, go_write) = sys::pipe().map_err(refused("make a pipe"))?;
    let (status_read, status_write) = sys::pipe().map_err(refused("make a pipe"))?;

    let process = sys::clone_process(plan.namespace_flags()).map_err(|error| {
        let mut refusal = refused("make the namespaces")(error);
        refusal.hint = namespace_hint(plan, refusal.errno);
        refusal
    })?;
    if process == 0 {
        // Only the launcher may hold these ends, else neither side sees the other close its end.
        drop((go_write, status_read, relay));
        let inside = Inside {
            plan,
            layers: layers.as_ref(),
            groups: &made.groups.groups,
            addresses: report.addresses.as_ref(),
            filter: filter.as_ref(),
            kept: spec.capabilities.as_ref().map(|_| kept.as_slice()),
            streams,
        };
        inside::run(&inside, go_read, status_write);
    }
    made.process = Some(process);
    report.init = Some(process.cast_unsigned());
    drop((go_read, status_write, streams));

    if plan.has_user_namespace {
        map_ids(process, plan.is_rootless)?;
    }
    made.groups.admit(process)?;
    if let Some(addresses) = report.addresses {
        let outer = network::outer_name(&plan.label());
        network::make_pair(&outer, &spec.run, process, &addresses, spec.bridge.as_ref())?;
        report.links.push(outer.clone());
        made.link = Some(outer);
    }
    if let Some(link) = &spec.siblings {
        let port = network::join_hub(process, link)?;
        made.port = Some((link.hub, port));
    }
    // Before anything runs inside, so that a crash from here on leaves a record of what to remove.
    reporter.write(LaunchState::Starting)?;
    File::from(go_write)
        .write_all(b"g")
        .map_err(refused("start the first process"))?;
    hear(File::from(status_read), &mut reporter.report.missing, plan)?;
    Ok(relay)
}

/// Reads the first process's messages until it has executed its program.
fn hear(status: File, missing: &mut Vec<Missing>, plan: &Plan) -> Result<(), LaunchError> {
    for line in BufReader::new(status).lines() {
        let line = line.map_err(refused("listen to the first process"))?;
        match serde_json::from_slice(line.as_bytes()) {
            Ok(Message::Missing(item)) => missing.push(item),
            Ok(Message::Failed(mut error)) => {
                if error.hint.is_none() && matches!(error.errno, Some(libc::EPERM | libc::EACCES)) {
                    error.hint = namespace_hint(plan, error.errno);
                }
                return Err(error);
            }
            Err(error) => {
                return Err(refused("listen to the first process")(error.into()));
            }
        }
    }
    Ok(())
}

/// Reduces the environment to what an engine would set: its size is copied by every `execve` and shifts the stack
/// (Mytkowicz et al. 2009), and a locale changes what programs do. `PATH` stays, because the files inside are the
/// host's.
fn clean_environment(hostname: &str) {
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    for name in names.iter().filter(|name| *name != "PATH") {
        // SAFETY: this process has one thread, so nothing else reads the environment at the same time.
        unsafe { std::env::remove_var(name) };
    }
    for (name, value) in [("HOSTNAME", hostname), ("HOME", "/root")] {
        // SAFETY: this process has one thread, so nothing else reads the environment at the same time.
        unsafe { std::env::set_var(name, value) };
    }
}

fn launch(spec: LaunchSpec, reporter: &mut Reporter) -> Result<i32, LaunchError> {
    let signals = [libc::SIGTERM, libc::SIGHUP, libc::SIGUSR1, libc::SIGCHLD];
    let signals = sys::signals_as_descriptor(&signals).map_err(refused("block the signals"))?;
    sys::ignore_signal(libc::SIGINT);
    sys::ignore_signal(libc::SIGPIPE);
    let expected = spec.parent.and_then(|pid| libc::pid_t::try_from(pid).ok());
    let parent = sys::end_with_parent(libc::SIGUSR1, expected)
        .map_err(refused("bind this life to the parent's"))?;
    if spec.clean_environment {
        clean_environment(&spec.hostname);
    }
    // SAFETY: this process has one thread, so nothing else reads the environment at the same time.
    unsafe { std::env::set_var(RUN_VARIABLE, spec.run.as_str()) };

    reporter.write(LaunchState::Starting)?;
    let plan = spec::plan(spec, &mut reporter.report.missing)?;
    let mut made = Resources::default();
    let ended = start(&plan, &mut made, reporter).and_then(|relay| {
        reporter.write(LaunchState::Running)?;
        let process = made.process.take().unwrap_or(0);
        let end = supervise(process, parent, &signals, relay);
        // After a supervision error the process is killed below.
        if end.is_err() {
            made.process = Some(process);
        }
        end.map_err(refused("supervise the container"))
    });
    let undone = made.undo();
    let status = match (ended, undone) {
        (Ok(status), Ok(())) => status,
        (Ok(_), Err(error)) => return Err(refused("remove what was made")(error)),
        (Err(error), Ok(())) => return Err(error),
        (Err(mut error), Err(then)) => {
            error.problem = format!("{}; and cleaning up failed too: {then}", error.problem);
            return Err(error);
        }
    };
    reporter.report.exit = Some(status);
    reporter.write(LaunchState::Ended)?;
    Ok(status)
}

#[allow(
    clippy::print_stderr,
    reason = "standard error is where a launcher's caller looks"
)]
fn complain(error: &LaunchError) {
    eprintln!("tare-agent: {error}");
    if let Some(hint) = &error.hint {
        eprintln!("hint: {hint}");
    }
}

/// Launches the specification in a file and returns the exit status.
fn launch_file(path: &str) -> i32 {
    let spec = match spec::read(Path::new(path)) {
        Ok(spec) => spec,
        Err(error) => {
            complain(&error);
            return REFUSED_STATUS;
        }
    };
    let mut reporter = Reporter::new(&spec.report);
    launch(spec, &mut reporter).unwrap_or_else(|error| {
        complain(&error);
        reporter.report.error = Some(error);
        if let Err(unwritten) = reporter.write(LaunchState::Refused) {
            complain(&unwritten);
        }
        REFUSED_STATUS
    })
}

/// Runs `launch SPEC.json`; `arguments` are those after `launch`. Returns the program's exit status, or
/// [`REFUSED_STATUS`] if it was not started.
pub fn main(arguments: &[String]) -> ExitCode {
    let status = if let [path] = arguments {
        launch_file(path)
    } else {
        complain(&LaunchError {
            step: "read the arguments".into(),
            problem: "one file is expected: launch SPEC.json".into(),
            errno: None,
            hint: None,
        });
        2
    };
    ExitCode::from(u8::try_from(status).unwrap_or(u8::MAX))
}
