//! Finds processes of this machine that write below a path: through a file held open for writing, or through a mount
//! in a mount namespace other than Tare's, as containers of any engine have.
//!
//! Limits: other users' processes are not seen unless Tare is root; nor is a file that is opened later.

use std::path::{Path, PathBuf};

use tare_model::mountinfo::Mount;

use super::files;

/// The writers' names: program and process id.
pub fn writers_below(path: &Path) -> Vec<String> {
    let path = files::real(path);
    let table = files::mounts();
    let on_device = on_device(&path, &table);
    let namespace = std::fs::read_link("/proc/self/ns/mnt").ok();
    let mut found = Vec::new();
    for name in files::names(Path::new("/proc")).unwrap_or_default() {
        let Ok(number) = name.parse::<u32>() else {
            continue;
        };
        let process = Path::new("/proc").join(&name);
        if number == std::process::id() {
            continue;
        }
        let is_here = std::fs::read_link(process.join("ns/mnt")).ok() == namespace;
        let writes = if is_here {
            holds(&process, &path)
        } else {
            let theirs = text(&process.join("mountinfo"));
            on_device
                .as_ref()
                .is_some_and(|it| mounts((&theirs, &table), it))
        };
        if writes {
            let program = text(&process.join("comm"));
            found.push(format!("{} (process {number})", program.trim()));
        }
    }
    found
}

fn text(path: &Path) -> String {
    let bytes = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A path as its file system's device and the path from that file system's root.
fn on_device(path: &Path, table: &str) -> Option<(String, PathBuf)> {
    let mount = Mount::under(path, table)?;
    let below = path.strip_prefix(&mount.point).ok()?;
    Some((mount.device.to_owned(), Path::new(&mount.root).join(below)))
}

/// Whether a mount table shows the path, a parent or a child of it writably. A mount of a whole file system, or one
/// that Tare's table has too, is the host's view and does not count. Nor does a folder that a process with the host's
/// root has mounted over itself, as an engine does with its folder.
fn mounts((table, own): (&str, &str), (device, path): &(String, PathBuf)) -> bool {
    let has_our_root = root_of(table).is_some() && root_of(table) == root_of(own);
    let is_machines = |mount: &Mount<'_>| {
        let over_itself = || {
            on_device(Path::new(&mount.point), own).is_some_and(|(device, root)| {
                device == mount.device && root == Path::new(&mount.root)
            })
        };
        let is_same = |it: &Mount<'_>| {
            it.device == mount.device && it.root == mount.root && it.point == mount.point
        };
        Mount::all(own).any(|it| is_same(&it)) || (has_our_root && over_itself())
    };
    Mount::all(table).any(|mount| {
        let root = Path::new(&mount.root);
        let is_near = root.starts_with(path) || (path.starts_with(root) && root != Path::new("/"));
        let may_write = mount.options.split(',').any(|it| it == "rw");
        mount.device == device && is_near && may_write && !is_machines(&mount)
    })
}

/// The device and folder that a mount table has as its root.
fn root_of(table: &str) -> Option<(String, String)> {
    Mount::all(table)
        .filter(|mount| mount.point == "/")
        .last()
        .map(|mount| (mount.device.to_owned(), mount.root))
}

/// Whether a process holds a file below a path open for writing.
fn holds(process: &Path, path: &Path) -> bool {
    let names = files::names(&process.join("fd")).unwrap_or_default();
    names.iter().any(|name| {
        let file = std::fs::read_link(process.join("fd").join(name));
        file.is_ok_and(|file| file.starts_with(path))
            && is_writing(&text(&process.join("fdinfo").join(name)))
    })
}

/// Whether the kernel's flags of an open file, in octal, allow writing.
fn is_writing(info: &str) -> bool {
    /// `O_WRONLY | O_RDWR`.
    const WRITES: u32 = 0o3;
    let mut lines = info.lines();
    let flags = lines.find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & WRITES != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_namespace_mount_counts_if_writable_and_near() {
        let line = |root: &str, options: &str| {
            format!("9 8 254:0 {root} /data {options} - ext4 /dev/vda rw\n")
        };
        let place = ("254:0".to_owned(), PathBuf::from("/srv/db"));
        for (root, options, is) in [
            ("/srv/db", "rw,relatime", true),
            ("/srv", "rw", true),
            ("/srv/db/wal", "rw", true),
            ("/srv/db", "ro,relatime", false),
            ("/srv/dbx", "rw", false),
            ("/", "rw", false),
        ] {
            let table = line(root, options);
            assert_eq!(mounts((&table, ""), &place), is, "{root} {options}");
            assert!(!mounts((&table, &table), &place), "{root} {options}");
        }
        let other = ("254:1".to_owned(), PathBuf::from("/srv/db"));
        assert!(!mounts((&line("/srv/db", "rw"), ""), &other));
        let table = line("/", "rw").replace(" /data ", " / ");
        assert_eq!(on_device(Path::new("/srv/db"), &table), Some(place));
    }

    #[test]
    fn mount_of_a_folder_over_itself_is_the_machines() {
        let root = |device: &str| format!("1 0 {device} / / rw - ext4 /dev/vda rw\n");
        let bind = "9 8 254:0 /srv /srv rw - ext4 /dev/vda rw\n";
        let place = ("254:0".to_owned(), PathBuf::from("/srv/db"));
        let own = root("254:0");
        let engine = format!("{own}{bind}");
        assert!(!mounts((&engine, &own), &place));
        let container = format!("{}{bind}", root("0:50"));
        assert!(mounts((&container, &own), &place));
        let elsewhere = engine.replace(" /srv rw", " /mnt rw");
        assert!(mounts((&elsewhere, &own), &place));
    }

    #[test]
    fn only_files_open_for_writing_are_held() {
        for (flags, is) in [
            ("0100000", false),
            ("0100001", true),
            ("02", true),
            ("x", false),
        ] {
            assert_eq!(
                is_writing(&format!("pos:\t0\nflags:\t{flags}\n")),
                is,
                "{flags}"
            );
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn process_that_writes_below_a_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(writers_below(folder.path()), Vec::<String>::new());
        let file = std::fs::File::create(folder.path().join("held")).unwrap();
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .stdout(file)
            .spawn()
            .unwrap();
        let found = writers_below(folder.path());
        drop(child.stdin.take());
        child.wait().unwrap();
        let name = format!("(process {})", child.id());
        assert!(found.iter().any(|it| it.ends_with(&name)), "{found:?}");
    }
}
