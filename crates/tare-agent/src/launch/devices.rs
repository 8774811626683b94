//! A /dev of its own: few devices on tmpfs, pseudo-terminals, shared memory of 64 MiB, message queues.
//!
//! What Docker gives every container by default. Devices are made where that is allowed; in a user namespace
//! it never is, and the host's are bound instead, which costs nothing at run time.
//! What it cannot see: a device cgroup; Tare's groups carry no device rules, which Docker's do.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use tare_model::launch::{LaunchError, Missing};

use super::{refused, sys};

/// Name, major and minor number (Documentation/admin-guide/devices.txt of the kernel).
const DEVICES: [(&str, u32, u32); 6] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
];

/// Links that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Binds the host's device, kept open because the new /dev may already hide it.
fn bind(target: &Path, host: &fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    fs::write(target, "")?;
    let source = format!("/proc/self/fd/{}", host.as_raw_fd());
    sys::mount(OsStr::new(&source), target, "", libc::MS_BIND, "")
}

fn open_path(path: &Path) -> io::Result<fs::File> {
    use std::os::unix::fs::OpenOptionsExt;
    fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH)
        .open(path)
}

/// Mounts a new /dev on `dev`. Devices that can neither be made nor bound are added to `missing`.
pub(super) fn mount(
    dev: &Path,
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let host: Vec<_> = DEVICES
        .iter()
        .map(|(name, _, _)| open_path(&Path::new("/dev").join(name)))
        .collect();
    let options = libc::MS_NOSUID | libc::MS_STRICTATIME;
    sys::mount(
        OsStr::new("tmpfs"),
        dev,
        "tmpfs",
        options,
        "mode=755,size=65536k",
    )
    .map_err(refused("mount tmpfs on /dev"))?;
    let mut n_bound = 0;
    for ((name, major, minor), host) in DEVICES.iter().zip(host) {
        let target = dev.join(name);
        let made = sys::make_device(&target, 0o666, *major, *minor)
            // The umask took bits away.
            .and_then(|()| fs::set_permissions(&target, fs::Permissions::from_mode(0o666)));
        if made.is_ok() {
            continue;
        }
        match host.and_then(|host| bind(&target, &host)) {
            Ok(()) => n_bound += 1,
            Err(error) => missing.push(Missing {
                what: format!("/dev/{name}"),
                why: format!("can neither be made nor bound from the host: {error}"),
            }),
        }
    }
    if n_bound > 0 {
        missing.push(Missing {
            what: "own device nodes".into(),
            why: format!("{n_bound} could not be made (no mknod here) and are bound from the host"),
        });
    }
    for (name, target) in LINKS {
        symlink(target, dev.join(name)).map_err(refused(&format!("link /dev/{name}")))?;
    }
    let folder = |name: &str| {
        let path = dev.join(name);
        fs::create_dir(&path)
            .map(|()| path)
            .map_err(refused(&format!("make /dev/{name}")))
    };
    let quiet = libc::MS_NOSUID | libc::MS_NOEXEC;
    let pts = folder("pts")?;
    // Group 5 is `tty`; a user namespace that maps one id only has no such group.
    let terminals = if has_user_namespace {
        "newinstance,ptmxmode=0666,mode=0620"
    } else {
        "newinstance,ptmxmode=0666,mode=0620,gid=5"
    };
    let optional = [
        (pts, "devpts", quiet, terminals),
        (
            folder("shm")?,
            "tmpfs",
            quiet | libc::MS_NODEV,
            "mode=1777,size=65536k",
        ),
        (folder("mqueue")?, "mqueue", quiet | libc::MS_NODEV, ""),
    ];
    for (target, kind, flags, data) in optional {
        if let Err(error) = sys::mount(OsStr::new(kind), &target, kind, flags, data) {
            missing.push(Missing {
                what: format!("/dev/{}", target.file_name().unwrap_or_default().display()),
                why: format!("mounting {kind}: {error}"),
            });
        }
    }
    Ok(())
}
