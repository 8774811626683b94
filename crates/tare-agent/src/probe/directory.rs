//! `directory`: reads the working directory, and creates, removes and lists directories.
//!
//! Inside the timed regions: `fs.getcwd.time`, one `getcwd` system call; `fs.mkdir.time` and `fs.rmdir.time`,
//! creating and removing 16 directories in one directory; `fs.readdir.time`, opening a directory of 64 entries,
//! reading all of them and closing it. Names are relative to an open directory.
//! Outside: choosing that directory, a quiet one (`quiet.rs`), the names, one round in each directory as warm-up,
//! removing everything.
//! On Windows: `GetCurrentDirectory`, which reads the process's memory without a system call; `CreateDirectory` and
//! `RemoveDirectory` with names relative to the current directory, which the process holds open; `FindFirstFile` to
//! its end.
//! Known bias: `getcwd` gets slower with the depth of the working directory, which the arm chooses; nothing is
//! synchronised.
//! Correspondence: "Get Current Directory" and "Create Directory" of a published comparison of containers (2019),
//! where a runtime adds its own work to the call.
//! Source: lmbench's `lat_fs` and `lat_syscall`.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "directory": "getcwd, making and removing directories, 16 at a time, and listing one of 64 entries";
    revision 2, cut KERNEL
}

super::by_system!("mkdirat and getdents64");

/// Directories per batch.
#[cfg(any(target_os = "linux", windows))]
const BATCH: usize = 16;
/// Directories in the listed directory.
#[cfg(any(target_os = "linux", windows))]
const DIRECTORIES: usize = 64;

/// Checks the number of entries of a listing, which includes `.` and `..`.
#[cfg(any(target_os = "linux", windows))]
fn all_there(found: usize) -> Result<(), ProbeError> {
    if found == DIRECTORIES + 2 {
        return Ok(());
    }
    Err(ProbeError::Failed(tare_model::Failure::Void(format!(
        "{found} entries instead of {}",
        DIRECTORIES + 2
    ))))
}

#[cfg(any(target_os = "linux", windows))]
fn per_directory(start: std::time::Instant, directories: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / directories as f64
}

