//! Packs a root file system as a tar archive from the host's own files, so that no registry is needed.
//!
//! An environment needs no download if its root holds only the agent. A host tool packed with the libraries that it
//! loads is the same bytes inside as outside. Packing is pure: equal contents give equal bytes (times and owners are
//! fixed). The archive comes out in parts, so a large file is never whole in memory. [`host_files`] finds the host's
//! files.
//! Limits: files that a program opens by name at run time must be listed.
//! Not a driver; drivers use it.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tare_model::lower_file;

pub mod host_files;
pub(crate) mod packed;

use crate::cx::hex;
use host_files::{HostEntry, HostFile};

/// The agent's path inside.
pub const AGENT_PATH: &str = "/tare-agent";
/// The probes' working directory inside.
pub const WORKDIR: &str = "/tare-work";

/// `/etc/passwd` inside. Root's shell exists only if it was packed; a packed `sshd` starts commands with it and drops
/// its privileges to the account `sshd`.
pub(crate) const PASSWD: &str = "root:x:0:0:root:/root:/bin/sh\n\
     sshd:x:100:65534::/run/sshd:/tare-agent\n\
     nobody:x:65534:65534:nobody:/:/tare-agent\n";
/// `/etc/group` inside.
pub(crate) const GROUP: &str = "root:x:0:\nnogroup:x:65534:\n";
/// Directories that `sshd` needs before it drops its privileges.
pub(crate) const SSHD_FOLDERS: [&str; 2] = ["run", "run/sshd"];

/// A root file system to be packed. Paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImageTar {
    /// Sorted by path, so that a folder comes before its contents.
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Folder(u32),
    Link(String),
    File(u32, Vec<u8>),
    /// The file for `copy-up`, of this length.
    Lower(u64),
}

impl ImageTar {
    /// Returns an empty root.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the agent and what programs expect of a root.
    #[must_use]
    pub fn with_agent(self, agent: &[u8]) -> Self {
        self.with_folder("tmp", 0o1777)
            .with_folder("tare-work", 0o1777)
            .with_folder("etc", 0o755)
            .with_folder("root", 0o700)
            .with_folder("run", 0o755)
            .with_folder("run/sshd", 0o755)
            .with_file("tare-agent", 0o755, agent)
            .with_file("etc/passwd", 0o644, PASSWD.as_bytes())
            .with_file("etc/group", 0o644, GROUP.as_bytes())
    }

    /// Adds a folder.
    #[must_use]
    pub fn with_folder(mut self, path: &str, mode: u32) -> Self {
        self.put(path, Entry::Folder(mode));
        self
    }

    /// Adds a file.
    #[must_use]
    pub fn with_file(mut self, path: &str, mode: u32, bytes: &[u8]) -> Self {
        self.put(path, Entry::File(mode, bytes.to_owned()));
        self
    }

    /// Adds a program or other files of the host, with the folders and links that lead to them. Existing entries
    /// stay.
    #[must_use]
    pub fn with_program(mut self, files: &[HostFile]) -> Self {
        for file in files {
            let entry = match &file.entry {
                HostEntry::Folder { mode } => Entry::Folder(*mode),
                HostEntry::Link { target } => Entry::Link(target.clone()),
                HostEntry::File { mode, bytes } => Entry::File(*mode, bytes.clone()),
            };
            let path = file.path.trim_start_matches('/');
            if !path.is_empty() && !self.entries.contains_key(path) {
                self.put(path, entry);
            }
        }
        self
    }

    /// Adds the file for the workload `copy-up`, of this many bytes, in `WORKDIR`.
    #[must_use]
    pub fn with_lower_file(mut self, bytes: u64) -> Self {
        let path = format!("{WORKDIR}/{}", lower_file::LOWER_FILE);
        self.put(&path, Entry::Lower(bytes));
        self
    }

    fn put(&mut self, path: &str, entry: Entry) {
        let path = path.trim_matches('/').to_owned();
        self.entries.insert(path, entry);
    }

    /// Returns the SHA-256 of all contents in hexadecimal. Equal for equal images.
    pub fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        for (path, entry) in &self.entries {
            let (kind, mode, content) = match entry {
                Entry::Folder(mode) => ('d', *mode, &[][..]),
                Entry::Link(target) => ('l', 0, target.as_bytes()),
                Entry::File(mode, bytes) => ('f', *mode, bytes.as_slice()),
                // Its content is a function of its length.
                Entry::Lower(_) => ('p', 0, &[][..]),
            };
            let length = match entry {
                Entry::Lower(length) => *length,
                _ => content.len() as u64,
            };
            hash.update(format!("{kind} {mode:o} {length} {path}\0"));
            hash.update(content);
        }
        hex(&hash.finalize())
    }

    /// Returns the archive in parts.
    pub fn into_parts(self) -> impl Iterator<Item = Vec<u8>> + Send {
        self.entries
            .into_iter()
            .flat_map(|(path, entry)| parts_of(&path, entry))
            .chain(std::iter::once(vec![0; END_BYTES]))
    }

    /// Returns the whole archive.
    pub fn into_bytes(self) -> Vec<u8> {
        self.into_parts().flatten().collect()
    }
}

