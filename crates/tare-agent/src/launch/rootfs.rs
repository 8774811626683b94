//! The root file system: an overlay over the host's own files, entered by `pivot_root`.
//!
//! The lower layer is the file system mounted on `/`, so the same programs and libraries run inside as outside,
//! through overlayfs. Upper and work layer lie in the instance's scratch folder, which must be on a disk that
//! overlayfs takes as an upper layer. Other file systems that the host has mounted below `/` are not part of
//! the lower layer: inside, their mount points are the bare folders beneath them.
//! Where other layers are given, such as those of an image, they are the lower ones, and nothing of the host's is.
//! In a user namespace the kernel refuses `/` as a lower layer while anything is mounted below it, because that
//! would uncover what those mounts cover. Then the root is an overlay over a skeleton of `/`, and each of its
//! folders an overlay of its own; folders with mounts below them are bound instead, which is reported.
//! Unmounting an overlay writes the upper layer's whole file system back; that is part of what ending such a
//! container costs, with every engine.
//! The agent is copied into the upper layer, so that it is executed from the overlay like any program that an
//! image brings, and so that nothing done inside can change the host's copy.

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

/// The folders of an instance in its scratch folder.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    /// As the options of an overlay name them.
    lower: String,
    upper: PathBuf,
    work: PathBuf,
    merged: PathBuf,
    skeleton: PathBuf,
    parts: PathBuf,
}

impl Layers {
    fn of(scratch: &Path) -> Self {
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

/// Whether a path can stand in the options of an overlay, where these letters separate.
fn is_plain(path: &Path) -> bool {
    !path
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .any(|byte| matches!(byte, b',' | b':' | b'\\' | b'"'))
}

/// The agent's file of an instance whose root is the host's: a copy, for what the host's side names may be
/// something that only it can reach, and what is done to the copy ends with the instance.
pub(super) fn agent_beside(spec: &LaunchSpec) -> String {
    format!("{}/tare-agent", spec.scratch)
}

fn copy_agent(spec: &LaunchSpec, target: &Path) -> io::Result<()> {
    fs::copy(&spec.agent, target)?;
    fs::set_permissions(target, fs::Permissions::from_mode(0o755))
}

/// Makes the folders and puts the agent and the working directory in place; on the host, before the start.
pub(super) fn prepare(spec: &LaunchSpec) -> Result<Option<Layers>, LaunchError> {
    if spec.rootfs == Rootfs::Host {
        fs::create_dir_all(&spec.workdir)
            .map_err(refused(&format!("make the folder `{}`", spec.workdir)))?;
        copy_agent(spec, Path::new(&agent_beside(spec))).map_err(refused(&format!(
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
    let mut layers = Layers::of(&scratch);
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
        // The upper layer's own folder becomes `/` inside.
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
        // The trusted attributes that overlayfs uses otherwise are out of reach here.
        options.push_str(",userxattr");
    }
    // A node that is made in it is no device.
    let flags = libc::MS_NODEV;
    sys::mount(OsStr::new("overlay"), target, "overlay", flags, &options)
}

/// Mounts the overlay; where the container's root is now. In the private mount namespace only.
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

/// Mounts an overlay over `/` on `merged` in a scratch folder, with the layers `upper` and `work` beside it, which
/// exist. In a private mount namespace of the host's root only.
pub(super) fn mount_over_host(scratch: &Path) -> Result<(), LaunchError> {
    mount(&Layers::of(scratch), false, &mut Vec::new()).map(drop)
}

/// Folders that are mounted anew or bound later, whatever the root is.
const LATER: [&str; 3] = ["proc", "sys", "dev"];

/// Repeats the links and folders of `/` in an empty folder; the names of the folders.
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

/// Covers each folder of the skeleton by an overlay over the host's folder, or by that folder itself.
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

/// Whether anything is mounted below a folder.
fn has_mounts_below(mountinfo: &str, folder: &Path) -> bool {
    mountinfo.lines().any(|line| {
        Mount::parse(line).is_some_and(|mount| {
            let point = Path::new(&mount.point);
            point != Path::new("/") && point.starts_with(folder)
        })
    })
}

/// Makes `root` the root of this mount namespace and lets go of the old one.
pub(super) fn enter(root: &Path) -> Result<(), LaunchError> {
    std::env::set_current_dir(root).map_err(refused("enter the new root"))?;
    // Root and old root may be the same folder: the old root is then stacked on the new one and can be
    // unmounted through `.` (pivot_root(2), "pivot_root(".", ".")").
    sys::pivot_root_here().map_err(|error| {
        let mut refusal = refused("pivot into the new root")(error);
        refusal.hint =
            Some("on an initramfs there is no root to leave; use rootfs = \"host\"".into());
        refusal
    })?;
    sys::unmount(Path::new(".")).map_err(refused("let go of the old root"))?;
    std::env::set_current_dir("/").map_err(refused("enter the new root"))
}

/// Lets the scratch folder be removed by an ordinary user: overlayfs leaves a folder without permissions in
/// each work layer.
pub(super) fn open_work_layers(scratch: &Path) {
    let layers = Layers::of(scratch);
    let parts = fs::read_dir(&layers.parts).into_iter().flatten().flatten();
    let works = parts.map(|part| part.path().join("work"));
    for work in works.chain([layers.work]) {
        // It is there only after a mount; root can do without.
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
    fn a_mount_below_a_folder_is_seen_and_one_beside_it_is_not() {
        let mountinfo = "1 0 0:1 / / rw - ext4 x rw\n2 1 0:2 / /run\\040x/a rw - tmpfs x rw";
        assert!(has_mounts_below(mountinfo, Path::new("/run x")));
        assert!(!has_mounts_below(mountinfo, Path::new("/run")));
        assert!(!has_mounts_below(mountinfo, Path::new("/usr")));
    }
}
