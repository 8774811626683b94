//! Mounts a private /dev: few devices on tmpfs, pseudo-terminals, 64 MiB of shared memory, message queues.
//!
//! The devices are those that Docker gives every container by default. They are bind mounts of the host's devices,
//! which adds no run-time overhead. So the tmpfs around them needs no devices (`nodev`), and a node made in it cannot
//! be opened.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::Path;

use tare_model::launch::{LaunchError, Missing};

use super::inner::{Make, Root, path_of};
use super::{refused, sys};

/// The devices' names.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Symlinks that programs expect.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Bind-mounts the host's device, which is held open because the new /dev may already hide it.
fn bind(target: &Path, host: &fs::File) -> io::Result<()> {
    fs::write(target, "")?;
    let source = format!("/proc/self/fd/{}", host.as_raw_fd());
    sys::mount(OsStr::new(&source), target, "", libc::MS_BIND, "")
}

/// Mounts a new /dev. Devices that cannot be bind-mounted are added to `missing`.
pub(super) fn mount(
    root: &Root,
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let host: Vec<_> = DEVICES
        .iter()
        .map(|name| sys::open_path(&Path::new("/dev").join(name)))
        .collect();
    let options = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_STRICTATIME;
    let dev = root
        .mount(
            "/dev",
            OsStr::new("tmpfs"),
            "tmpfs",
            options,
            "mode=755,size=65536k",
        )
        .and_then(|()| root.find("/dev", Make::Nothing))
        .map_err(refused("mount tmpfs on /dev"))?;
    // A new empty folder from here on, so it holds no symlinks.
    let dev = path_of(&dev);
    for (name, host) in DEVICES.iter().zip(host) {
        if let Err(error) = host.and_then(|host| bind(&dev.join(name), &host)) {
            missing.push(Missing {
                what: format!("/dev/{name}"),
                why: format!("the host's cannot be bound: {error}"),
            });
        }
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
    // Group 5 is `tty`; a user namespace that maps only one id does not have it.
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
