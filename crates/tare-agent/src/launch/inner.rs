//! The root of the inside before it is entered: its paths are resolved in it, never in the host's root.
//!
//! A link inside may be absolute or climb, and what is bound may hold links that somebody else made. Followed from
//! here they would lead to the host's files, and a missing target would be made there. So every step is taken from an
//! open folder, links are read and followed by hand, and `..` ends at the root; what was found is held open, and
//! mounts go onto that.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Component, Path, PathBuf};

use super::{at, sys};

/// As many links as the kernel follows in one path.
const MOST_LINKS: usize = 40;

/// What is made where a path does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Make {
    Nothing,
    Folder,
    /// An empty file, with the folders above it.
    File,
}

/// The root of the inside.
#[derive(Debug)]
pub(super) struct Root(PathBuf);

/// What leads to an open file or folder, also for calls that take paths.
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

    /// What a path of the inside is, held open with `O_PATH`: the topmost mount there.
    pub(super) fn find(&self, path: impl AsRef<Path>, make: Make) -> io::Result<File> {
        let mut way = vec![sys::open_path(&self.0)?];
        let mut left = steps(path.as_ref());
        let mut n_links = 0;
        while let Some(name) = left.pop() {
            if name == ".." {
                // Above the root is the root.
                if way.len() > 1 {
                    way.pop();
                }
                continue;
            }
            let Some(folder) = way.last() else {
                return Err(io::ErrorKind::NotFound.into());
            };
            let found = match at::open_at(folder, &name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && make != Make::Nothing => {
                    if make == Make::File && left.is_empty() {
                        at::make_file_at(folder, &name)?;
                    } else {
                        at::make_folder_at(folder, &name)?;
                    }
                    at::open_at(folder, &name)?
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
            let target = at::read_link(&found)?;
            if target.is_absolute() {
                way.truncate(1);
            }
            left.extend(steps(&target));
        }
        way.pop().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Mounts onto a path of the inside, which exists.
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

    /// Binds a file or folder, with what is mounted below it, to a path of the inside, which exists.
    pub(super) fn bind(&self, source: &OsStr, path: impl AsRef<Path>) -> io::Result<()> {
        self.mount(path, source, "", libc::MS_BIND | libc::MS_REC, "")
    }
}

/// The steps of a path, the first of them last.
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

    /// `inside/` is the root, `outside/` is what no path may reach.
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
    fn what_is_missing_is_made_inside_the_root() {
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
