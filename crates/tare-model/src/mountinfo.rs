//! Parses the kernel's mount table, `/proc/self/mountinfo`, and cgroup memberships, `/proc/<pid>/cgroup`.
//!
//! Agent and host read their files and pass the text in. Source: proc_pid_mountinfo(5).
//! Limits: does not see mounts of other namespaces, or what other mounts hide.

use std::path::Path;

/// The parts of a line that are needed; escapes are undone.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount<'a> {
    /// Device numbers.
    pub device: &'a str,
    /// Root of the mount in its file system.
    pub root: String,
    /// Mount point.
    pub point: String,
    /// Mount options.
    pub options: &'a str,
    /// File system type.
    pub fstype: &'a str,
    /// Mount source.
    pub source: String,
    /// File system options.
    pub super_options: &'a str,
}

impl<'a> Mount<'a> {
    /// Parses a line; `None` if it is not valid.
    pub fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(2);
        let mut right = right.split(' ');
        Some(Self {
            device: left.next()?,
            root: unescape(left.next()?),
            point: unescape(left.next()?),
            options: left.next()?,
            fstype: right.next()?,
            source: unescape(right.next()?),
            super_options: right.next()?,
        })
    }

    /// Parses every valid line of a table.
    pub fn all(table: &'a str) -> impl Iterator<Item = Self> {
        table.lines().filter_map(Self::parse)
    }

    /// Returns the first mount on or below this folder, whose path must have no links.
    pub fn within(folder: &Path, mounts: &'a str) -> Option<Self> {
        Self::all(mounts).find(|mount| Path::new(&mount.point).starts_with(folder))
    }

    /// Whether it is below this folder and not on it; the folder's path must have no links.
    pub fn is_below(&self, folder: &Path) -> bool {
        let point = Path::new(&self.point);
        point.starts_with(folder) && point != folder
    }

    /// Returns the mount that a path is on: the one with the longest mount point above it, the last of equal ones,
    /// because it hides the others.
    pub fn under(path: &Path, mounts: &'a str) -> Option<Self> {
        Self::all(mounts)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.len())
    }
}

/// Returns how cgroups are mounted: `v1`, `v2`, `hybrid` or `none`.
pub fn cgroup_layout(has_v1: bool, has_v2: bool) -> &'static str {
    match (has_v1, has_v2) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

/// A cgroup hierarchy and the path of a process in it: a line of `/proc/<pid>/cgroup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Its controllers, separated by commas, or `name=…`; empty for version 2.
    pub names: &'a str,
    /// The path.
    pub path: &'a str,
}

impl<'a> Membership<'a> {
    /// Parses every line of such a file.
    pub fn all(text: &'a str) -> impl Iterator<Item = Self> {
        text.lines().filter_map(|line| {
            // Only the first two colons separate: a path may contain more.
            let mut fields = line.splitn(3, ':').skip(1);
            Some(Self {
                names: fields.next()?,
                path: fields.next()?,
            })
        })
    }
}

/// Undoes the octal escapes of space, tab, line feed and backslash.
fn unescape(text: &str) -> String {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let escaped = (*first == b'\\')
            .then(|| tail.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(byte) = escaped {
            plain.push(byte);
            rest = &tail[3..];
        } else {
            plain.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard
30 21 0:30 / /mnt/a\\040b rw,nosuid shared:3 - tmpfs none rw,size=4k
31 21 0:31 / /mnt rw - overlay over rw,lowerdir=/x
32 21 0:32 /sub /mnt ro - xfs /dev/vdb rw
";

    #[test]
    fn path_belongs_to_longest_and_last_mount_above() {
        let kind = |path: &str| Mount::under(Path::new(path), MOUNTS).unwrap().fstype;
        assert_eq!(kind("/etc"), "ext4");
        assert_eq!(kind("/mnt/a b/c"), "tmpfs");
        assert_eq!(kind("/mnt/a"), "xfs");
        assert_eq!(kind("/mntx"), "ext4");
    }

    #[test]
    fn a_folder_holds_the_mounts_on_it_and_below_it() {
        let within = |path: &str| Mount::within(Path::new(path), MOUNTS).map(|mount| mount.point);
        assert_eq!(within("/mnt").as_deref(), Some("/mnt/a b"));
        assert_eq!(within("/mnt/a b").as_deref(), Some("/mnt/a b"));
        for none in ["/mnt/a", "/mnt/a b/c", "/etc"] {
            assert_eq!(within(none), None, "{none}");
        }
    }

    #[test]
    fn mount_on_folder_itself_is_not_below_it() {
        let below = |path: &str| {
            let mounts = Mount::all(MOUNTS).filter(|mount| mount.is_below(Path::new(path)));
            mounts.map(|mount| mount.point).collect::<Vec<_>>()
        };
        assert_eq!(below("/mnt"), ["/mnt/a b"]);
        assert!(below("/mnt/a b").is_empty());
        assert_eq!(below("/").len(), 3);
    }

    #[test]
    fn escapes_of_mountinfo_are_undone() {
        assert_eq!(unescape(r"/a\040b\134c"), r"/a b\c");
        assert_eq!(unescape(r"/a\04"), r"/a\04");
    }
}
