//! What is mounted anew inside: /proc, /sys with the instance's cgroups, /dev; and the paths that are hidden or
//! write-protected there.
//!
//! Everything happens in a mount namespace of its own whose propagation was made private before, so that
//! nothing reaches the host's. Where the root stays the host's, the new file systems cover the old ones in
//! that namespace alone.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tare_model::launch::{Bind, LaunchError, LaunchSpec, Missing, READ_ONLY_PATHS, SharedFolder};

use super::control::Group;
use super::{devices, refused, sys};

const QUIET: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Makes every mount of this namespace private: nothing done here is seen outside.
pub(super) fn make_private() -> Result<(), LaunchError> {
    sys::mount(
        OsStr::new(""),
        Path::new("/"),
        "",
        libc::MS_REC | libc::MS_PRIVATE,
        "",
    )
    .map_err(refused("make the mounts private"))
}

/// Binds a file or folder, with what is mounted below it.
pub(super) fn bind(source: &OsStr, target: &Path) -> io::Result<()> {
    sys::mount(source, target, "", libc::MS_BIND | libc::MS_REC, "")
}

/// Binds the folder that the inside shares with the host.
pub(super) fn bind_shared(folder: &SharedFolder, root: &Path) -> Result<(), LaunchError> {
    bind(OsStr::new(&folder.source), &below(root, &folder.target)).map_err(refused(&format!(
        "bind the shared folder `{}`",
        folder.source
    )))
}

/// Remounts a bind read-only. Flags that the mount was locked with must be repeated in a user namespace.
fn protect(target: &Path, flags: libc::c_ulong) -> io::Result<()> {
    let change = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
    sys::mount(OsStr::new(""), target, "", change | flags, "")
}

/// Where a path of the inside lies as long as `root` is not yet the root.
pub(super) fn below(root: &Path, path: impl AsRef<Path>) -> PathBuf {
    let path = path.as_ref();
    root.join(path.strip_prefix("/").unwrap_or(path))
}

/// Mounts a file system; where that is not allowed, binds the host's and says so.
fn new_or_bound(
    root: &Path,
    path: &str,
    kind: &str,
    flags: libc::c_ulong,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let target = below(root, path);
    let Err(error) = sys::mount(OsStr::new(kind), &target, kind, flags, "") else {
        return Ok(());
    };
    missing.push(Missing {
        what: format!("new {path}"),
        why: format!("mounting {kind}: {error}; the host's is bound instead"),
    });
    if root == Path::new("/") {
        return Ok(());
    }
    bind(OsStr::new(path), &target).map_err(refused(&format!("bind the host's {path}")))
}

/// Where a cgroup folder of the host stays reachable after /sys was covered.
struct GroupSource<'a> {
    group: &'a Group,
    folder: Option<fs::File>,
}

/// Shows the instance's groups under /sys/fs/cgroup, read-only, in the layout that the host has.
fn mount_cgroups(
    root: &Path,
    sources: &[GroupSource<'_>],
    has_namespace: bool,
) -> Result<(), LaunchError> {
    let top = below(root, "/sys/fs/cgroup");
    let mount_one = |source: &GroupSource<'_>, target: &Path| {
        let hierarchy = &source.group.hierarchy;
        if has_namespace {
            let kind = if hierarchy.is_unified {
                "cgroup2"
            } else {
                "cgroup"
            };
            sys::mount(
                OsStr::new("cgroup"),
                target,
                kind,
                QUIET | libc::MS_RDONLY,
                &hierarchy.options,
            )
        } else if let Some(folder) = &source.folder {
            let folder = format!("/proc/self/fd/{}", folder.as_raw_fd());
            bind(OsStr::new(&folder), target).and_then(|()| protect(target, QUIET))
        } else {
            Err(io::Error::from(io::ErrorKind::NotFound))
        }
    };
    if let [only] = sources
        && only.group.hierarchy.is_unified
    {
        return mount_one(only, &top).map_err(refused("mount the cgroup"));
    }
    sys::mount(
        OsStr::new("tmpfs"),
        &top,
        "tmpfs",
        QUIET,
        "mode=755,size=64k",
    )
    .map_err(refused("mount tmpfs on /sys/fs/cgroup"))?;
    for source in sources {
        let name = source
            .group
            .hierarchy
            .mount_point
            .file_name()
            .unwrap_or(OsStr::new("unified"));
        let target = top.join(name);
        fs::create_dir(&target)
            .and_then(|()| mount_one(source, &target))
            .map_err(refused(&format!("mount the cgroup `{}`", name.display())))?;
    }
    protect(&top, QUIET).map_err(refused("write-protect /sys/fs/cgroup"))
}

