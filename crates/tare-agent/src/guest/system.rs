//! Hands the machine over to the system on its disk: the disk becomes the root, and its init the first process.
//!
//! The agent stays next to init, as a process that init did not start. It reports once the system is up, serves the
//! channel, and powers the machine off when the channel closes.
//! Limits: only systemd can be asked whether it is up; any other system counts as up as soon as its init runs.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tare_model::guest::GuestReport;

use super::{DISK_KIND, VARIABLES, machine, start_agent, tell};
use crate::launch::sys;

/// Where the disk is mounted before it becomes the root.
const ROOT: &str = "/system";

/// The first process of every system.
const INIT: &str = "/sbin/init";

/// Interval between two questions while systemd does not answer yet.
const STEP: Duration = Duration::from_millis(200);

/// Makes the file system on `disk` the root, with the kernel's file systems in it.
pub(super) fn enter(disk: &Path) -> Result<(), String> {
    let root = Path::new(ROOT);
    let entered = || -> io::Result<()> {
        fs::create_dir_all(root)?;
        sys::mount(disk.as_os_str(), root, DISK_KIND, 0, "")?;
        for path in ["/dev", "/proc", "/sys"] {
            let target = root.join(&path[1..]);
            fs::create_dir_all(&target)?;
            sys::mount(OsStr::new(path), &target, "", libc::MS_MOVE, "")?;
        }
        machine::change_root(root)
    };
    entered().map_err(|error| format!("cannot enter the system on {}: {error}", disk.display()))
}

/// Becomes init, with a child next to it that serves the channel. Returns only on a failure.
pub(super) fn hand_over(
    mut report: GuestReport,
    port: File,
    serve: &[String],
) -> Result<(), String> {
    let process = sys::clone_process(0).map_err(|error| format!("cannot fork: {error}"))?;
    if process != 0 {
        drop(port);
        let error = Command::new(INIT).env_clear().exec();
        return Err(format!("cannot run {INIT}: {error}"));
    }
    report.system = Some(wait_until_up());
    tell(&port, &mut report)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg("serve").args(serve);
    let agent = start_agent(port, command);
    let ended = agent.and_then(|mut agent| agent.wait());
    ended
        .map(drop)
        .map_err(|error| format!("cannot run the agent: {error}"))
}

/// Waits until the system is up; returns systemd's word for its state, or the name of another init.
fn wait_until_up() -> String {
    let init = fs::canonicalize(INIT).unwrap_or_else(|_| INIT.into());
    let name = init.file_name().unwrap_or_default().to_string_lossy();
    if name != "systemd" {
        return name.into_owned();
    }
    loop {
        let mut command = Command::new("systemctl");
        command
            .args(["is-system-running", "--wait"])
            .envs(VARIABLES);
        let Ok(answer) = command.output() else {
            return name.into_owned();
        };
        let state = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
        // What systemd says of itself once it has started everything (`systemctl(1)`, `is-system-running`).
        if matches!(state.as_str(), "running" | "degraded" | "maintenance") {
            return state;
        }
        std::thread::sleep(STEP);
    }
}
