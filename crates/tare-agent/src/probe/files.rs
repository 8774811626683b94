//! `files`: creates, writes and removes small files.
//!
//! Inside the timed regions, for 16 files at a time: `fs.create.time`, opening each with `O_CREAT|O_EXCL`;
//! `fs.write.time`, writing 4 KiB to each and closing it (on a shared or network file system the data is transferred
//! at the close); `fs.unlink.time`, removing each by name. Names are relative to an open directory.
//! Outside: choosing that directory, a quiet one (`quiet.rs`), the names, one round in each directory as warm-up,
//! removing it. On Windows: `CreateFile` with `CREATE_NEW`, `WriteFile` and `CloseHandle`, and `DeleteFile`, in the
//! current directory.
//! Known bias: every arm measures a quiet location. Nothing is synchronised, so this measures the file system's
//! bookkeeping in memory and not the device; a full journal or writeback by other processes shows up as rare slow
//! batches.
//! Source: the small-file phases of LFS (Rosenblum and Ousterhout, 1992) and lmbench's `lat_fs`.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "files": "creating files, writing 4 KiB to each, and removing them, 16 at a time";
    revision 3, cut KERNEL
}

super::by_system!("openat and unlinkat");

/// Files per batch.
#[cfg(any(target_os = "linux", windows))]
const FILES: usize = 16;
/// The content of each file.
#[cfg(any(target_os = "linux", windows))]
const CONTENT: [u8; CONTENT_BYTES as usize] = [b'.'; CONTENT_BYTES as usize];
#[cfg(any(target_os = "linux", windows))]
const CONTENT_BYTES: u32 = 4096;

#[cfg(any(target_os = "linux", windows))]
fn per_file(start: std::time::Instant, files: usize) -> f64 {
    start.elapsed().as_nanos() as f64 / files as f64
}

/// Measures rounds of the three steps, after one warm-up round.
#[cfg(any(target_os = "linux", windows))]
fn rounds(
    meter: &mut Meter,
    mut once: impl FnMut() -> Result<[f64; 3], ProbeError>,
) -> Result<(), ProbeError> {
    once()?;
    let rounds = meter.self_timed(1.0, once)?;
    for (part, metric) in ["fs.create.time", "fs.write.time", "fs.unlink.time"]
        .into_iter()
        .enumerate()
    {
        let values = rounds.iter().map(|round| round[part]).collect();
        meter.record(metric, tare_model::Unit::Nanosecond, values, FILES as u64);
    }
    Ok(())
}

