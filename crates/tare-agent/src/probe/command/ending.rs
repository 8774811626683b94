//! Waits for a program's end and collects its resource usage.
//!
//! Limits: misses the usage of children that the program did not reap.

use std::collections::BTreeMap;
use std::io;
use std::process::Child;
use std::time::Instant;

use tare_model::counter;
use tare_model::outcome::Exit;

use crate::meter::ProbeError;
#[cfg(target_os = "linux")]
use crate::proc;

/// When the program ended, and how long its first thread ran and was runnable without running.
pub(super) type Ending = Option<(Instant, Vec<(String, f64)>)>;

/// Waits until the program has exited without reaping it, because its `/proc/<pid>/schedstat` exists only until then.
#[cfg(target_os = "linux")]
pub(super) fn wait_for_end(child: &Child) -> Result<Ending, ProbeError> {
    loop {
        // SAFETY: `siginfo_t` is plain data for which all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is live and exclusively borrowed, and the process is a child of this one.
        let waited = unsafe {
            libc::waitid(
                libc::P_PID,
                child.id(),
                &raw mut info,
                libc::WEXITED | libc::WNOWAIT,
            )
        };
        if waited == 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(ProbeError::system("waitid", &error));
        }
    }
    let end = Instant::now();
    let times = proc::scheduled(&child.id().to_string());
    let times = times.map(|(name, number)| (name.to_owned(), number));
    Ok(Some((end, times.collect())))
}

/// Does nothing: here `wait` does the waiting.
#[cfg(not(target_os = "linux"))]
pub(super) fn wait_for_end(_child: &Child) -> Result<Ending, ProbeError> {
    Ok(None)
}

/// Waits for the program's end; returns its exit status and resource usage.
pub(super) fn wait(child: &Child) -> Result<(Exit, BTreeMap<String, f64>), ProbeError> {
    let mut status = 0;
    // SAFETY: `rusage` is plain data for which all zeroes is a valid value.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: the process is our child and not yet reaped; both pointers are to live variables.
        let ended =
            unsafe { libc::wait4(child.id().cast_signed(), &raw mut status, 0, &raw mut used) };
        if ended >= 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(ProbeError::system("wait4", &error));
        }
    }
    let exit = if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    };
    let nanoseconds = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
    let usage = [
        (counter::USER, nanoseconds(used.ru_utime)),
        (counter::SYS, nanoseconds(used.ru_stime)),
        // Linux counts in KiB.
        (counter::MAX_RSS, used.ru_maxrss as f64 * 1_024.0),
        (counter::MINFLT, used.ru_minflt as f64),
        (counter::MAJFLT, used.ru_majflt as f64),
        (counter::INBLOCK, used.ru_inblock as f64),
        (counter::OUBLOCK, used.ru_oublock as f64),
        (counter::NVCSW, used.ru_nvcsw as f64),
        (counter::NIVCSW, used.ru_nivcsw as f64),
    ];
    let usage = usage
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    // This thread's affinity is also the program's, unless that changed it; the quota is the cgroup's.
    let cpus = std::thread::available_parallelism()
        .ok()
        .map(|count| (counter::PERMITTED_CPUS.to_owned(), count.get() as f64));
    Ok((exit, usage.chain(cpus).collect()))
}
