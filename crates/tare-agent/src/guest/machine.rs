//! Does what only a machine's first process does: mounts the kernel's file systems, reaps, powers off.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::chroot;
use std::path::Path;
use std::time::Duration;

use crate::launch::sys;

/// How long to wait before power-off for the host to read the remaining bytes.
const TAKING_LIMIT: Duration = Duration::from_millis(200);

/// Mounts /proc, /sys, /dev, /dev/shm and /tmp.
pub(super) fn mount_kernel_file_systems() -> Result<(), String> {
    let mount = |kind: &str, path: &str| {
        fs::create_dir_all(path)
            .and_then(|()| sys::mount(OsStr::new(kind), Path::new(path), kind, 0, ""))
            .map_err(|error| format!("cannot mount {kind} on {path}: {error}"))
    };
    mount("proc", "/proc")?;
    mount("sysfs", "/sys")?;
    mount("devtmpfs", "/dev")?;
    mount("tmpfs", "/dev/shm")?;
    mount("tmpfs", "/tmp")
}

/// Makes the file system that is mounted on `path` the root. `pivot_root` cannot leave the kernel's initial root.
pub(super) fn change_root(path: &Path) -> io::Result<()> {
    std::env::set_current_dir(path)?;
    sys::mount(OsStr::new("."), Path::new("/"), "", libc::MS_MOVE, "")?;
    chroot(".")?;
    std::env::set_current_dir("/")
}

/// Returns the time since boot in nanoseconds, or 0 if the clock cannot be read.
pub(super) fn up_ns() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live, exclusively borrowed structure.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Waits for any child to exit and returns its pid.
pub(super) fn reap_any() -> io::Result<u32> {
    loop {
        // SAFETY: a null status pointer is allowed; -1 means any child.
        let process = unsafe { libc::waitpid(-1, std::ptr::null_mut(), 0) };
        if process > 0 {
            return Ok(process.cast_unsigned());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Waits briefly until the host has read or closed the port.
pub(super) fn wait_until_taken(port: &File) {
    let mut entry = [libc::pollfd {
        fd: port.as_raw_fd(),
        events: libc::POLLHUP,
        revents: 0,
    }];
    // The result is ignored because the machine powers off next either way.
    let limit_ms = i32::try_from(TAKING_LIMIT.as_millis()).unwrap_or(i32::MAX);
    let _ = sys::poll(&mut entry, limit_ms);
}

/// Stops all writes to a file system, so that it is consistent on its disk. Fails if it has no disk.
fn freeze(path: &Path) -> io::Result<()> {
    /// Of the kernel's `linux/fs.h`.
    const FIFREEZE: libc::Ioctl = libc::_IOWR::<libc::c_int>('X' as u32, 119);
    let folder = File::open(path)?;
    // SAFETY: the request takes no memory of this process.
    sys::check(unsafe { libc::ioctl(folder.as_raw_fd(), FIFREEZE, 0) }).map(drop)
}

/// Syncs the disk and powers the machine off.
pub(super) fn power_off() -> ! {
    // SAFETY: the signal goes to all other processes of this machine and to none outside it.
    unsafe { libc::kill(-1, libc::SIGKILL) };
    // Fails if nothing is mounted; if it fails otherwise, `sync` writes the data back.
    let _ = sys::unmount(Path::new("/work"));
    // Init may still write to the root.
    let _ = freeze(Path::new("/"));
    // SAFETY: `sync` takes no arguments and cannot fail.
    unsafe { libc::sync() };
    // SAFETY: takes a number; it ends this machine, to which this process alone belongs.
    unsafe { libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF) };
    // Reached only without the privilege, which a real machine's first process has. Its exit panics the kernel, and
    // that ends the machine too.
    sys::leave(1)
}