fn mount_sys(
    spec: &LaunchSpec,
    root: &Path,
    groups: &[Group],
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let sources: Vec<GroupSource<'_>> = groups
        .iter()
        .map(|group| GroupSource {
            group,
            folder: sys::open_path(&group.folder).ok(),
        })
        .collect();
    let before = missing.len();
    new_or_bound(root, "/sys", "sysfs", QUIET | libc::MS_RDONLY, missing)?;
    // A bound /sys brings the host's cgroups along; nothing is mounted over those.
    if missing.len() > before || sources.is_empty() {
        return Ok(());
    }
    if let Err(error) = mount_cgroups(root, &sources, spec.namespaces.cgroup) {
        missing.push(Missing {
            what: "cgroups in /sys/fs/cgroup".into(),
            why: error.to_string(),
        });
    }
    Ok(())
}

/// Covers or write-protects paths; those that this kernel does not have are passed over, as runtimes do.
fn mask(spec: &LaunchSpec, root: &Path) -> Result<(), LaunchError> {
    let null = sys::open_path(Path::new("/dev/null")).map_err(refused("open /dev/null"))?;
    let is_done = |path: &str, result: io::Result<()>| match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let mut refusal = refused(&format!("mask `{path}`"))(error);
            refusal.hint = Some("masked_paths = false does without".into());
            Err(refusal)
        }
        _ => Ok(()),
    };
    for path in spec.docker.masked_paths() {
        let target = below(root, path);
        let result = fs::metadata(&target).and_then(|found| {
            if found.is_dir() {
                let (kind, flags) = ("tmpfs", libc::MS_RDONLY);
                return sys::mount(OsStr::new(kind), &target, kind, flags, "size=0k");
            }
            let source = format!("/proc/self/fd/{}", null.as_raw_fd());
            bind(OsStr::new(&source), &target)
        });
        is_done(path, result)?;
    }
    for path in READ_ONLY_PATHS {
        let target = below(root, path);
        let result = bind(target.as_os_str(), &target).and_then(|()| protect(&target, QUIET));
        is_done(path, result)?;
    }
    Ok(())
}

/// A bind whose source is held open, so that it can be shown after the source was covered.
pub(super) struct Source {
    bind: Bind,
    held: fs::File,
    is_folder: bool,
}

/// Opens what is to be bound, before anything is covered; in the order of the targets, so that one below another
/// is not covered by it.
pub(super) fn open_binds(
    binds: impl IntoIterator<Item = Bind>,
) -> Result<Vec<Source>, LaunchError> {
    let mut sources = binds
        .into_iter()
        .map(|bind| {
            let failed = refused(&format!("bind `{}`", bind.source));
            let held = sys::open_path(Path::new(&bind.source)).map_err(&failed)?;
            let is_folder = held.metadata().map_err(&failed)?.is_dir();
            Ok(Source {
                bind,
                held,
                is_folder,
            })
        })
        .collect::<Result<Vec<_>, LaunchError>>()?;
    sources.sort_by_cached_key(|source| source.bind.target.split('/').count());
    Ok(sources)
}

/// Shows the host's folders and files that were asked for.
pub(super) fn bind_all(sources: &[Source], root: &Path) -> Result<(), LaunchError> {
    for source in sources {
        let target = below(root, &source.bind.target);
        show(source, &target).map_err(refused(&format!("bind `{}`", source.bind.source)))?;
    }
    Ok(())
}

fn show(source: &Source, target: &Path) -> io::Result<()> {
    if !target.exists() {
        if source.is_folder {
            fs::create_dir_all(target)?;
        } else {
            target.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::File::create(target)?;
        }
    }
    let held = format!("/proc/self/fd/{}", source.held.as_raw_fd());
    bind(OsStr::new(&held), target)?;
    let read_only = source.bind.read_only;
    let mut attributes = u64::from(read_only) * libc::MOUNT_ATTR_RDONLY;
    if source.is_folder {
        // A node that is made in it is no device.
        attributes |= libc::MOUNT_ATTR_NODEV;
    }
    match sys::restrict_mounts(target, attributes) {
        // Before Linux 5.12 there is no such call, and a filter around Tare may refuse it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            if read_only {
                protect(target, 0)?;
            }
            Ok(())
        }
        other => other,
    }
}

/// Mounts everything that the specification asks for under `root`. Where a part is not asked for and the root
/// is not the host's, the host's part is bound, so that programs find what they expect.
pub(super) fn mount_all(
    spec: &LaunchSpec,
    root: &Path,
    groups: &[Group],
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let is_host_root = root == Path::new("/");
    let bind_host = |path: &str| {
        if is_host_root {
            return Ok(());
        }
        bind(OsStr::new(path), &below(root, path))
            .map_err(refused(&format!("bind the host's {path}")))
    };
    if spec.mounts.dev {
        devices::mount(&below(root, "/dev"), has_user_namespace, missing)?;
    } else {
        bind_host("/dev")?;
    }
    if spec.mounts.sys {
        mount_sys(spec, root, groups, missing)?;
    } else {
        bind_host("/sys")?;
    }
    if spec.mounts.proc {
        new_or_bound(root, "/proc", "proc", QUIET, missing)?;
    } else {
        bind_host("/proc")?;
    }
    if spec.masked_paths {
        mask(spec, root)?;
    }
    Ok(())
}