/// An archive ends with two blocks of zeroes.
const END_BYTES: usize = 1024;
/// Everything in an archive fills whole blocks of this size, bytes.
const TAR_BLOCK: u64 = 512;

/// Returns one entry with its header and padding, in parts.
fn parts_of(path: &str, entry: Entry) -> Box<dyn Iterator<Item = Vec<u8>> + Send> {
    const WHY: &str = "writing to memory cannot fail, and the paths are relative";
    let mut builder = tar::Builder::new(Vec::new());
    let mut append = |kind, mode, content: &[u8]| {
        let mut header = header(kind, mode, content.len() as u64);
        builder.append_data(&mut header, path, content).expect(WHY);
    };
    match entry {
        Entry::Folder(mode) => append(tar::EntryType::Directory, mode, &[]),
        Entry::File(mode, bytes) => append(tar::EntryType::Regular, mode, &bytes),
        Entry::Link(target) => {
            let mut header = header(tar::EntryType::Symlink, 0o777, 0);
            builder.append_link(&mut header, path, target).expect(WHY);
        }
        Entry::Lower(length) => {
            let mut header = header(tar::EntryType::Regular, 0o666, length);
            header.set_path(path).expect("its own path is short");
            header.set_cksum();
            let padding = (TAR_BLOCK - length % TAR_BLOCK) % TAR_BLOCK;
            let parts = std::iter::once(header.as_bytes().to_vec())
                .chain(lower_file::blocks(length))
                .chain(std::iter::once(vec![0; padding as usize]));
            return Box::new(parts);
        }
    }
    let mut bytes = builder.into_inner().expect(WHY);
    bytes.truncate(bytes.len() - END_BYTES);
    Box::new(std::iter::once(bytes))
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    // Fixed, so that equal contents give equal bytes.
    header.set_mtime(0);
    header
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::PathBuf;

    use super::*;

    fn host_file(path: &str, entry: HostEntry) -> HostFile {
        HostFile {
            path: path.into(),
            entry,
        }
    }

    /// Mode, link target and content of each entry.
    fn unpacked(bytes: &[u8]) -> BTreeMap<String, (u32, Option<PathBuf>, Vec<u8>)> {
        let mut archive = tar::Archive::new(bytes);
        let entries = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().to_str().unwrap().to_owned();
            let link = entry.link_name().unwrap().map(std::borrow::Cow::into_owned);
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (path, (entry.header().mode().unwrap(), link, content))
        });
        entries.collect()
    }

    #[test]
    fn image_root_has_agent_and_two_writable_folders() {
        let seen = unpacked(&ImageTar::new().with_agent(b"agent").into_bytes());
        assert_eq!(seen["tare-agent"].0, 0o755);
        assert_eq!(seen["tmp"].0, 0o1777);
        assert_eq!(seen["tare-work"].0, 0o1777);
        assert!(seen.contains_key("etc/passwd"));
    }

    #[test]
    fn image_hash_is_equal_only_for_equal_content() {
        let image = || ImageTar::new().with_agent(b"x");
        let link = HostEntry::Link {
            target: "usr/bin".into(),
        };
        assert_eq!(image().into_bytes(), image().into_bytes());
        assert_eq!(image().sha256(), image().sha256());
        let others = [
            ImageTar::new().with_agent(b"y"),
            image().with_lower_file(1),
            image().with_lower_file(2),
            image().with_program(&[host_file("bin", link)]),
            image().with_folder("bin", 0o755),
            image().with_file("bin", 0o755, b""),
        ];
        let mut hashes: Vec<String> = others.iter().map(ImageTar::sha256).collect();
        hashes.push(image().sha256());
        let n_all = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), n_all);
    }

    #[test]
    fn links_long_paths_and_lower_file_roundtrip_in_tar() {
        let long = format!("usr/lib/{}/file", "x".repeat(150));
        let target = "usr/bin".into();
        let image = ImageTar::new()
            .with_program(&[host_file("/bin", HostEntry::Link { target })])
            .with_file(&long, 0o644, b"content")
            .with_lower_file(100_000);
        let bytes = image.into_bytes();
        assert_eq!(bytes.len() % 512, 0);
        let seen = unpacked(&bytes);
        assert_eq!(seen["bin"].1.as_deref(), Some("usr/bin".as_ref()));
        assert_eq!(seen[&long].2, b"content");
        let lower = &seen["tare-work/tare-lower"].2;
        assert_eq!(lower.len(), 100_000);
        assert_eq!(lower[0], lower_file::PRISTINE);
    }

    #[test]
    fn host_files_do_not_replace_image_entries() {
        let folder = |path: &str, mode| host_file(path, HostEntry::Folder { mode });
        let host = [
            folder("/", 0o755),
            folder("/etc", 0o700),
            folder("/usr", 0o755),
        ];
        let image = ImageTar::new().with_agent(b"").with_program(&host);
        assert_eq!(image.entries["etc"], Entry::Folder(0o755));
        assert_eq!(image.entries["usr"], Entry::Folder(0o755));
        assert!(!image.entries.contains_key(""));
    }
}
