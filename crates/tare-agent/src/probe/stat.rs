//! `stat`: reads the attributes of an existing file.
//!
//! Inside the timed region: `k` times `stat("/")` for `fs.stat.time`; `k` times `fstatat` of a file four components
//! below an open directory for `fs.stat-path.time`. Outside: creating and removing that path. On Windows
//! `GetFileAttributesEx` of the root of the drive, and of such a path below the current directory.
//! Everything is in the kernel's caches. Both are needed: `/` is on the environment's root file system (overlay in
//! most containers), the path on the file system of the working directory. Its depth is counted from an open
//! directory, so that a deeper working directory in one arm costs nothing.
//! Known bias: does not cover a cold cache; on a network file system it may include a round trip.
//! Source: the `stat` of lmbench's `lat_syscall`.

use tare_model::Params;

use crate::meter::{Meter, ProbeError};

super::probe! {
    "stat": "stat of the root directory and of a file four components below the working directory";
    revision 1, cut LOOP
}

#[cfg(target_os = "linux")]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use std::os::fd::AsRawFd;

    use crate::folder::Folder;

    let folder = Folder::new(meter.workdir(), "tare-stat")?;
    std::fs::create_dir_all(folder.path().join("one/two/three"))
        .map_err(|error| ProbeError::system("mkdir", &error))?;
    std::fs::write(folder.path().join("one/two/three/file"), b"tare")
        .map_err(|error| ProbeError::system("create", &error))?;
    let descriptor = folder.handle().as_raw_fd();
    let mut found = std::mem::MaybeUninit::<libc::stat>::uninit();
    let place = found.as_mut_ptr();
    meter.loops("fs.stat.time", 0.5, |calls| {
        for _ in 0..calls {
            // SAFETY: the path ends with a zero byte and `place` has the size of the answer.
            if unsafe { libc::stat(c"/".as_ptr(), place) } != 0 {
                return Err(ProbeError::last("stat"));
            }
        }
        Ok(())
    })?;
    meter.loops("fs.stat-path.time", 0.5, |calls| {
        for _ in 0..calls {
            // SAFETY: the descriptor stays open as long as `folder`, the path ends with a zero byte, and `place` has
            // the size of the answer.
            let done =
                unsafe { libc::fstatat(descriptor, c"one/two/three/file".as_ptr(), place, 0) };
            if done != 0 {
                return Err(ProbeError::last("fstatat"));
            }
        }
        Ok(())
    })
}

super::needs!(linux or windows, "stat as a system call");

#[cfg(windows)]
fn run(meter: &mut Meter, _params: &Params) -> Result<(), ProbeError> {
    use crate::folder::{Entered, Folder};
    use crate::windows::wide;

    #[link(name = "kernel32")]
    unsafe extern "system" {
        fn GetFileAttributesExW(path: *const u16, level: i32, found: *mut [u32; 9]) -> i32;
    }

    let folder = Folder::new(meter.workdir(), "tare-stat")?;
    std::fs::create_dir_all(folder.path().join("one/two/three"))
        .map_err(|error| ProbeError::system("CreateDirectory", &error))?;
    std::fs::write(folder.path().join("one/two/three/file"), b"tare")
        .map_err(|error| ProbeError::system("CreateFile", &error))?;
    let _inside = Entered::new(&folder)?;
    let mut found = [0; 9];
    for (metric, path) in [
        ("fs.stat.time", "\\"),
        ("fs.stat-path.time", "one\\two\\three\\file"),
    ] {
        let path = wide(path);
        meter.loops(metric, 0.5, |calls| {
            for _ in 0..calls {
                // SAFETY: the path ends with a zero, and `found` has the size of WIN32_FILE_ATTRIBUTE_DATA, the
                // answer for level 0.
                if unsafe { GetFileAttributesExW(path.as_ptr(), 0, &raw mut found) } == 0 {
                    return Err(ProbeError::last("GetFileAttributesEx"));
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
