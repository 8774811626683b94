//! Starts the workers' processes, receives signals, and reaps the workers.
//!
//! Signals arrive through a pipe that a handler writes to (the self-pipe trick, D. J. Bernstein): unlike `signalfd`
//! and `pidfd` it works in every kernel and under every seccomp filter. Handlers are reset by `exec`, so workers have
//! none. Children are inspected before they are reaped by pid, because until then the pid of a child, and the number
//! of the group it leads, cannot be reused.
//! Processes that left their group are adopted when their worker has ended, and killed then.
//! Limits: such processes survive if the kernel keeps no list of children.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use tare_model::frames::Frames;
use tare_model::outcome::Exit;

use super::PAD;
use crate::probe::command::left;

/// How long to wait until the killed processes of a worker's group are gone.
const STRAYS_LIMIT: Duration = Duration::from_secs(1);

/// A started worker: waiting for its request, or running.
pub(super) struct Worker {
    pub(super) pid: libc::pid_t,
    /// Closed when the last request has been written, so that a probe that reads gets EOF.
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: Option<File>,
    pub(super) stderr: Option<File>,
    pub(super) frames: Frames,
    pub(super) tail: Vec<u8>,
    /// Its exit, once it has been reaped.
    pub(super) exit: Option<Exit>,
}

/// Starts a worker from the running binary, even if its file has changed since. It waits on the processor `near`, if
/// allowed, and has a `pad`.
pub(super) fn start_worker(near: Option<u32>, pad: &str) -> io::Result<Worker> {
    let program = if cfg!(target_os = "linux") && std::fs::exists("/proc/self/exe").unwrap_or(false)
    {
        "/proc/self/exe".into()
    } else {
        std::env::current_exe()?
    };
    #[allow(
        clippy::zombie_processes,
        reason = "children are reaped by number, in `reap`"
    )]
    let mut child = Command::new(program)
        .arg0("tare-agent")
        .arg("worker")
        .arg(std::process::id().to_string())
        .args(near.map(|cpu| cpu.to_string()))
        .env(PAD, pad)
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stdout = child.stdout.take().map(OwnedFd::from).map(File::from);
    let stderr = child.stderr.take().map(OwnedFd::from).map(File::from);
    for stream in [&stdout, &stderr].into_iter().flatten() {
        do_not_block(stream.as_raw_fd())?;
    }
    Ok(Worker {
        pid: child.id().cast_signed(),
        stdin: child.stdin.take(),
        stdout,
        stderr,
        frames: Frames::default(),
        tail: Vec::new(),
        exit: None,
    })
}

/// Makes reads from this descriptor non-blocking.
pub(super) fn do_not_block(fd: RawFd) -> io::Result<()> {
    // SAFETY: `fd` is open, owned by the caller, and both commands take and return plain numbers.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // SAFETY: the descriptor is open and the command takes plain numbers.
    if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The write end of the signal pipe.
static SIGNAL_PIPE: AtomicI32 = AtomicI32::new(-1);

/// Writes the signal's number to the pipe.
extern "C" fn on_signal(signal: libc::c_int) {
    let byte = u8::try_from(signal).unwrap_or(0);
    // SAFETY: `write` may be called in a handler; the byte is live, and the pipe, once opened, stays open. A full
    // pipe loses nothing: the server is going to check anyway.
    unsafe {
        libc::write(
            SIGNAL_PIPE.load(Ordering::Relaxed),
            (&raw const byte).cast(),
            1,
        )
    };
}

/// Opens the signal pipe and installs the handlers. SIGINT is caught and ignored: at a terminal it is meant for the
/// host, which then notifies its agents.
pub(super) fn take_signals() -> io::Result<File> {
    let mut ends = [-1; 2];
    // SAFETY: the pointer is to an array of two numbers, as `pipe` needs.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    for end in ends {
        do_not_block(end)?;
        // SAFETY: `end` was just opened, and the command takes a plain number.
        if unsafe { libc::fcntl(end, libc::F_SETFD, libc::FD_CLOEXEC) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    SIGNAL_PIPE.store(ends[1], Ordering::Relaxed);
    for signal in [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT] {
        // SAFETY: `sigaction` is plain data for which all zeroes is a valid value: no flags, an empty mask.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        // SAFETY: `action` is live and its handler calls only what is allowed in one; the old action is not
        // requested.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: the read end was just opened and is owned nowhere else.
    Ok(unsafe { File::from_raw_fd(ends[0]) })
}

/// Makes this process the subreaper of the workers' orphans, so that it can reap them.
pub(super) fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // SAFETY: the option takes one number. If it fails, orphans go to the init process, as usual.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
    };
}

/// Returns a child that has ended and is not yet reaped, if any.
pub(super) fn ended_child() -> Option<libc::pid_t> {
    // SAFETY: `siginfo_t` is plain data for which all zeroes is a valid value.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `information` is live and exclusively borrowed.
    let result = unsafe { libc::waitid(libc::P_ALL, 0, &raw mut information, options) };
    // SAFETY: after a successful `waitid` the field is set, to 0 when no child has ended.
    let pid = unsafe { information.si_pid() };
    (result == 0 && pid > 0).then_some(pid)
}

/// Waits for this child and returns its exit.
pub(super) fn reap(pid: libc::pid_t) -> Option<Exit> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is live and exclusively borrowed.
        let reaped = unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if reaped == pid {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return None;
        }
    }
    Some(if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    })
}

/// Kills the process group that this worker leads.
pub(super) fn kill_group(leader: libc::pid_t) {
    // SAFETY: numbers only. The leader is not reaped yet, so the group's number cannot have been reused.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Waits until the killed group is empty, reaping its processes that became our children.
pub(super) fn wait_for_strays(leader: libc::pid_t) {
    let begin = Instant::now();
    // SAFETY: numbers only; signal 0 checks whether the group has a member.
    while unsafe { libc::kill(-leader, 0) } == 0 && begin.elapsed() < STRAYS_LIMIT {
        // SAFETY: a null status pointer is allowed; a negative number means that group.
        let reaped = unsafe { libc::waitpid(-leader, std::ptr::null_mut(), libc::WNOHANG) };
        if reaped <= 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}

/// Kills every child except the `known`, and every process that becomes a child by that: leftovers of an ended
/// worker, since each worker keeps its descendants while it lives.
pub(super) fn end_adopted(known: &[libc::pid_t]) {
    let begin = Instant::now();
    loop {
        let mut adopted = left::children();
        adopted.retain(|child| !known.contains(child));
        if adopted.is_empty() || begin.elapsed() > STRAYS_LIMIT {
            return;
        }
        let mut n_reaped = 0;
        for child in adopted {
            // SAFETY: numbers only; the child is not reaped yet, so its pid cannot have been reused.
            unsafe { libc::kill(child, libc::SIGKILL) };
            // SAFETY: a null status pointer is allowed.
            let reaped = unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) };
            n_reaped += u32::from(reaped == child);
        }
        if n_reaped == 0 {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
