//! Finds, counts and kills the processes that a program leaves running on Windows: the rest of the worker's job.
//!
//! The agent puts the worker into a separate job, to which everything that it starts belongs too; when the agent
//! ends, or the worker was reaped, the system kills the rest. A console that the system started for the program is
//! not counted.
//! Limits: misses processes that another process outside the job started for the program.

use std::os::windows::io::RawHandle;
use std::sync::OnceLock;
use std::time::Duration;

use crate::windows::{Job, times_ns};

/// How long killing them may take.
const END_LIMIT: Duration = Duration::from_secs(2);

/// The name of the worker's job; not set if this process is not a worker.
static JOB: OnceLock<String> = OnceLock::new();

/// Returns the worker's job, if there is one.
fn job() -> Option<Job> {
    Job::of_this_process(JOB.get()?)
}

/// Marks this process as one that only runs one probe, in the job of this name.
pub(crate) fn this_is_a_worker(job: &str) {
    JOB.get_or_init(|| job.to_owned());
}

/// Kills everything that this process has started; returns how many processes there were.
pub(super) fn end_all() -> u32 {
    job().map_or(0, |job| job.end_others(END_LIMIT))
}

/// Returns the CPU time of all processes that this worker started, in user and in kernel mode, nanoseconds.
pub(super) fn used_ns() -> Option<[f64; 2]> {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcess() -> RawHandle;
    }
    let all = job()?.used_ns()?;
    let own = times_ns(GetCurrentProcess()).ok()?;
    Some([all[0] - own[0], all[1] - own[1]])
}
