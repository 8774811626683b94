//! Builds the root file system, an overlay over the host's files, and enters it with `pivot_root`.
//!
//! The lower layer is the file system mounted on `/`, so the same programs and libraries run inside as outside,
//! through overlayfs. Upper and work layer are in the instance's scratch folder, which must be on a disk that
//! overlayfs accepts for an upper layer. Other file systems that the host has mounted below `/` are not part of the
//! lower layer: inside, their mount points are the bare folders beneath them.
//! If other layers are given, such as an image's, they are the lower ones, without any of the host's.
//! In a user namespace the kernel refuses `/` as a lower layer while anything is mounted below it, because that would
//! uncover what those mounts cover. Then the root is an overlay over a skeleton of `/`, and each of its folders a
//! separate overlay; folders with mounts below them are bind-mounted instead, which is reported.
//! Unmounting an overlay writes back the upper layer's whole file system; with every engine that is part of the time
//! to end such a container.
//! The agent is copied into the upper layer, so that it is executed from the overlay like any program of an image,
//! and so that nothing inside can change the host's copy.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use tare_model::launch::{LaunchError, LaunchSpec, Missing, Rootfs};

use super::{refused, sys};
use tare_model::mountinfo::Mount;

/// The agent's file inside an overlay.
pub(super) const AGENT_INSIDE: &str = "/tare-agent";

/// An instance's folders in its scratch folder.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    /// In the syntax of overlay mount options.
    lower: String,
    upper: PathBuf,
    work: PathBuf,
    merged: PathBuf,
    skeleton: PathBuf,
    parts: PathBuf,
}

impl Layers {
    fn new(scratch: &Path) -> Self {
        Self {
            lower: "/".to_owned(),
            upper: scratch.join("upper"),
            work: scratch.join("work"),
            merged: scratch.join("merged"),
            skeleton: scratch.join("skeleton"),
            parts: scratch.join("parts"),
        }
    }
}

/// Returns whether a path may appear in overlay mount options, where these characters are special.
fn is_plain(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(|byte| matches!(byte, b',' | b':' | b'\\' | b'"'))
}

/// Returns the path of the agent's copy for an instance whose root is the host's. It is a copy because the original
/// may be reachable only for the host process, and changes to a copy end with the instance.
pub(super) fn agent_in_scratch(spec: &LaunchSpec) -> String {
    format!("{}/tare-agent", spec.scratch)
}

fn copy_agent(spec: &LaunchSpec, target: &Path) -> io::Result<()> {
    fs::copy(&spec.agent, target)?;
    fs::set_permissions(target, fs::Permissions::from_mode(0o755))
}

/// Makes the folders and puts the agent and the working directory in place, on the host, before the start.
pub(super) fn prepare(spec: &LaunchSpec) -> Result<Option<Layers>, LaunchError> {
    if spec.rootfs == Rootfs::Host {
        fs::create_dir_all(&spec.workdir)
            .map_err(refused(&format!("make the folder `{}`", spec.workdir)))?;
        copy_agent(spec, Path::new(&agent_in_scratch(spec))).map_err(refused(&format!(
            "copy the agent into the scratch folder `{}`",
            spec.scratch
        )))?;
        return Ok(None);
    }
    let scratch = fs::canonicalize(&spec.scratch).map_err(refused(&format!(
        "find the scratch folder `{}`",
        spec.scratch
    )))?;
    if !is_plain(&scratch) {
        return Err(LaunchError {
            step: "make the overlay's folders".into(),
            problem: format!(
                "`{}` holds a comma, a colon or a backslash",
                scratch.display()
            ),
            errno: None,
            hint: Some("set TARE_HOME to a folder without them".into()),
        });
    }
    let mut layers = Layers::new(&scratch);
    if !spec.lower.is_empty() {
        layers.lower = spec.lower.join(":");
    }
    let inside = layers.upper.join(spec.workdir.trim_start_matches('/'));
    let agent = layers.upper.join(AGENT_INSIDE.trim_start_matches('/'));
    let make = || -> io::Result<()> {
        let folders = [
            &layers.upper,
            &layers.work,
            &layers.merged,
            &layers.skeleton,
            &layers.parts,
        ];
        for folder in folders {
            fs::create_dir(folder)?;
        }
        // The mode of the upper layer's folder becomes that of `/` inside.
        fs::set_permissions(&layers.upper, fs::Permissions::from_mode(0o755))?;
        fs::create_dir_all(&inside)?;
        if let Some(folder) = &spec.shared {
            fs::create_dir_all(layers.upper.join(folder.target.trim_start_matches('/')))?;
        }
        copy_agent(spec, &agent)
    };
    make().map_err(refused(&format!(
        "fill the upper layer in `{}`",
        scratch.display()
    )))?;
    Ok(Some(layers))
}

fn overlay(
    lower: &Path,
    upper: &Path,
    work: &Path,
    target: &Path,
    has_user_namespace: bool,
) -> io::Result<()> {
    let mut options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    if has_user_namespace {
        // The `trusted` attributes that overlayfs normally uses are not permitted here.
        options.push_str(",userxattr");
    }
    // A device node made in it cannot be opened.
    let flags = libc::MS_NODEV;
    sys::mount(OsStr::new("overlay"), target, "overlay", flags, &options)
}

