//! A Linux system for a machine's disk: a folder with all of its files.
//!
//! Limits: whether its init starts is seen only in the machine.

use crate::env::prelude::*;

use super::settings::Settings;
use crate::cx::files::Kind;

/// Space for the file system's own tables and for what the system writes, bytes.
const SPARE_BYTES: u64 = 64 << 20;

/// Checks the folder that the settings name, if any: that it holds a system, and that its disk can hold it.
pub(super) fn check(settings: &Settings) -> Result<()> {
    let Some(folder) = &settings.system else {
        return Ok(());
    };
    let shown = folder.display().to_string().escape_debug().to_string();
    let absent = |why: String, fix: String| Err(EnvError::absent(why, fix));
    let init = files::kind(&folder.join("sbin/init"));
    if !matches!(init, Ok(Kind::File { .. } | Kind::Link { .. })) {
        return absent(
            format!("`{shown}` holds no Linux system: it has no /sbin/init"),
            format!("make one with `debootstrap --include=systemd-sysv stable {shown}`"),
        );
    }
    if files::has_mounts_below(folder) {
        return absent(
            format!("something is mounted below `{shown}` and would be copied too"),
            format!("unmount what `findmnt -R {shown}` lists"),
        );
    }
    let taken = files::taken_bytes(folder);
    let needed = taken + taken / 8 + SPARE_BYTES;
    if settings.disk_bytes < needed {
        return absent(
            format!(
                "the system in `{shown}` takes {} MiB, too much for a disk of {} MiB",
                taken >> 20,
                settings.disk_bytes >> 20
            ),
            format!("disk_size = \"{}m\" or more", (needed >> 20) + 1),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(folder: &Path, disk_size: &str) -> Result<(), (String, String)> {
        let params = Params::new()
            .with("disk", "virtio")
            .with("disk_size", disk_size)
            .with("system", folder.display().to_string());
        match check(&Settings::read(&params).unwrap()) {
            Err(EnvError::Absent { why, fix }) => Err((why, fix.unwrap_or_default())),
            Err(error) => panic!("{error}"),
            Ok(()) => Ok(()),
        }
    }

    #[test]
    fn folder_without_init_or_too_large_is_refused_with_hint() {
        let folder = tempfile::tempdir().unwrap();
        let (why, fix) = checked(folder.path(), "1g").unwrap_err();
        assert!(
            why.contains("no /sbin/init") && fix.contains("debootstrap"),
            "{why}"
        );
        files::create_folder(&folder.path().join("sbin")).unwrap();
        files::write(&folder.path().join("sbin/init"), &vec![1; 8 << 20]).unwrap();
        checked(folder.path(), "1g").unwrap();
        let (why, fix) = checked(folder.path(), "64m").unwrap_err();
        assert!(why.contains("takes 8 MiB"), "{why}");
        assert_eq!(fix, "disk_size = \"74m\" or more");
    }

    #[test]
    fn folder_with_mounts_is_not_copied() {
        // It has /proc mounted below, on every Linux system.
        let (why, _) = checked(Path::new("/"), "1g").unwrap_err();
        assert!(
            why.contains("mounted below") || why.contains("no /sbin/init"),
            "{why}"
        );
    }
}
