//! Hides the host's private files inside, by covering them with empty folders and empty files.
//!
//! The root inside is made of the host's files, and root inside can read what root can. So homes, keys, password
//! files and engines' sockets are covered before the explicit binds, which then go on top. If a cover cannot be
//! mounted, the launch is refused.
//! Folders are covered by small writable tmpfs mounts, because programs expect a home; files by the null device. A
//! cluster node keeps the account names of the password file, because an SSH server treats an account that is missing
//! there as locked.
//! Limits: does not find secrets in places that are not listed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tare_model::launch::{Bind, LaunchError, LaunchSpec, Rootfs};

use super::inner::{Make, Root, path_of};
use super::{refused, sys};

/// Returns the paths with symlinks resolved, without those below others. Paths that this process cannot find are
/// skipped: processes inside cannot find them either.
fn places(spec: &LaunchSpec) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = spec
        .hidden
        .iter()
        .filter_map(|path| fs::canonicalize(path).ok())
        .filter(|path| path.parent().is_some())
        .collect();
    found.sort_unstable();
    let mut places: Vec<PathBuf> = Vec::new();
    for path in found {
        // Sorted, so paths below a folder come right after it.
        if !places.iter().any(|above| path.starts_with(above)) {
            places.push(path);
        }
    }
    places
}

/// Returns what must be bound again on top of the covers if the root is the host's: the instance's folders and the
/// agent.
pub(super) fn own(spec: &LaunchSpec) -> Vec<Bind> {
    if spec.rootfs != Rootfs::Host || spec.hidden.is_empty() {
        return Vec::new();
    }
    let places = places(spec);
    let shared = spec.shared.as_ref().map(|folder| &folder.source);
    let of = |path: &String, read_only| {
        let is_covered = fs::canonicalize(path)
            .is_ok_and(|path| places.iter().any(|above| path.starts_with(above)));
        is_covered.then(|| Bind {
            source: path.clone(),
            target: path.clone(),
            read_only,
        })
    };
    [
        of(&super::rootfs::agent_in_scratch(spec), true),
        of(&spec.workdir, false),
    ]
    .into_iter()
    .chain(shared.map(|path| of(path, false)))
    .flatten()
    .collect()
}

/// Covers everything under `root`. Only for the private mount namespace.
pub(super) fn cover(spec: &LaunchSpec, root: &Root) -> Result<(), LaunchError> {
    let places = places(spec);
    if places.is_empty() {
        return Ok(());
    }
    let null = sys::open_path(Path::new("/dev/null")).map_err(refused("open /dev/null"))?;
    for place in places {
        let names = names_only(spec, &place);
        cover_one(root, &place, names.as_ref().unwrap_or(&null)).map_err(|error| {
            let mut refusal = refused(&format!("hide `{}`", place.display()))(error);
            refusal.hint = Some("private_paths = false shows it and all the others".into());
            refusal
        })?;
    }
    Ok(())
}

/// Returns a copy of /etc/shadow without passwords, in the instance's folder, for a cluster node; `None` for all
/// other paths, and if this process may not read the file.
fn names_only(spec: &LaunchSpec, place: &Path) -> Option<File> {
    if spec.shared.is_none() || place != Path::new("/etc/shadow") {
        return None;
    }
    let text = fs::read_to_string(place).ok()?;
    let mut names = String::new();
    for (name, rest) in text.lines().filter_map(|line| line.split_once(':')) {
        // As many fields as before, the first of them a password that nothing matches.
        names.push_str(name);
        names.push_str(":*");
        names.extend(std::iter::repeat_n(':', rest.matches(':').count()));
        names.push('\n');
    }
    let path = Path::new(&spec.scratch).join("names");
    fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&path)
        .and_then(|mut file| file.write_all(names.as_bytes()))
        .ok()?;
    sys::open_path(&path).ok()
}

fn cover_one(root: &Root, place: &Path, null: &File) -> io::Result<()> {
    let target = match root.find(place, Make::Nothing) {
        // On a separate file system, which is not visible inside.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        found => found?,
    };
    let found = target.metadata()?;
    let target = path_of(&target);
    if found.is_dir() {
        let flags = libc::MS_NOSUID | libc::MS_NODEV;
        let options = format!("mode={:o},size=256m", found.mode() & 0o7777);
        return sys::mount(OsStr::new("tmpfs"), &target, "tmpfs", flags, &options);
    }
    sys::mount(path_of(null).as_os_str(), &target, "", libc::MS_BIND, "")
}