/// Mounts the overlay and returns the container's root. Only for the private mount namespace.
pub(super) fn mount(
    layers: &Layers,
    has_user_namespace: bool,
    missing: &mut Vec<Missing>,
) -> Result<PathBuf, LaunchError> {
    let over = |lower: &Path| {
        overlay(
            lower,
            &layers.upper,
            &layers.work,
            &layers.merged,
            has_user_namespace,
        )
    };
    let may_be_in_parts = has_user_namespace && layers.lower == "/";
    let mounted = match over(Path::new(&layers.lower)) {
        Err(error) if may_be_in_parts && error.raw_os_error() == Some(libc::EINVAL) => {
            let folders = skeleton(&layers.skeleton).map_err(refused("copy the folders of /"))?;
            // Read before the overlay itself appears below one of the folders.
            let mountinfo = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
            over(&layers.skeleton).map(|()| cover(layers, &folders, &mountinfo, missing))
        }
        other => other,
    };
    mounted.map_err(|error| {
        let mut refusal = refused("mount the overlay over /")(error);
        refusal.hint = Some(match refusal.errno {
            Some(libc::ENODEV) => {
                "load the kernel module `overlay`, or use rootfs = \"host\"".into()
            }
            Some(libc::EPERM) if has_user_namespace => {
                "overlays in a user namespace need Linux 5.11; run as root, or use rootfs = \"host\""
                    .into()
            }
            _ => format!(
                "`/` must be usable as a lower layer and `{}` as an upper one (ext4 and xfs are, \
                 an overlay or NFS is not); set TARE_HOME to such a disk, or use rootfs = \"host\"",
                layers.upper.display()
            ),
        });
        refusal
    })?;
    Ok(layers.merged.clone())
}

/// Mounts an overlay over `/` on `merged` in a scratch folder, with the existing layers `upper` and `work` next to
/// it. Only for a private mount namespace of the host's root.
pub(super) fn mount_over_host(scratch: &Path) -> Result<(), LaunchError> {
    mount(&Layers::new(scratch), false, &mut Vec::new()).map(drop)
}

/// Folders that get new mounts or binds later, whatever the root is.
const LATER: [&str; 3] = ["proc", "sys", "dev"];

/// Recreates the symlinks and folders of `/` in an empty folder; returns the folders' names.
fn skeleton(target: &Path) -> io::Result<Vec<OsString>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir("/")? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, target.join(&name))?;
        } else if kind.is_dir() {
            fs::create_dir(target.join(&name))?;
            folders.push(name);
        }
    }
    folders.sort_unstable();
    Ok(folders)
}

/// Covers each folder of the skeleton with an overlay over the host's folder, or with that folder itself.
fn cover(layers: &Layers, folders: &[OsString], mountinfo: &str, missing: &mut Vec<Missing>) {
    for name in folders {
        if LATER.iter().any(|later| name == later) {
            continue;
        }
        let host = Path::new("/").join(name);
        let target = layers.merged.join(name);
        let part = layers.parts.join(name);
        let (upper, work) = (part.join("upper"), part.join("work"));
        let covered = if has_mounts_below(mountinfo, &host) {
            Err(io::Error::other("other file systems are mounted below it"))
        } else {
            fs::create_dir(&part)
                .and_then(|()| fs::create_dir(&upper))
                .and_then(|()| fs::create_dir(&work))
                .and_then(|()| overlay(&host, &upper, &work, &target, true))
        };
        let Err(error) = covered else {
            continue;
        };
        let flags = libc::MS_BIND | libc::MS_REC;
        let bound = sys::mount(host.as_os_str(), &target, "", flags, "");
        missing.push(Missing {
            what: format!("overlay over {}", host.display()),
            why: match bound {
                Ok(()) => format!("{error}; the host's folder itself is bound"),
                Err(then) => format!("{error}; and it cannot be bound: {then}; it is empty"),
            },
        });
    }
}

/// Returns whether anything is mounted below a folder.
fn has_mounts_below(mountinfo: &str, folder: &Path) -> bool {
    mountinfo.lines().any(|line| {
        Mount::parse(line).is_some_and(|mount| {
            let point = Path::new(&mount.point);
            point != Path::new("/") && point.starts_with(folder)
        })
    })
}

/// Makes `root` the root of this mount namespace and unmounts the old one.
pub(super) fn enter(root: &Path) -> Result<(), LaunchError> {
    std::env::set_current_dir(root).map_err(refused("enter the new root"))?;
    // New and old root may be the same folder: the old root is then stacked on the new one and can be unmounted
    // through `.` (pivot_root(2), "pivot_root(".", ".")").
    sys::pivot_root_here().map_err(|error| {
        let mut refusal = refused("pivot into the new root")(error);
        refusal.hint =
            Some("on an initramfs there is no root to leave; use rootfs = \"host\"".into());
        refusal
    })?;
    sys::unmount(Path::new(".")).map_err(refused("let go of the old root"))?;
    std::env::set_current_dir("/").map_err(refused("enter the new root"))
}

/// Makes the scratch folder removable for an ordinary user: overlayfs leaves a folder without permissions in each
/// work layer.
pub(super) fn open_work_layers(scratch: &Path) {
    let layers = Layers::new(scratch);
    let parts = fs::read_dir(&layers.parts).into_iter().flatten().flatten();
    let works = parts.map(|part| part.path().join("work"));
    for work in works.chain([layers.work]) {
        // It exists only after a mount, and root does not need the change.
        let _ = fs::set_permissions(work.join("work"), fs::Permissions::from_mode(0o700));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_would_be_read_as_two_options_is_found() {
        assert!(is_plain(Path::new("/var/lib/tare run/x")));
        for path in ["/a,b", "/a:b", r"/a\b"] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn mount_below_folder_is_found_sibling_is_not() {
        let mountinfo = "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /run\\040x/a rw - tmpfs x rw";
        assert!(has_mounts_below(mountinfo, Path::new("/run x")));
        assert!(!has_mounts_below(mountinfo, Path::new("/run")));
        assert!(!has_mounts_below(mountinfo, Path::new("/usr")));
    }
}
