//! Mounts /proc, /sys with the instance's cgroups and /dev inside, and the binds; hides and write-protects paths.
//!
//! Everything happens in a mount namespace whose propagation was made private before, so that nothing reaches the
//! host's. If the root stays the host's, the new file systems cover the old ones in that namespace alone.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;

use tare_model::launch::{Bind, LaunchError, LaunchSpec, Missing, READ_ONLY_PATHS, SharedFolder};

use super::control::Group;
use super::inner::{Make, Root, path_of};
use super::{devices, refused, sys};

const QUIET: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// Makes every mount of this namespace private: changes are not visible outside.
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

/// Bind-mounts a file or folder, with the mounts below it.
pub(super) fn bind(source: &OsStr, target: &Path) -> io::Result<()> {
    sys::mount(source, target, "", libc::MS_BIND | libc::MS_REC, "")
}

/// Bind-mounts the folder that the container shares with the host.
pub(super) fn bind_shared(folder: &SharedFolder, root: &Root) -> Result<(), LaunchError> {
    root.bind(OsStr::new(&folder.source), &folder.target)
        .map_err(refused(&format!(
            "bind the shared folder `{}`",
            folder.source
        )))
}

/// Remounts a bind mount read-only. In a user namespace, flags that the mount was locked with must be repeated.
fn protect(root: &Root, path: impl AsRef<Path>, flags: libc::c_ulong) -> io::Result<()> {
    let change = libc::MS_BIND | libc::MS_REMOUNT | libc::MS_RDONLY;
    root.mount(path, OsStr::new(""), "", change | flags, "")
}

/// Mounts a file system; if that is not allowed, bind-mounts the host's and records that in `missing`.
fn new_or_bound(
    root: &Root,
    path: &str,
    kind: &str,
    flags: libc::c_ulong,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let Err(error) = root.mount(path, OsStr::new(kind), kind, flags, "") else {
        return Ok(());
    };
    missing.push(Missing {
        what: format!("new {path}"),
        why: format!("mounting {kind}: {error}; the host's is bound instead"),
    });
    if root.is_host() {
        return Ok(());
    }
    root.bind(OsStr::new(path), path)
        .map_err(refused(&format!("bind the host's {path}")))
}

/// A cgroup, with its directory held open because /sys gets covered.
struct GroupSource<'a> {
    group: &'a Group,
    folder: Option<fs::File>,
}

/// Mounts the instance's cgroups under /sys/fs/cgroup, read-only, in the host's layout.
fn mount_cgroups(
    root: &Root,
    sources: &[GroupSource<'_>],
    has_namespace: bool,
) -> Result<(), LaunchError> {
    let top = Path::new("/sys/fs/cgroup");
    let mount_one = |source: &GroupSource<'_>, target: &Path| {
        let hierarchy = &source.group.hierarchy;
        if has_namespace {
            let kind = if hierarchy.is_unified {
                "cgroup2"
            } else {
                "cgroup"
            };
            root.mount(
                target,
                OsStr::new("cgroup"),
                kind,
                QUIET | libc::MS_RDONLY,
                &hierarchy.options,
            )
        } else if let Some(folder) = &source.folder {
            root.bind(path_of(folder).as_os_str(), target)
                .and_then(|()| protect(root, target, QUIET))
        } else {
            Err(io::Error::from(io::ErrorKind::NotFound))
        }
    };
    if let [only] = sources
        && only.group.hierarchy.is_unified
    {
        return mount_one(only, top).map_err(refused("mount the cgroup"));
    }
    root.mount(
        top,
        OsStr::new("tmpfs"),
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
        root.find(&target, Make::Folder)
            .and_then(|_| mount_one(source, &target))
            .map_err(refused(&format!("mount the cgroup `{}`", name.display())))?;
    }
    protect(root, top, QUIET).map_err(refused("write-protect /sys/fs/cgroup"))
}

fn mount_sys(
    spec: &LaunchSpec,
    root: &Root,
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
    // A bind-mounted /sys has the host's cgroups; nothing is mounted over those.
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

/// Covers or write-protects paths; those that this kernel does not have are skipped, as runtimes do.
fn mask(spec: &LaunchSpec, root: &Root) -> Result<(), LaunchError> {
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
        let result = root.find(path, Make::Nothing).and_then(|found| {
            if found.metadata()?.is_dir() {
                let (kind, flags) = ("tmpfs", libc::MS_RDONLY);
                return sys::mount(OsStr::new(kind), &path_of(&found), kind, flags, "size=0k");
            }
            bind(path_of(&null).as_os_str(), &path_of(&found))
        });
        is_done(path, result)?;
    }
    for path in READ_ONLY_PATHS {
        let result = root.find(path, Make::Nothing).and_then(|found| {
            let found = path_of(&found);
            bind(found.as_os_str(), &found)?;
            protect(root, path, QUIET)
        });
        is_done(path, result)?;
    }
    Ok(())
}

/// A bind whose source is held open, so that it can be mounted after the source was covered.
pub(super) struct Source {
    bind: Bind,
    held: fs::File,
    is_folder: bool,
}

/// Opens the bind sources before anything is covered, sorted by the depth of their targets, so that no target covers
/// one below it.
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

/// Mounts the requested host folders and files.
pub(super) fn bind_all(sources: &[Source], root: &Root) -> Result<(), LaunchError> {
    for source in sources {
        show(source, root).map_err(refused(&format!("bind `{}`", source.bind.source)))?;
    }
    Ok(())
}

fn show(source: &Source, root: &Root) -> io::Result<()> {
    let make = if source.is_folder {
        Make::Folder
    } else {
        Make::File
    };
    let target = root.find(&source.bind.target, make)?;
    bind(path_of(&source.held).as_os_str(), &path_of(&target))?;
    // Resolved again, to get the new mount.
    let target = root.find(&source.bind.target, Make::Nothing)?;
    let read_only = source.bind.read_only;
    let mut attributes = u64::from(read_only) * libc::MOUNT_ATTR_RDONLY;
    if source.is_folder {
        // A device node made in it cannot be opened.
        attributes |= libc::MOUNT_ATTR_NODEV;
    }
    match sys::restrict_mounts(&path_of(&target), attributes) {
        // The syscall is missing before Linux 5.12, and a seccomp filter around Tare may deny it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            if read_only {
                protect(root, &source.bind.target, 0)?;
            }
            Ok(())
        }
        other => other,
    }
}

/// Mounts everything that the specification asks for under `root`. Parts that it does not ask for are bind-mounted
/// from the host unless the root is the host's, so that programs find what they expect.
pub(super) fn mount_all(
    spec: &LaunchSpec,
    root: &Root,
    groups: &[Group],
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<(), LaunchError> {
    let bind_host = |path: &str| {
        if root.is_host() {
            return Ok(());
        }
        root.bind(OsStr::new(path), path)
            .map_err(refused(&format!("bind the host's {path}")))
    };
    if spec.mounts.dev {
        devices::mount(root, has_user_namespace, missing)?;
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
