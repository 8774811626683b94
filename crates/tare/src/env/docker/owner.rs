//! Who made an object: so that what a crashed run left can be told from what a living run needs.
//!
//! The label holds machine, boot, process id and the process's start time. An owner is gone when the boot is
//! over or no process has that id and start time. Objects of another machine (several may share an engine)
//! are never taken for left-overs, nor are those whose label cannot be read.
//! What cannot be seen from here: outside of Linux only whether the process id is in use; one that was given
//! to another process since makes the object stay.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::cx::{CommandLine, Context, files};

/// The label's name.
pub(super) const LABEL: &str = "tare.owner";

/// A label's value: `machine/boot/pid/start`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    machine: String,
    boot: String,
    pid: u32,
    start: String,
}

fn first_line(path: &str) -> String {
    let text = files::read_text(Path::new(path)).unwrap_or_default();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

/// Field 22 of `/proc/PID/stat` (proc_pid_stat(5)), counted after the command's name, which may hold spaces.
fn start_time(pid: u32) -> Option<String> {
    let stat = files::read_text(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name
        .split_ascii_whitespace()
        .nth(19)
        .map(str::to_owned)
}

/// A short digest: the machine's id itself is not to be given away.
fn machine() -> String {
    let id = if cfg!(target_os = "linux") {
        first_line("/etc/machine-id") + &first_line("/proc/sys/kernel/hostname")
    } else {
        crate::cx::vars::text("COMPUTERNAME")
            .or_else(|| crate::cx::vars::text("HOSTNAME"))
            .unwrap_or_default()
    };
    super::hex(&Sha256::digest(id.as_bytes())[..4])
}

/// The label of this process.
pub(super) fn label() -> String {
    let pid = std::process::id();
    let boot = first_line("/proc/sys/kernel/random/boot_id");
    let start = start_time(pid).unwrap_or_default();
    format!("{}/{boot}/{pid}/{start}", machine())
}

fn parse(label: &str) -> Option<Owner> {
    let mut parts = label.split('/');
    let owner = Owner {
        machine: parts.next()?.to_owned(),
        boot: parts.next()?.to_owned(),
        pid: parts.next()?.parse().ok()?,
        start: parts.next()?.to_owned(),
    };
    parts.next().is_none().then_some(owner)
}

/// Whether the process that the label names is certainly gone.
pub(super) fn is_gone(cx: &Context<'_>, label: Option<&String>) -> bool {
    let Some(owner) = label.and_then(|label| parse(label)) else {
        return false;
    };
    if owner.machine != machine() {
        return false;
    }
    if cfg!(target_os = "linux") {
        return owner.boot != first_line("/proc/sys/kernel/random/boot_id")
            || start_time(owner.pid).as_deref() != Some(&owner.start);
    }
    let pid = owner.pid.to_string();
    let command = if cfg!(windows) {
        let filter = format!("PID eq {pid}");
        CommandLine::new("tasklist", ["/NH", "/FO", "CSV", "/FI", &filter])
    } else {
        CommandLine::new("ps", ["-o", "pid=", "-p", &pid])
    };
    cx.exec
        .run(&command, b"", Duration::from_secs(5))
        .is_ok_and(|finished| !String::from_utf8_lossy(&finished.stdout).contains(&pid))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_label_names_this_process_and_only_it() {
        let owner = parse(&label()).unwrap();
        assert_eq!(owner.pid, std::process::id());
        assert_eq!(start_time(owner.pid), Some(owner.start));
        assert_eq!(owner.boot, first_line("/proc/sys/kernel/random/boot_id"));
    }

    #[test]
    fn labels_that_are_not_ours_are_not_read() {
        for text in ["", "a/b", "a/b/c/d", "a/b/1/2/3", "a/b/-1/2"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
