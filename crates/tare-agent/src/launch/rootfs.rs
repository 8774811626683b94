//! The root file system: an overlay over the host's own files, entered by `pivot_root`.
//!
//! The lower layer is the file system mounted on `/`, so the same programs and libraries run inside as outside,
//! through overlayfs. Upper and work layer lie in the instance's scratch folder, which must be on a disk that
//! overlayfs takes as an upper layer. Other file systems that the host has mounted below `/` are not part of
//! the lower layer: inside, their mount points are the bare folders beneath them.
//! The agent is copied into the upper layer, so that it is executed from the overlay like any program that an
//! image brings, and so that nothing done inside can change the host's copy.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tare_model::launch::{LaunchError, LaunchSpec, Rootfs};

use super::{refused, sys};

/// The agent's file inside an overlay.
pub(super) const AGENT_INSIDE: &str = "/tare-agent";

/// The folders of an instance in its scratch folder.
#[derive(Debug, Clone)]
pub(super) struct Layers {
    upper: PathBuf,
    work: PathBuf,
    merged: PathBuf,
}

impl Layers {
    fn of(scratch: &Path) -> Self {
        Self {
            upper: scratch.join("upper"),
            work: scratch.join("work"),
            merged: scratch.join("merged"),
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

/// Makes the folders and puts the agent and the working directory in place; on the host, before the start.
pub(super) fn prepare(spec: &LaunchSpec) -> Result<Option<Layers>, LaunchError> {
    if spec.rootfs == Rootfs::Host {
        fs::create_dir_all(&spec.workdir)
            .map_err(refused(&format!("make the folder `{}`", spec.workdir)))?;
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
    let layers = Layers::of(&scratch);
    let inside = layers.upper.join(spec.workdir.trim_start_matches('/'));
    let agent = layers.upper.join(AGENT_INSIDE.trim_start_matches('/'));
    let make = || -> io::Result<()> {
        for folder in [&layers.upper, &layers.work, &layers.merged] {
            fs::create_dir(folder)?;
        }
        // The upper layer's own folder becomes `/` inside.
        fs::set_permissions(&layers.upper, fs::Permissions::from_mode(0o755))?;
        fs::create_dir_all(&inside)?;
        fs::copy(&spec.agent, &agent)?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755))
    };
    make().map_err(refused(&format!(
        "fill the upper layer in `{}`",
        scratch.display()
    )))?;
    Ok(Some(layers))
}

/// Mounts the overlay; where the container's root is now. In the private mount namespace only.
pub(super) fn mount(layers: &Layers, has_user_namespace: bool) -> Result<PathBuf, LaunchError> {
    let mut options = format!(
        "lowerdir=/,upperdir={},workdir={}",
        layers.upper.display(),
        layers.work.display()
    );
    if has_user_namespace {
        // The trusted attributes that overlayfs uses otherwise are out of reach here.
        options.push_str(",userxattr");
    }
    sys::mount(
        OsStr::new("overlay"),
        &layers.merged,
        "overlay",
        0,
        &options,
    )
    .map_err(|error| {
        let mut refusal = refused("mount the overlay over /")(error);
        refusal.hint = Some(match refusal.errno {
            Some(libc::ENODEV) => "load the kernel module `overlay`, or use rootfs = \"host\"".into(),
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

/// Lets the scratch folder be removed by an ordinary user: overlayfs leaves a folder without permissions in the
/// work layer.
pub(super) fn open_work_layer(scratch: &Path) {
    let inner = Layers::of(scratch).work.join("work");
    // It is there only after a mount; root can do without.
    let _ = fs::set_permissions(inner, fs::Permissions::from_mode(0o700));
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
}