/// Records the times for creating and removing, interleaved; each per directory.
#[cfg(any(target_os = "linux", windows))]
fn by_turns(
    meter: &mut Meter,
    mut once: impl FnMut() -> Result<[f64; 2], ProbeError>,
) -> Result<(), ProbeError> {
    once()?;
    let rounds = meter.self_timed(0.6, once)?;
    for (part, metric) in ["fs.mkdir.time", "fs.rmdir.time"].into_iter().enumerate() {
        let values = rounds.iter().map(|round| round[part]).collect();
        let unit = tare_model::Unit::Nanosecond;
        meter.record(metric, unit, values, BATCH as u64);
    }
    Ok(())
}

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;
    use std::os::windows::io::RawHandle;
    use std::time::Instant;

    use super::{BATCH, DIRECTORIES, all_there, by_turns, per_directory};
    use crate::folder::{Entered, Folder};
    use crate::meter::{Meter, ProbeError};
    use crate::windows::wide;

    /// `WIN32_FIND_DATAW`.
    #[repr(C)]
    struct FindData {
        about: [u32; 11],
        name: [u16; 260],
        short_name: [u16; 14],
    }

    /// `INVALID_HANDLE_VALUE`.
    const NONE: RawHandle = std::ptr::without_provenance_mut(usize::MAX);

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetCurrentDirectoryW(length: u32, path: *mut u16) -> u32;
        fn CreateDirectoryW(name: *const u16, attributes: *const c_void) -> i32;
        fn RemoveDirectoryW(name: *const u16) -> i32;
        fn FindFirstFileW(pattern: *const u16, found: *mut FindData) -> RawHandle;
        fn FindNextFileW(listing: RawHandle, found: *mut FindData) -> i32;
        fn FindClose(listing: RawHandle) -> i32;
    }

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        /// The longest path that the system supports.
        const LONGEST: u32 = 32_768;
        let mut path = vec![0u16; LONGEST as usize];
        meter.loops("fs.getcwd.time", 0.2, |times| {
            for _ in 0..times {
                // SAFETY: the buffer has the given length.
                if unsafe { GetCurrentDirectoryW(LONGEST, path.as_mut_ptr()) } == 0 {
                    return Err(ProbeError::last("GetCurrentDirectory"));
                }
            }
            Ok(())
        })?;
        let folder = Folder::new(meter.workdir(), "tare-directory")?;
        let _inside = Entered::new(&folder)?;
        let names: Vec<Vec<u16>> = (0..DIRECTORIES)
            .map(|number| wide(&format!("directory-{number:02}")))
            .collect();
        let make = |names: &[Vec<u16>]| -> Result<f64, ProbeError> {
            let start = Instant::now();
            for name in names {
                // SAFETY: the name ends with a zero; a null pointer selects the parent's attributes.
                if unsafe { CreateDirectoryW(name.as_ptr(), std::ptr::null()) } == 0 {
                    return Err(ProbeError::last("CreateDirectory"));
                }
            }
            Ok(per_directory(start, names.len()))
        };
        let remove = |names: &[Vec<u16>]| -> Result<f64, ProbeError> {
            let start = Instant::now();
            for name in names {
                // SAFETY: the name ends with a zero.
                if unsafe { RemoveDirectoryW(name.as_ptr()) } == 0 {
                    return Err(ProbeError::last("RemoveDirectory"));
                }
            }
            Ok(per_directory(start, names.len()))
        };
        let few = &names[..BATCH];
        by_turns(meter, || Ok([make(few)?, remove(few)?]))?;
        make(&names)?;
        let everything = wide("*");
        meter.loops("fs.readdir.time", 0.2, |times| {
            for _ in 0..times {
                all_there(entries(&everything)?)?;
            }
            Ok(())
        })
    }

    /// Counts the entries of the current directory.
    fn entries(pattern: &[u16]) -> Result<usize, ProbeError> {
        let mut found = FindData {
            about: [0; 11],
            name: [0; 260],
            short_name: [0; 14],
        };
        // SAFETY: the pattern ends with a zero, and `found` has the documented layout and is live.
        let listing = unsafe { FindFirstFileW(pattern.as_ptr(), &raw mut found) };
        if listing == NONE {
            return Err(ProbeError::last("FindFirstFile"));
        }
        let mut count = 1;
        // SAFETY: the listing stays open until it is closed here, once; `found` is live.
        unsafe {
            while FindNextFileW(listing, &raw mut found) != 0 {
                count += 1;
            }
            FindClose(listing);
        }
        Ok(count)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::os::fd::AsRawFd;
    use std::time::Instant;

    use super::{BATCH, DIRECTORIES, all_there, by_turns, per_directory};
    use crate::folder::Folder;
    use crate::listing::entries;
    use crate::meter::{Meter, ProbeError};
    use crate::quiet::Quiet;

    /// Directories created to compare locations.
    const TRIED: usize = 4;

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let names: Vec<CString> = (0..DIRECTORIES)
            .map(|number| {
                CString::new(format!("directory-{number:02}")).expect("there is no zero byte in it")
            })
            .collect();
        let mut sample = |folder: &Folder| Ok(round(folder, &names[..TRIED])?[0]);
        let mut quiet = Quiet::new(meter.workdir(), "tare-directory", &mut sample)?;
        let mut path = vec![0u8; libc::PATH_MAX as usize];
        meter.loops("fs.getcwd.time", 0.2, |times| {
            for _ in 0..times {
                // SAFETY: the buffer has the given length.
                let length =
                    unsafe { libc::syscall(libc::SYS_getcwd, path.as_mut_ptr(), path.len()) };
                if length <= 0 {
                    return Err(ProbeError::last("getcwd"));
                }
            }
            Ok(())
        })?;
        by_turns(meter, || {
            if quiet.moved(&mut sample)? {
                round(quiet.folder(), &names[..BATCH])?;
            }
            round(quiet.folder(), &names[..BATCH])
        })?;
        make(quiet.folder(), &names)?;
        let at = quiet.folder().handle().as_raw_fd();
        meter.loops("fs.readdir.time", 0.2, |times| {
            for _ in 0..times {
                all_there(entries(at, c".")?)?;
            }
            Ok(())
        })
    }

    /// Creates these directories in the folder and removes them; returns the nanoseconds per directory of both steps.
    fn round(folder: &Folder, names: &[CString]) -> Result<[f64; 2], ProbeError> {
        Ok([make(folder, names)?, remove(folder, names)?])
    }

    /// Creates every directory and returns the nanoseconds per directory.
    fn make(folder: &Folder, names: &[CString]) -> Result<f64, ProbeError> {
        let at = folder.handle().as_raw_fd();
        let start = Instant::now();
        for name in names {
            // SAFETY: the directory is open and the name ends with a zero byte.
            if unsafe { libc::mkdirat(at, name.as_ptr(), 0o700) } != 0 {
                return Err(ProbeError::last("mkdirat"));
            }
        }
        Ok(per_directory(start, names.len()))
    }

    /// Removes every directory and returns the nanoseconds per directory.
    fn remove(folder: &Folder, names: &[CString]) -> Result<f64, ProbeError> {
        let at = folder.handle().as_raw_fd();
        let start = Instant::now();
        for name in names {
            // SAFETY: the directory is open and the name ends with a zero byte.
            if unsafe { libc::unlinkat(at, name.as_ptr(), libc::AT_REMOVEDIR) } != 0 {
                return Err(ProbeError::last("unlinkat"));
            }
        }
        Ok(per_directory(start, names.len()))
    }
}
