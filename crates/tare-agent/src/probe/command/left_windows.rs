//! What a program leaves running when it ends, on Windows: what else is in the worker's job.
//!
//! Its agent puts the worker into a job of its own, and everything that it starts belongs to that too; when the agent
//! ends, or the worker was reaped, the system ends the rest. A console that the system started for the program is not
//! counted.
//! What it cannot see: what was started in the program's name by somebody outside of the job.

use std::os::windows::io::RawHandle;
use std::sync::OnceLock;
use std::time::Duration;

use crate::windows::{Job, times_ns};

/// How long ending them may take.
const END_LIMIT: Duration = Duration::from_secs(2);

/// What the worker's job is called; unknown where this process is no worker.
static JOB: OnceLock<String> = OnceLock::new();

/// The worker's job, if it has one of its own.
fn job() -> Option<Job> {
    Job::of_this_process(JOB.get()?)
}

/// Says that this process runs one probe and nothing else, in the job of this name.
pub(crate) fn this_is_a_worker(job: &str) {
    JOB.get_or_init(|| job.to_owned());
}

/// Ends everything that this process has started; how many processes there were.
pub(super) fn end_all() -> u32 {
    job().map_or(0, |job| job.end_others(END_LIMIT))
}

/// How long all that this worker started was on processors, outside of the kernel and inside, nanoseconds.
pub(super) fn used_ns() -> Option<[f64; 2]> {
    #[link(name = "kernel32")]
    unsafe extern "system" {
        safe fn GetCurrentProcess() -> RawHandle;
    }
    let all = job()?.used_ns()?;
    let own = times_ns(GetCurrentProcess()).ok()?;
    Some([all[0] - own[0], all[1] - own[1]])
}