#[cfg(windows)]
mod windows {
    use std::ffi::c_void;
    use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle, RawHandle};
    use std::time::Instant;

    use super::{CONTENT, CONTENT_BYTES, FILES, per_file, rounds};
    use crate::folder::{Entered, Folder};
    use crate::meter::{Meter, ProbeError};
    use crate::windows::wide;

    const GENERIC_WRITE: u32 = 0x4000_0000;
    const CREATE_NEW: u32 = 1;
    const FILE_ATTRIBUTE_NORMAL: u32 = 0x80;
    /// `INVALID_HANDLE_VALUE`.
    const NONE: RawHandle = std::ptr::without_provenance_mut(usize::MAX);

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn CreateFileW(
            name: *const u16,
            rights: u32,
            shared: u32,
            attributes: *const c_void,
            how: u32,
            flags: u32,
            template: RawHandle,
        ) -> RawHandle;
        fn WriteFile(
            file: RawHandle,
            bytes: *const u8,
            length: u32,
            written: *mut u32,
            overlapped: *mut c_void,
        ) -> i32;
        fn DeleteFileW(name: *const u16) -> i32;
    }

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let folder = Folder::new(meter.workdir(), "tare-files")?;
        let _inside = Entered::new(&folder)?;
        let names: Vec<Vec<u16>> = (0..FILES)
            .map(|number| wide(&format!("file-{number:02}")))
            .collect();
        let mut open = Vec::with_capacity(FILES);
        rounds(meter, || {
            Ok([
                create(&names, &mut open)?,
                write(&mut open)?,
                remove(&names)?,
            ])
        })
    }

    /// Creates every file, keeps it open, and returns the nanoseconds per file.
    fn create(names: &[Vec<u16>], open: &mut Vec<OwnedHandle>) -> Result<f64, ProbeError> {
        let start = Instant::now();
        for name in names {
            // SAFETY: the name ends with a zero; null pointers ask for no attributes and no template.
            let file = unsafe {
                CreateFileW(
                    name.as_ptr(),
                    GENERIC_WRITE,
                    0,
                    std::ptr::null(),
                    CREATE_NEW,
                    FILE_ATTRIBUTE_NORMAL,
                    std::ptr::null_mut(),
                )
            };
            if file == NONE {
                return Err(ProbeError::last("CreateFile"));
            }
            // SAFETY: just opened, and owned nowhere else. The vector has enough capacity: nothing is allocated.
            open.push(unsafe { OwnedHandle::from_raw_handle(file) });
        }
        Ok(per_file(start, FILES))
    }

    /// Writes to every open file, closes it, and returns the nanoseconds per file.
    fn write(open: &mut Vec<OwnedHandle>) -> Result<f64, ProbeError> {
        let start = Instant::now();
        for file in open.drain(..) {
            let mut written = 0;
            // SAFETY: the file is open, `CONTENT` has the given length, and `written` is live.
            let answer = unsafe {
                WriteFile(
                    file.as_raw_handle(),
                    CONTENT.as_ptr(),
                    CONTENT_BYTES,
                    &raw mut written,
                    std::ptr::null_mut(),
                )
            };
            if answer == 0 {
                return Err(ProbeError::last("WriteFile"));
            }
            if written != CONTENT_BYTES {
                let error = std::io::ErrorKind::WriteZero.into();
                return Err(ProbeError::system("WriteFile", &error));
            }
        }
        Ok(per_file(start, FILES))
    }

    /// Removes every file and returns the nanoseconds per file.
    fn remove(names: &[Vec<u16>]) -> Result<f64, ProbeError> {
        let start = Instant::now();
        for name in names {
            // SAFETY: the name ends with a zero.
            if unsafe { DeleteFileW(name.as_ptr()) } == 0 {
                return Err(ProbeError::last("DeleteFile"));
            }
        }
        Ok(per_file(start, FILES))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CString;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::time::Instant;

    use super::{CONTENT, FILES, per_file, rounds};
    use crate::folder::Folder;
    use crate::meter::{Meter, ProbeError};
    use crate::quiet::Quiet;

    /// Files created to compare locations.
    const TRIED: usize = 4;

    pub(super) fn run(meter: &mut Meter) -> Result<(), ProbeError> {
        let (few, all) = (names(TRIED), names(FILES));
        let mut sample = |folder: &Folder| Ok(round(folder, &few)?[0]);
        let mut quiet = Quiet::new(meter.workdir(), "tare-files", &mut sample)?;
        rounds(meter, || {
            if quiet.moved(&mut sample)? {
                round(quiet.folder(), &all)?;
            }
            round(quiet.folder(), &all)
        })
    }

    fn names(count: usize) -> Vec<CString> {
        (0..count)
            .map(|number| {
                CString::new(format!("file-{number:02}")).expect("there is no zero byte in it")
            })
            .collect()
    }

    /// Creates these files in the folder, writes to them and removes them.
    fn round(folder: &Folder, names: &[CString]) -> Result<[f64; 3], ProbeError> {
        let mut open = Vec::with_capacity(names.len());
        let created = create(folder, names, &mut open)?;
        Ok([created, write(&mut open)?, unlink(folder, names)?])
    }

    /// Creates every file, keeps it open, and returns the nanoseconds per file.
    fn create(
        folder: &Folder,
        names: &[CString],
        open: &mut Vec<OwnedFd>,
    ) -> Result<f64, ProbeError> {
        let directory = folder.handle().as_raw_fd();
        let start = Instant::now();
        for name in names {
            // SAFETY: the directory is open, the name ends with a zero byte.
            let descriptor = unsafe {
                libc::openat(
                    directory,
                    name.as_ptr(),
                    libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC,
                    0o600,
                )
            };
            if descriptor < 0 {
                return Err(ProbeError::last("openat"));
            }
            // SAFETY: just opened, and owned nowhere else. The vector has enough capacity: nothing is allocated.
            open.push(unsafe { OwnedFd::from_raw_fd(descriptor) });
        }
        Ok(per_file(start, names.len()))
    }

    /// Writes to every open file, closes it, and returns the nanoseconds per file.
    fn write(open: &mut Vec<OwnedFd>) -> Result<f64, ProbeError> {
        let files = open.len();
        let start = Instant::now();
        for file in open.drain(..) {
            // SAFETY: the descriptor is open and `CONTENT` has the given length.
            let written =
                unsafe { libc::write(file.as_raw_fd(), CONTENT.as_ptr().cast(), CONTENT.len()) };
            if written < 0 {
                return Err(ProbeError::last("write"));
            }
            if written.cast_unsigned() != CONTENT.len() {
                return Err(ProbeError::system(
                    "write",
                    &std::io::ErrorKind::WriteZero.into(),
                ));
            }
        }
        Ok(per_file(start, files))
    }

    /// Removes every file and returns the nanoseconds per file.
    fn unlink(folder: &Folder, names: &[CString]) -> Result<f64, ProbeError> {
        let directory = folder.handle().as_raw_fd();
        let start = Instant::now();
        for name in names {
            // SAFETY: the directory is open, the name ends with a zero byte.
            if unsafe { libc::unlinkat(directory, name.as_ptr(), 0) } != 0 {
                return Err(ProbeError::last("unlinkat"));
            }
        }
        Ok(per_file(start, names.len()))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn files_round_writes_whole_files_and_removes_them() {
            let folder = Folder::new(&std::env::temp_dir(), "tare-files").unwrap();
            let names = names(2);
            let mut open = Vec::new();
            create(&folder, &names, &mut open).unwrap();
            write(&mut open).unwrap();
            for name in &names {
                let path = folder.path().join(name.to_str().unwrap());
                assert_eq!(std::fs::metadata(path).unwrap().len(), 4096);
            }
            unlink(&folder, &names).unwrap();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }

        #[test]
        fn a_full_device_is_a_failure_and_not_a_fast_write() {
            // Every write to this device fails with ENOSPC.
            let full = std::fs::OpenOptions::new().write(true).open("/dev/full");
            let error = write(&mut vec![full.unwrap().into()]).unwrap_err();
            assert!(format!("{error:?}").contains("write"), "{error:?}");
        }
    }
}
