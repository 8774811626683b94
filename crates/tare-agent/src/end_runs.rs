//! `end-runs RUN…`: kills the processes that a dead run left behind.
//!
//! A process belongs to a run if its environment has `TARE_RUN=<run>`; nothing else is touched. A pidfd is opened
//! before the environment is read, so that the signal cannot hit a process that reused the pid; kernels before 5.3
//! have no pidfd, so the pid is used there. Prints one line for each process.
//! Limits: misses processes of other users (the kernel hides their environment) and those that removed the variable
//! from their environment.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use tare_model::launch::RUN_VARIABLE;

use crate::proc;

/// Kills the processes of these runs and returns a line for each.
///
/// # Errors
/// `/proc` cannot be listed.
pub fn end_runs(runs: &[String]) -> io::Result<Vec<String>> {
    let own = std::process::id();
    let mut killed = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        if pid == own {
            continue;
        }
        let handle = match open(pid) {
            Ok(handle) => Some(handle),
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => None,
            // It has just exited.
            Err(_) => continue,
        };
        let carried = proc::run_of(pid).filter(|run| !run.is_empty() && runs.contains(run));
        let Some(run) = carried else {
            continue;
        };
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if kill(pid, handle.as_ref()).is_ok() {
            let command = command.trim();
            killed.push(format!(
                "killed process {pid} of {RUN_VARIABLE}={run}: {}",
                command.escape_debug()
            ));
        }
    }
    Ok(killed)
}

fn open(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the system call takes two numbers and touches none of this process's memory.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "descriptors are of 32 bits"
    )]
    let fd = fd as libc::c_int;
    // SAFETY: the kernel has just made this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn kill(pid: u32, handle: Option<&OwnedFd>) -> io::Result<()> {
    let result = match handle {
        // SAFETY: the descriptor is open, and a null information pointer is allowed.
        Some(handle) => unsafe {
            libc::syscall(
                libc::SYS_pidfd_send_signal,
                handle.as_raw_fd(),
                libc::SIGKILL,
                std::ptr::null::<libc::siginfo_t>(),
                0,
            )
        },
        // SAFETY: numbers only; the number is that of a process, never 0 or negative.
        None => unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) }.into(),
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn end_runs_kills_only_processes_of_named_runs() {
        let start = |run: &str| {
            Command::new("sleep")
                .arg("60")
                .env("TARE_RUN", run)
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        let run = format!("end-runs-test-{}", std::process::id());
        let (mut doomed, mut spared) = (start(&run), start(&format!("{run}-other")));
        let mut killed = Vec::new();
        // Between fork and exec a child still has its parent's environment.
        for _ in 0..200 {
            killed.extend(end_runs(std::slice::from_ref(&run)).unwrap());
            if !killed.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(killed.len(), 1, "{killed:?}");
        assert!(killed[0].contains(&doomed.id().to_string()));
        assert!(!doomed.wait().unwrap().success());
        assert!(spared.try_wait().unwrap().is_none());
        spared.kill().unwrap();
        spared.wait().unwrap();
    }
}
