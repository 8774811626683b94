//! What a program leaves running when it ends: found, counted and ended.
//!
//! On Linux the worker becomes the reaper of its descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so that a
//! process that put itself into the background, with a session of its own, becomes the worker's child and is
//! found in `/proc/self/task/*/children` (proc_pid_task_tid_children(5)). Nothing here is inside a timed region.
//! Only a worker may do it: any other process, such as one that tests several things at once, has children of
//! its own that are none of the program's.
//! What it cannot see: anything where the kernel has no such list, and on other systems; there the agent's own
//! end of the worker's process group has to do.

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
            // SAFETY: a null pointer for the status is allowed.
            let reaped = unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            count += u32::from(is_alive && reaped == child);
        }
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn end_all() -> u32 {
    0
}

/// The children of all threads of this process; none where the kernel has no such list.
#[cfg(target_os = "linux")]
pub(crate) fn children() -> Vec<libc::pid_t> {
    let threads = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    threads
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn children() -> Vec<libc::pid_t> {
    Vec::new()
}
