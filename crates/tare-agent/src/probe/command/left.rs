//! Finds, counts and kills the processes that a program leaves running.
//!
//! On Linux the worker becomes the reaper of its descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so that a daemonised
//! process, with a separate session, becomes the worker's child and is found in `/proc/self/task/*/children`
//! (proc_pid_task_tid_children(5)). Nothing here is inside a timed region.
//! The kernel signals a worker whose agent is killed, and the worker kills its children the same way before it exits.
//! Unlike a parent-death signal for each program, that does not slow down the program's start.
//! Only a worker may do this: any other process, such as one that runs several tests at once, has children that do
//! not belong to the program.
//! Limits: does nothing where the kernel has no such list, and on other systems; there killing the worker's process
//! group, which the agent does, has to suffice.

#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// How long killing them may take; processes that fork faster than that are left to the agent.
#[cfg(target_os = "linux")]
const END_LIMIT: Duration = Duration::from_secs(2);

/// Whether every child of this process is the program or descends from it.
static IS_WORKER: AtomicBool = AtomicBool::new(false);

/// Marks this process as one that only runs one probe: the probe's processes stay below it as long as it lives.
pub(crate) fn this_is_a_worker() {
    IS_WORKER.store(true, Ordering::Relaxed);
    adopt();
}

/// Makes this process the parent of every orphaned descendant.
#[cfg(target_os = "linux")]
fn adopt() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one number and touches none of this process's memory. Kernels before 3.4
    // refuse, and then nothing is found.
    let _ = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// Kills every child of this process, and theirs; returns how many there were.
#[cfg(target_os = "linux")]
pub(super) fn end_all() -> u32 {
    if !IS_WORKER.load(Ordering::Relaxed) {
        return 0;
    }
    let begin = Instant::now();
    let mut count = 0;
    loop {
        let children = children();
        if children.is_empty() || begin.elapsed() > END_LIMIT {
            return count;
        }
        for child in children {
            // SAFETY: `child` is a child of this process that only this function reaps, so its pid cannot have been
            // reused.
            let is_alive = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
            // A program that runs as another user cannot be killed, and is not waited for beyond the limit.
            let reaped = reaped_by(child, begin + END_LIMIT);
            count += u32::from(is_alive && reaped);
        }
    }
}

/// Reaps a child of this process if it exits before `deadline`; returns whether it did.
#[cfg(target_os = "linux")]
fn reaped_by(child: libc::pid_t, deadline: Instant) -> bool {
    loop {
        // SAFETY: a null pointer for the status is allowed.
        match unsafe { libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG) } {
            0 if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            reaped => return reaped == child,
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_all() -> u32 {
    0
}

/// Installs a SIGTERM handler that kills all children and exits; returns the signal.
#[cfg(target_os = "linux")]
pub(crate) fn end_all_at_a_signal() -> libc::c_int {
    // Prepared here because the handler must not allocate. Children are those of the first thread, even if the kernel
    // lets another one handle the signal.
    let own = std::process::id();
    let path = std::ffi::CString::new(format!("/proc/self/task/{own}/children"));
    LIST.get_or_init(|| path.unwrap_or_default());
    // SAFETY: `sigaction` is plain data for which all zeroes is a valid value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = end_all_and_this as extern "C" fn(libc::c_int) as usize;
    // SAFETY: `action` is live and its handler calls only async-signal-safe functions; the old action is not asked
    // for. The call cannot fail for this signal, and even then the signal still ends this process.
    unsafe { libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut()) };
    libc::SIGTERM
}

/// The path under which the kernel lists this process's children.
#[cfg(target_os = "linux")]
static LIST: OnceLock<std::ffi::CString> = OnceLock::new();

/// Limit of the rounds, for processes that daemonise again and again.
#[cfg(target_os = "linux")]
const ROUNDS: u32 = 64;

/// Kills every child, then those that become children by that, and finally the process group with this process. It
/// interrupts whatever the process is doing, so it only makes syscalls: no allocation, no locks.
#[cfg(target_os = "linux")]
extern "C" fn end_all_and_this(_signal: libc::c_int) {
    for _ in 0..ROUNDS {
        let mut list = [0u8; 4096];
        // SAFETY: the path ends with NUL, the buffer is live and has the given length, and the descriptor is closed
        // again; all three calls are async-signal-safe.
        let length = unsafe {
            let path = LIST.get().map_or(c"".as_ptr(), |path| path.as_ptr());
            let file = libc::open(path, libc::O_RDONLY);
            let length = libc::read(file, list.as_mut_ptr().cast(), list.len());
            libc::close(file);
            usize::try_from(length).unwrap_or(0)
        };
        let mut n_ended = 0;
        for number in whole_numbers(&list[..length]) {
            // SAFETY: numbers and a null pointer, which is allowed; a child that is not reaped keeps its pid.
            unsafe {
                libc::kill(number, libc::SIGKILL);
                // A process of another user cannot be killed and is not waited for beyond the rounds.
                for _ in 0..ROUNDS {
                    if libc::waitpid(number, std::ptr::null_mut(), libc::WNOHANG) != 0 {
                        break;
                    }
                    libc::poll(std::ptr::null_mut(), 0, 1);
                }
            }
            n_ended += 1;
        }
        if n_ended == 0 {
            break;
        }
    }
    // SAFETY: numbers only; the group is this process's.
    unsafe {
        if libc::getpgrp() == libc::getpid() {
            libc::kill(0, libc::SIGKILL);
        }
        libc::_exit(1);
    }
}

/// Parses numbers that are each followed by a space. One without a space was cut off by the end of the buffer, and
/// the remaining digits would be another process's pid.
#[cfg(target_os = "linux")]
fn whole_numbers(list: &[u8]) -> impl Iterator<Item = libc::pid_t> {
    list.split_inclusive(|byte| *byte == b' ')
        .filter_map(|number| {
            let digits = number.strip_suffix(b" ")?.iter();
            let digits = digits.map(|digit| libc::pid_t::from(digit.wrapping_sub(b'0')));
            Some(digits.fold(0, |number: libc::pid_t, digit| {
                number.wrapping_mul(10).wrapping_add(digit)
            }))
        })
        .filter(|number| *number > 0)
}

/// Returns whether this process only runs one probe.
#[cfg(target_os = "linux")]
pub(super) fn is_worker() -> bool {
    IS_WORKER.load(Ordering::Relaxed)
}

/// Returns the children of all threads of this process; empty if the kernel has no such list.
#[cfg(target_os = "linux")]
pub(crate) fn children() -> Vec<libc::pid_t> {
    crate::proc::children_of("self")
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn children() -> Vec<libc::pid_t> {
    Vec::new()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::whole_numbers;

    #[test]
    fn truncated_pid_in_list_is_ignored() {
        let numbers = |list: &str| whole_numbers(list.as_bytes()).collect::<Vec<_>>();
        assert_eq!(numbers("12 345 6789 "), [12, 345, 6789]);
        // The buffer ended within 6789.
        assert_eq!(numbers("12 345 67"), [12, 345]);
        assert_eq!(numbers("12"), [0; 0]);
        assert_eq!(numbers(""), [0; 0]);
    }
}
