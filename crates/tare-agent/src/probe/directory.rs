//! `directory`: asks where it is, makes, removes and lists directories.
//!
//! Inside the timed regions: `fs.getcwd.time`, one `getcwd` system call; `fs.mkdir.time` and `fs.rmdir.time`, making
//! and removing 64 directories in one directory; `fs.readdir.time`, opening a directory of 64 entries, reading
//! all of them and closing it. Names are relative to an open directory. Outside: making that directory, the names,
//! one round as warm-up, removing everything.
//! Known bias: `getcwd` grows with the depth of the working directory, which is the arm's choice; nothing is
//! synchronised.
//! Correspondence: "Get Current Directory" and "Create Directory" of a published comparison of containers (2019), where a
//! runtime adds its own work to the call.
//! Source: lmbench's `lat_fs` and `lat_syscall`.

use tare_model::Params;

use super::{Cut, Probe};
use crate::meter::{Meter, ProbeError};

/// The registered probe.
pub static PROBE: Probe = Probe {
    name: "directory",
    revision: 1,
    about: "getcwd, making and removing directories, 64 at a time, and listing one of 64 entries",
    cut: Cut::KERNEL,
    run,
};

#[cfg(not(target_os = "linux"))]
fn run(_meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    Err(super::linux_only("mkdirat and getdents64"))
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    linux::run(meter)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    use tare_model::{Failure, Unit};

    use crate::folder::Folder;
    use crate::listing::entries;
    use crate::meter::{Meter, ProbeError};

    /// Directories to a batch.
    const DIRECTORIES: usize = 64;

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let folder = Folder::new(meter.workdir(), "tare-directory")?;
        let mut path = vec![0u8; libc::PATH_MAX as usize];
        meter.loops("fs.getcwd.time", 0.2, |times| {
            for _ in 0..times {
                // SAFETY: the buffer has the length that is given.
                let length =
                    unsafe { libc::syscall(libc::SYS_getcwd, path.as_mut_ptr(), path.len()) };
                if length <= 0 {
                    return Err(ProbeError::last("getcwd"));
                }
            }
            Ok(())
        })?;
        let names: Vec<CString> = (0..DIRECTORIES)
            .map(|number| {
                CString::new(format!("directory-{number:02}")).expect("there is no zero byte in it")
            })
            .collect();
        let at = folder.handle().as_raw_fd();
        let make = || -> Result<f64, ProbeError> {
            let start = Instant::now();
            for name in &names {
                // SAFETY: the directory is open and the name ends with a zero byte.
                if unsafe { libc::mkdirat(at, name.as_ptr(), 0o700) } != 0 {
                    return Err(ProbeError::last("mkdirat"));
                }
            }
            Ok(start.elapsed().as_nanos() as f64 / DIRECTORIES as f64)
        };
        let remove = || -> Result<f64, ProbeError> {
            let start = Instant::now();
            for name in &names {
                // SAFETY: the directory is open and the name ends with a zero byte.
                if unsafe { libc::unlinkat(at, name.as_ptr(), libc::AT_REMOVEDIR) } != 0 {
                    return Err(ProbeError::last("unlinkat"));
                }
            }
            Ok(start.elapsed().as_nanos() as f64 / DIRECTORIES as f64)
        };
        make()?;
        remove()?;
        let rounds = meter.self_timed(0.6, || Ok([make()?, remove()?]))?;
        for (part, metric) in ["fs.mkdir.time", "fs.rmdir.time"].into_iter().enumerate() {
            let values = rounds.iter().map(|round| round[part]).collect();
            meter.record(metric, Unit::Nanosecond, values, DIRECTORIES as u64);
        }
        make()?;
        meter.loops("fs.readdir.time", 0.2, |times| {
            for _ in 0..times {
                // Itself and its parent are entries too.
                let found = entries(at, c".")?;
                if found != DIRECTORIES + 2 {
                    return Err(ProbeError::Failed(Failure::Void(format!(
                        "{found} entries instead of {}",
                        DIRECTORIES + 2
                    ))));
                }
            }
            Ok(())
        })
    }
}
