//! Inspects the machine on which the user's containers run, before anything of it is mounted in a copy: whether a
//! share exists, what is mounted below it, and which sockets control the machine.
//!
//! Limits: files of another machine cannot be inspected; what would need that is not mounted.

use crate::env::prelude::*;

use tare_model::mountinfo::Mount;

use super::share::{Share, shares};
use super::sockets::{places, sockets_below};
use crate::cx::files::{self, Talking};
use crate::cx::memory;

/// An engine's machine.
pub(crate) trait Machine {
    /// Whether the source of a share exists; otherwise the engine would create it and leave it behind.
    fn has(&self, share: &Share) -> bool;

    /// Returns another container's mounts, in the form of a request; `None` if unknown.
    fn mounts_of(&self, _container: &str) -> Option<Vec<Value>> {
        None
    }

    /// Whether it is this machine.
    fn is_here(&self) -> bool;

    /// Whether its engine can mount a folder read-only recursively.
    fn is_recursive(&self) -> bool {
        false
    }

    /// Whether something is mounted below a folder of this machine.
    fn has_mounts(&self, folder: &str) -> bool {
        files::has_mounts_below(Path::new(folder))
    }

    /// Whether something is mounted on the path from a folder of this machine to an entry below it.
    fn is_mounted_between(&self, folder: &str, below: &str) -> bool {
        let real = files::canonical(Path::new(folder)).unwrap_or_else(|_| PathBuf::from(folder));
        let path = real.join(below);
        let mut ways = path.ancestors().take_while(|way| *way != real);
        ways.any(files::is_mounted)
    }

    /// Returns the sockets below a folder of this machine that control the host, by relative path.
    fn sockets(&self, folder: &str) -> Vec<String> {
        sockets_below(Path::new(folder), &places())
    }

    /// Returns the path of a share's files on this machine; `None` if they are elsewhere or unknown.
    fn place(&self, share: &Share) -> Option<String> {
        share.is_folder().then(|| share.source.clone())
    }

    /// Returns the sockets and named pipes below a folder of this machine.
    fn talking(&self, folder: &str) -> Talking {
        files::talking_below(Path::new(folder))
    }

    /// Whether a share is itself a socket or a named pipe of this machine.
    fn is_socket(&self, share: &Share) -> bool {
        let path = Path::new(&share.source);
        self.is_here()
            && share.is_folder()
            && files::talks(&files::canonical(path).unwrap_or_default())
    }

    /// Returns this machine's free memory, MiB, as a limit for a process that would have none; at least `at_least`,
    /// bytes.
    fn free_memory(&self, at_least: i64) -> Option<i64> {
        let bytes = self.is_here().then(memory::available_bytes).flatten()?;
        Some(i64::try_from(bytes >> MIB).ok()?.max(at_least >> MIB))
    }

    /// Describes the file system of a share if it may be slower than a usual disk; `None` also if unknown.
    fn slow_file_system(&self, share: &Share) -> Option<String> {
        let place = self.place(share).filter(|_| self.is_here())?;
        let place = files::canonical(Path::new(&place)).ok()?;
        not_usual(&Mount::under(&place, &files::mounts())?)
    }

    /// Whether a device of this machine is a disk, or a folder with one in it.
    fn is_disk(&self, device: &str) -> bool {
        files::is_disk(Path::new(device))
    }
}

/// Types of file systems on local disks and in memory.
const USUAL: [&str; 11] = [
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "xfs", "zfs",
];

/// Describes a file system of any other type, or one that waits for the disk at every write.
fn not_usual(mount: &Mount<'_>) -> Option<String> {
    let mut options = mount
        .options
        .split(',')
        .chain(mount.super_options.split(','));
    let kind = printable(mount.fstype);
    if !USUAL.contains(&mount.fstype) {
        return Some(format!("a file system `{kind}`"));
    }
    let is_synchronous = options.any(|option| option == "sync");
    is_synchronous.then(|| format!("a file system `{kind}` that is mounted with `sync`"))
}

/// Bytes to MiB, as a shift.
const MIB: u32 = 20;

/// Whether a container with this mount writes to a path, above it or below it.
pub(crate) fn writes_to(source: &Path, may_write: bool, path: &Path) -> bool {
    let source = files::canonical(source).unwrap_or_else(|_| source.to_owned());
    may_write && (source.starts_with(path) || path.starts_with(&source))
}

/// Converts an engine's list of a container's mounts to the form of a request.
pub(crate) fn mounts_of(told: &Value) -> Option<Vec<Value>> {
    let mounts = told.as_array()?.iter();
    let one = |mount: &Value| {
        let source = ["Name", "Source"].iter().find_map(|name| {
            let text = mount[*name].as_str().filter(|text| !text.is_empty());
            text.filter(|_| *name == "Source" || mount["Type"] == "volume")
        });
        json!({"Type": mount["Type"], "Source": source, "Target": mount["Destination"],
               "ReadOnly": mount["RW"] != true})
    };
    Some(mounts.map(one).collect())
}

/// Returns the paths of the writable shares' files on the engine's machine.
pub(crate) fn writable(body: &Value, machine: &dyn Machine) -> Vec<PathBuf> {
    shares(body)
        .into_iter()
        .filter(|share| share.may_write && !share.source.is_empty() && machine.has(share))
        .filter_map(|share| machine.place(&share))
        .map(PathBuf::from)
        .map(|path| match files::canonical(&path) {
            Ok(real) if machine.is_here() => real,
            _ => path,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writable_mount_above_or_below_path_writes_to_it() {
        let of = |source: &str, may_write| {
            writes_to(Path::new(source), may_write, Path::new("/srv-of-none/db"))
        };
        assert!(of("/srv-of-none/db", true) && of("/srv-of-none", true));
        assert!(of("/srv-of-none/db/wal", true));
        assert!(!of("/srv-of-none/db", false) && !of("/srv-of-none/dbx", true));
    }

    #[test]
    fn inspected_mounts_become_request_mounts() {
        let shown = json!([
            {"Type": "bind", "Source": "/srv", "Destination": "/data", "RW": true, "Mode": "z"},
            {"Type": "volume", "Name": "db", "Source": "/var/lib/docker/volumes/db/_data", "Destination": "/db", "RW": false}
        ]);
        assert_eq!(
            mounts_of(&shown).unwrap(),
            [
                json!({"Type": "bind", "Source": "/srv", "Target": "/data", "ReadOnly": false}),
                json!({"Type": "volume", "Source": "db", "Target": "/db", "ReadOnly": true}),
            ]
        );
        assert_eq!(mounts_of(&Value::Null), None);
    }

    #[test]
    fn unusual_or_sync_file_system_is_named() {
        let on = |line: &str| not_usual(&Mount::parse(line).unwrap());
        assert_eq!(on("1 2 8:1 / / rw,noatime - ext4 /dev/a rw"), None);
        let fuse = on("1 2 0:9 / /m rw - fuse.sshfs host:/ rw").unwrap();
        assert!(fuse.contains("`fuse.sshfs`"), "{fuse}");
        let disk = on("1 2 8:1 / /m rw,sync - ext4 /dev/a rw").unwrap();
        assert!(disk.contains("`sync`"), "{disk}");
    }
}
