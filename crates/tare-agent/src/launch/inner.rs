//! Resolves the container's paths in its root before it is entered, never in the host's root.
//!
//! A symlink inside may be absolute or climb with `..`, and bind mounts may contain foreign symlinks. Followed from
//! here they would lead to the host's files, and a missing target would be created there. So every step starts from
//! an open folder, symlinks are read and followed by hand, and `..` stops at the root. The result is held open, and
//! mounts go onto that.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use super::{openat, sys};

/// The number of symlinks that the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// What to create where a path does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    Nothing,
    Folder,
    /// An empty file, with the folders above it.
    File,
}

/// The container's root, seen from outside.
#[derive(Debug)]
pub(super) struct Root(PathBuf);

/// Returns a path to an open file or folder, for syscalls that take paths.
pub(super) fn path_of(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

impl Root {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.0
    }

    pub(super) fn is_host(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// Resolves a path inside and opens it with `O_PATH`: the topmost mount there.
    pub(super) fn find(&self, path: impl AsRef<Path>, make: Make) -> io::Result<File> {
        let mut way = vec![sys::open_path(&self.0)?];
        let mut left = steps(path.as_ref());
        let mut n_links = 0;
        while let Some(name) = left.pop() {
            if name == ".." {
                // `..` of the root is the root.
                if way.len() > 1 {
                    way.pop();
                }
                continue;
            }
            let Some(folder) = way.last() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let found = match openat::open_at(folder, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && make != Make::Nothing => {
                    if make == Make::File && left.is_empty() {
                        openat::make_file_at(folder, &name)?;
                    } else {
                        openat::make_folder_at(folder, &name)?;
                    }
                    openat::open_at(folder, &name)?
                }
                other => other?,
            };
            if !found.metadata()?.file_type().is_symlink() {
                way.push(found);
                continue;
            }
            n_links += 1;
            if n_links > MOST_LINKS {
                return Err(io::Error::from_raw_os_error(libc::ELOOP));
            }
            let target = openat::read_link(&found)?;
            if target.is_absolute() {
                way.truncate(1);
            }
            left.extend(steps(&target));
        }
        way.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Mounts onto an existing path inside.
    pub(super) fn mount(
        &self,
        path: impl AsRef<Path>,
        source: &OsStr,
        kind: &str,
        flags: libc::c_ulong,
        data: &str,
    ) -> io::Result<()> {
        let target = self.find(path, Make::Nothing)?;
        sys::mount(source, &path_of(&target), kind, flags, data)
    }

    /// Bind-mounts a file or folder, with the mounts below it, onto an existing path inside.
    pub(super) fn bind(&self, source: &OsStr, path: impl AsRef<Path>) -> io::Result<()> {
        self.mount(path, source, "", libc::MS_BIND | libc::MS_REC, "")
    }
}

/// Splits a path into components, in reverse order.
fn steps(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter_map(|step| match step {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    /// Makes `inside/`, the root, and `outside/`, which no path may reach.
    fn with_trees(name: &str, check: impl FnOnce(&Path, &Root)) {
        let place = std::env::temp_dir().join(format!("tare-{name}-{}", std::process::id()));
        for folder in ["outside", "inside/real/deep", "inside/volume"] {
            fs::create_dir_all(place.join(folder)).unwrap();
        }
        fs::write(place.join("inside/real/file"), "").unwrap();
        check(&place, &Root::new(place.join("inside")));
        fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn links_of_every_shape_end_inside_the_root() {
        with_trees("inner-links", |place, root| {
            let outside = place.join("outside");
            for (link, target, found) in [
                ("absolute", "/real", "real"),
                ("relative", "real/deep", "real/deep"),
                ("volume/up", "../real", "real"),
                ("climbing", "../../../../real/./file", "real/file"),
                ("chain", "/volume/up/deep", "real/deep"),
            ] {
                symlink(target, place.join("inside").join(link)).unwrap();
                let inode = |found: &fs::Metadata| (found.dev(), found.ino());
                let got = root.find(link, Make::Nothing).unwrap();
                let wanted = fs::metadata(place.join("inside").join(found)).unwrap();
                assert_eq!(inode(&got.metadata().unwrap()), inode(&wanted), "{link}");
            }
            symlink(&outside, place.join("inside/escape")).unwrap();
            let error = root.find("/escape", Make::Nothing).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::NotFound);
            symlink("loop", place.join("inside/loop")).unwrap();
            let error = root.find("/loop", Make::Folder).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
        });
    }

    #[test]
    fn missing_paths_are_created_inside_root() {
        with_trees("inner-made", |place, root| {
            let outside = place.join("outside");
            symlink(&outside, place.join("inside/volume/cache")).unwrap();
            symlink("/nowhere/yet", place.join("inside/dangling")).unwrap();
            root.find("/volume/cache/made", Make::Folder).unwrap();
            root.find("/dangling", Make::File).unwrap();
            root.find("/../../top", Make::Folder).unwrap();
            let inside = place.join("inside");
            let moved = inside.join(outside.strip_prefix("/").unwrap());
            assert!(moved.join("made").is_dir());
            assert!(inside.join("nowhere/yet").is_file());
            assert!(inside.join("top").is_dir());
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
            assert!(root.find("/real/file/below", Make::Folder).is_err());
        });
    }
}
