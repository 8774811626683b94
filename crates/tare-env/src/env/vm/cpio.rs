//! Writes an initial RAM file system in cpio's `newc` format, as the kernel unpacks it.
//!
//! Without a library, because the format is one header of hexadecimal digits per file, and because the bytes are then
//! always the same: numbers, owners and times are fixed.
//! Source: `Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel.

use tare_model::whole_count;

/// An archive under construction.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

/// File types in `st_mode`.
const FOLDER: u32 = 0o040_000;
const CHARACTER_DEVICE: u32 = 0o020_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

impl Archive {
    /// Appends a folder; its parents must have been appended before.
    pub(super) fn folder(&mut self, path: &str) {
        self.entry(path, FOLDER | 0o755, (0, 0), &[]);
    }

    /// Appends a character device.
    pub(super) fn device(&mut self, path: &str, major: u32, minor: u32) {
        self.entry(path, CHARACTER_DEVICE | 0o600, (major, minor), &[]);
    }

    /// Appends a file. The format has 32 bits for its length; packed files are shorter.
    pub(super) fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.entry(path, FILE | permissions, (0, 0), content);
    }

    /// Appends a symbolic link.
    pub(super) fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK | 0o777, (0, 0), target.as_bytes());
    }

    fn entry(&mut self, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        self.entries += 1;
        let number = self.entries;
        self.append(number, path, mode, device, content);
    }

    fn append(&mut self, number: u32, path: &str, mode: u32, device: (u32, u32), content: &[u8]) {
        let is_folder = mode & 0o170_000 == FOLDER;
        let fields = [
            number,
            mode,
            0, // owner
            0, // group
            if is_folder { 2 } else { 1 },
            0, // time of change
            whole_count(content.len()),
            0, // major and minor number of the disk
            0,
            device.0,
            device.1,
            whole_count(path.len() + 1),
            0, // checksum: not in this form
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Returns the archive's bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.append(0, "TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skip::skip;

    fn archive() -> Vec<u8> {
        let mut archive = Archive::default();
        archive.folder("dev");
        archive.device("dev/console", 5, 1);
        archive.file("init", 0o755, b"bytes");
        archive.finish()
    }

    /// Returns a field of the entry at `start`.
    fn field(bytes: &[u8], start: usize, place: usize) -> u32 {
        let at = start + 6 + place * 8;
        let digits = std::str::from_utf8(&bytes[at..at + 8]).unwrap();
        u32::from_str_radix(digits, 16).unwrap()
    }

    #[test]
    fn cpio_entry_parts_are_padded_to_four_bytes() {
        let bytes = archive();
        let mut names = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(at % 4, 0);
            assert_eq!(&bytes[at..at + 6], b"070701");
            let (size, name) = (
                field(&bytes, at, 6) as usize,
                field(&bytes, at, 11) as usize,
            );
            let text = &bytes[at + 110..at + 110 + name];
            assert_eq!(text.last(), Some(&0));
            let mode = field(&bytes, at, 1);
            names.push((
                String::from_utf8_lossy(&text[..name - 1]).into_owned(),
                mode,
            ));
            at = (at + 110 + name).next_multiple_of(4);
            if names.len() == 3 {
                assert_eq!(&bytes[at..at + size], b"bytes");
            }
            at = (at + size).next_multiple_of(4);
        }
        let expected = [
            ("dev", 0o040_755),
            ("dev/console", 0o020_600),
            ("init", 0o100_755),
            ("TRAILER!!!", 0),
        ];
        assert_eq!(
            names,
            expected
                .map(|(name, mode)| (name.to_owned(), mode))
                .to_vec()
        );
    }

    #[test]
    fn the_same_content_is_the_same_bytes() {
        assert_eq!(archive(), archive());
    }

    #[test]
    fn another_reader_of_the_form_finds_the_same_files() {
        use std::io::Write;
        use std::process::{Command, Stdio};
        let started = Command::new("cpio")
            .args(["--list", "--quiet"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            return skip("cpio", "`cpio` is not installed");
        };
        child.stdin.take().unwrap().write_all(&archive()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "dev\ndev/console\ninit\n"
        );
    }
}
