//! What engines' images are made of: the agent and a few directories, packed as a tar archive in memory.
//!
//! Equal agents give equal bytes, so arms of one run can share an image. Nothing here speaks to an engine.
//! What it cannot see is whether an engine unpacks the archive as it was packed; an agent that answers is
//! the proof.

use std::io::Write;

use tare_model::{ArmId, RunId};

use super::super::EnvError;
use super::super::text::printable;
use crate::cx::{AgentBinary, Agents};

/// Where the agent lies inside.
pub(super) const AGENT_PATH: &str = "/tare-agent";
/// The directory for the probes' files inside.
pub(super) const WORKDIR: &str = "/tare-work";
/// The repository of packed images.
pub(super) const REPOSITORY: &str = "tare/agent";

/// The machine type by the name in a target triple, whichever name the engine gave it.
pub(super) fn machine(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

/// The agent for containers of this architecture: a static Linux program.
pub(super) fn agent_for<'a>(
    agents: &'a Agents,
    architecture: &str,
) -> Result<&'a AgentBinary, EnvError> {
    let machine = machine(architecture);
    agents.linux(machine).ok_or_else(|| EnvError::Absent {
        why: format!(
            "there is no static Linux agent for {}, which the containers of this engine need",
            printable(machine)
        ),
        fix: Some(format!(
            "`cargo build -p tare-agent --profile agent --target {}-unknown-linux-musl`",
            printable(machine)
        )),
    })
}

fn entry(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_uid(0);
    header.set_gid(0);
    // A fixed time keeps equal contents equal bytes.
    header.set_mtime(0);
    header
}

/// Packs directories and files, in order, as a tar archive.
fn archive(directories: &[(&str, u32)], contents: &[(&str, u32, &[u8])]) -> Vec<u8> {
    const WHY: &str = "writing a short path to memory cannot fail";
    let mut archive = tar::Builder::new(Vec::new());
    for (path, mode) in directories {
        let mut header = entry(tar::EntryType::Directory, *mode, 0);
        archive
            .append_data(&mut header, path, std::io::empty())
            .expect(WHY);
    }
    for (path, mode, bytes) in contents {
        let mut header = entry(tar::EntryType::Regular, *mode, bytes.len() as u64);
        archive.append_data(&mut header, path, *bytes).expect(WHY);
    }
    let mut bytes = archive.into_inner().expect(WHY);
    bytes.flush().expect(WHY);
    bytes
}

/// A whole root: the agent and what programs expect of a root.
pub(super) fn root_archive(agent: &[u8]) -> Vec<u8> {
    archive(
        &[
            ("tmp", 0o1777),
            ("tare-work", 0o1777),
            ("etc", 0o755),
            ("root", 0o700),
        ],
        &[
            ("tare-agent", 0o755, agent),
            (
                "etc/passwd",
                0o644,
                b"root:x:0:0:root:/root:/tare-agent\nnobody:x:65534:65534:nobody:/:/tare-agent\n",
            ),
            ("etc/group", 0o644, b"root:x:0:\nnogroup:x:65534:\n"),
        ],
    )
}

/// What is laid into a container of a foreign image.
pub(super) fn agent_archive(agent: &[u8]) -> Vec<u8> {
    archive(&[("tare-work", 0o1777)], &[("tare-agent", 0o755, agent)])
}

/// The tag of an arm's packed image. Tags have at most 128 bytes, run and arm at most 64 each.
pub(super) fn tag(run: &RunId, arm: &ArmId) -> String {
    let mut tag = format!("{run}.{arm}");
    if tag.len() > 128 {
        // Both have 64 bytes. The last byte goes; two such arms that differ only there cannot be told apart,
        // so the end is replaced by a digest of the whole.
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(tag.as_bytes());
        tag.truncate(111);
        tag.push('.');
        tag.push_str(&hex(&digest[..8]));
    }
    tag
}

/// The name of an arm's packed image.
pub(super) fn packed_name(run: &RunId, arm: &ArmId) -> String {
    format!("{REPOSITORY}:{}", tag(run, arm))
}

/// Bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    let digits = bytes
        .iter()
        .flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)]);
    digits
        .map(|digit| char::from_digit(digit, 16).expect("four bits are one digit"))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn the_root_holds_the_agent_as_a_program_and_two_directories_that_all_may_write() {
        let bytes = root_archive(b"agent");
        let mut modes = HashMap::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
            let entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            modes.insert(
                path.trim_end_matches('/').to_owned(),
                entry.header().mode().unwrap(),
            );
        }
        assert_eq!(modes["tare-agent"], 0o755);
        assert_eq!(modes["tmp"], 0o1777);
        assert_eq!(modes["tare-work"], 0o1777);
        assert_eq!(bytes, root_archive(b"agent"), "equal contents, equal bytes");
    }

    #[test]
    fn a_tag_never_exceeds_what_the_engine_takes_and_stays_distinct() {
        let run = RunId::new("r".repeat(64)).unwrap();
        let first = tag(&run, &ArmId::new(format!("{}a", "x".repeat(63))).unwrap());
        let second = tag(&run, &ArmId::new(format!("{}b", "x".repeat(63))).unwrap());
        assert!(first.len() <= 128 && second.len() <= 128);
        assert_ne!(first, second);
    }
}
