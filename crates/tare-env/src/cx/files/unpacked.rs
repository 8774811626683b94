//! Unpacks archives into a folder of Tare's.
//!
//! Limits: devices and pipes become empty files.

use std::fs::File;
use std::path::Path;

use super::restrict::own_uid;
use super::{Result, error};

/// Unpacks an archive into a folder, created if missing; no entry can escape from it. Entries keep their owners if
/// Tare is root.
pub fn unpack(archive: &Path, folder: &Path) -> Result<()> {
    let unpacked = File::open(archive).and_then(|file| {
        std::fs::create_dir_all(folder)?;
        let mut archive = tar::Archive::new(std::io::BufReader::new(file));
        archive.set_preserve_permissions(true);
        archive.set_preserve_ownerships(own_uid() == 0);
        archive.unpack(folder)
    });
    unpacked.map_err(error("unpack into", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_entries_stay_inside_target_folder() {
        let place = tempfile::tempdir().unwrap();
        let mut builder = tar::Builder::new(Vec::new());
        let header = |kind, size| {
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_mode(0o640);
            header.set_uid(own_uid().into());
            header.set_gid(0);
            header.set_mtime(1);
            header.set_size(size);
            header
        };
        let mut link = header(tar::EntryType::Symlink, 0);
        builder.append_link(&mut link, "out", place.path()).unwrap();
        for name in ["etc/name", "out/planted"] {
            let mut header = header(tar::EntryType::Regular, 4);
            builder
                .append_data(&mut header, name, &b"text"[..])
                .unwrap();
        }
        let archive = place.path().join("a.tar");
        std::fs::write(&archive, builder.into_inner().unwrap()).unwrap();
        let folder = place.path().join("folder");
        assert!(unpack(&archive, &folder).is_err());
        assert!(!place.path().join("planted").exists());
        assert_eq!(
            std::fs::read_to_string(folder.join("etc/name")).unwrap(),
            "text"
        );
    }
}
