//! What a program leaves running when it ends: found, counted and ended.
//!
//! On Linux the worker becomes the reaper of its descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so that a
//! process that put itself into the background, with a session of its own, becomes the worker's child and is
//! found in `/proc/self/task/*/children` (proc_pid_task_tid_children(5)). Nothing here is inside a timed region.
//! A worker whose agent is killed is told so by the kernel, and ends the same way what it has started before it ends
//! itself: that costs the start of a program nothing, as asking the kernel to end each program would.
//! Only a worker may do it: any other process, such as one that tests several things at once, has children of
//! its own that are none of the program's.
//! What it cannot see: anything where the kernel has no such list, and on other systems; there the agent's own
//! end of the worker's process group has to do.

#[cfg(target_os = "linux")]
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// How long ending them may take; what begins new processes faster than that is left to the agent.
#[cfg(target_os = "linux")]
const END_LIMIT: Duration = Duration::from_secs(2);

/// Whether every child of this process is the program or descends from it.
static IS_WORKER: AtomicBool = AtomicBool::new(false);

/// Says that this process runs one probe and nothing else: what its probe starts stays below it as long as it
/// lives.
pub(crate) fn this_is_a_worker() {
    IS_WORKER.store(true, Ordering::Relaxed);
    adopt();
}

/// Makes this process the parent of every descendant that loses its own.
#[cfg(target_os = "linux")]
fn adopt() {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes one number and touches no memory of ours. Kernels before 3.4 refuse,
    // and then nothing is found.
    let _ = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

#[cfg(not(target_os = "linux"))]
fn adopt() {}

/// Ends every child of this process, and theirs; how many there were.
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
            // SAFETY: `child` is a child of this process that nobody but this function reaps, so the number
            // cannot have passed to another process.
            let is_alive = unsafe { libc::kill(child, libc::SIGKILL) } == 0;
            // A program with another user's rights cannot be ended, and is not waited for beyond the limit.
            let reaped = reaped_by(child, begin + END_LIMIT);
            count += u32::from(is_alive && reaped);
        }
    }
}

/// Whether a child of this process ended before `deadline`; then it is reaped.
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

/// Has SIGTERM end this process with all that it has started; the signal.
#[cfg(target_os = "linux")]
pub(crate) fn end_all_at_a_signal() -> libc::c_int {
    // Written down before: in the handler nothing can be put together. Children are those of the first thread, also
    // where the kernel has another one handle the signal.
    let own = std::process::id();
    let path = std::ffi::CString::new(format!("/proc/self/task/{own}/children"));
    LIST.get_or_init(|| path.unwrap_or_default());
    // SAFETY: `sigaction` is plain data for which all zeroes is a valid value: no flags, an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = end_all_and_this as extern "C" fn(libc::c_int) as usize;
    // SAFETY: `action` is live and its handler calls only what is allowed in one; the old action is not asked for. It
    // cannot fail for this signal, and then the signal still ends this process.
    unsafe { libc::sigaction(libc::SIGTERM, &raw const action, std::ptr::null_mut()) };
    libc::SIGTERM
}

/// Where the kernel lists the children of this process.
#[cfg(target_os = "linux")]
static LIST: OnceLock<std::ffi::CString> = OnceLock::new();

/// More rounds than what puts itself into the background again and again is given.
#[cfg(target_os = "linux")]
const ROUNDS: u32 = 64;

/// Ends every child, then those that become children by that, and at last the group with this process. It interrupts
/// whatever the process is doing, so it makes system calls and nothing else: no memory is asked for, no lock taken.
#[cfg(target_os = "linux")]
extern "C" fn end_all_and_this(_signal: libc::c_int) {
    for _ in 0..ROUNDS {
        let mut list = [0u8; 4096];
        // SAFETY: the path ends with NUL, the buffer is alive and as long as is said, and the descriptor is closed
        // again; all three calls are allowed in a handler.
        let length = unsafe {
            let path = LIST.get().map_or(c"".as_ptr(), |path| path.as_ptr());
            let file = libc::open(path, libc::O_RDONLY);
            let length = libc::read(file, list.as_mut_ptr().cast(), list.len());
            libc::close(file);
            usize::try_from(length).unwrap_or(0)
        };
        let mut n_ended = 0;
        for number in whole_numbers(&list[..length]) {
            // SAFETY: numbers and a null pointer, which is allowed; a child that is not reaped keeps its number.
            unsafe {
                libc::kill(number, libc::SIGKILL);
                // One that another user's rights protect is not waited for beyond the rounds.
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
    // SAFETY: numbers only; the group is this process's own.
    unsafe {
        if libc::getpgrp() == libc::getpid() {
            libc::kill(0, libc::SIGKILL);
        }
        libc::_exit(1);
    }
}

/// The numbers of a list that has a space behind each. One without was cut where the buffer ends, and what is left of
/// it is another process's.
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

/// Whether this process runs one probe and nothing else.
#[cfg(target_os = "linux")]
pub(super) fn is_worker() -> bool {
    IS_WORKER.load(Ordering::Relaxed)
}

/// The children of all threads of this process; none where the kernel has no such list.
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
    fn a_number_that_was_cut_is_nobodys() {
        let numbers = |list: &str| whole_numbers(list.as_bytes()).collect::<Vec<_>>();
        assert_eq!(numbers("12 345 6789 "), [12, 345, 6789]);
        // The buffer ended within 6789.
        assert_eq!(numbers("12 345 67"), [12, 345]);
        assert_eq!(numbers("12"), [0; 0]);
        assert_eq!(numbers(""), [0; 0]);
    }
}
