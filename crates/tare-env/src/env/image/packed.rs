//! What the images of `docker` and `podman` arms have in common: the agent for a processor, the root that is
//! packed, what is laid into a foreign image, and the names that images bear.
//!
//! Both engines take the same archive, so an arm of one holds the same bytes as an arm of the other. How an
//! engine takes it in is the engine's own part.
//! What it cannot see: how an engine stores it.

use crate::env::prelude::*;

use sha2::{Digest, Sha256};

use super::host_files::{self, Found, HostEntry, Wanted};
use super::{AGENT_PATH, ImageTar, WORKDIR};
use crate::cx::Agents;

/// The repository of packed images.
pub(crate) const REPOSITORY: &str = "tare/agent";

/// The machine type by the name in a target triple, whichever name the engine gave it.
pub(crate) fn machine(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

/// The agent for containers of this architecture: a static Linux program.
pub(crate) fn agent_for<'a>(
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

/// Says of an image of the user's own whether there is an agent for its processor.
///
/// # Errors
/// There is none.
pub(crate) fn check_processor(
    agents: &Agents,
    image: &str,
    architecture: &str,
) -> Result<(), EnvError> {
    if agents.linux(machine(architecture)).is_some() {
        return Ok(());
    }
    let here = std::env::consts::ARCH;
    Err(EnvError::Absent {
        why: format!(
            "the image `{}` is built for {}, and there is no agent for that processor here",
            printable(image),
            printable(architecture)
        ),
        fix: Some(format!(
            "take the image for this machine's processor ({here}), or build an agent for the other: `cargo build -p tare-agent --profile agent --target {}-unknown-linux-musl`",
            printable(machine(architecture))
        )),
    })
}

/// What a packed image holds besides the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    /// What the settings name: it must be there.
    pub(crate) wanted: Wanted,
    /// What the study's workloads run: it is packed where the host has it.
    pub(crate) provided: Wanted,
    /// Length of the file for `copy-up`, bytes.
    pub(crate) lower_file: Option<u64>,
}

/// The root of an image for this architecture; what is in it is told in `facts`.
///
/// # Errors
/// No agent for it, programs of another processor, and what [`host_files::find`] does not find.
pub(crate) fn root(
    cx: &Context<'_>,
    architecture: &str,
    contents: &Contents,
    facts: &mut Facts,
) -> Result<ImageTar, EnvError> {
    let agent = agent_for(cx.agents, architecture)?;
    let mut root = ImageTar::new().with_agent(&agent.bytes()?);
    let here = std::env::consts::ARCH;
    let is_foreign = machine(architecture) != here;
    if is_foreign && !contents.wanted.is_empty() {
        return Err(EnvError::Absent {
            why: format!(
                "programs of this machine ({here}) do not run in containers for {}",
                printable(machine(architecture))
            ),
            fix: Some("use an `image` with the programs in it".into()),
        });
    }
    let mut wanted = contents.wanted.clone();
    if !is_foreign {
        wanted.add(&host_files::present(cx, &contents.provided));
    }
    if !wanted.is_empty() {
        let found = host_files::find(cx, &wanted)?;
        of_packed(facts, &found);
        root = root.with_program(&found.files);
    }
    if let Some(bytes) = contents.lower_file {
        root = root.with_lower_file(bytes);
    }
    facts.insert(fact::IMAGE_CONTENT_SHA256.into(), root.sha256());
    Ok(root)
}

/// Which of the host's programs were packed, with the hash of each, and how much in all.
fn of_packed(facts: &mut Facts, found: &Found) {
    let mut n_bytes = 0;
    for file in &found.files {
        let HostEntry::File { bytes, .. } = &file.entry else {
            continue;
        };
        n_bytes += bytes.len();
        for (program, path) in &found.programs {
            if *path == file.path {
                let name = fact::of(fact::PROGRAM_SHA256, &printable(program));
                facts.insert(name, hex(&Sha256::digest(bytes)));
            }
        }
    }
    let n_files = found.files.len();
    facts.insert(fact::IMAGE_PACKED_FILES.into(), n_files.to_string());
    facts.insert(fact::IMAGE_PACKED_BYTES.into(), n_bytes.to_string());
}

/// What is laid into a container of a foreign image.
pub(crate) fn agent_archive(agent: &[u8]) -> Vec<u8> {
    ImageTar::new()
        .with_folder(WORKDIR, 0o1777)
        .with_file(AGENT_PATH, 0o755, agent)
        .into_bytes()
}

/// The working directory alone, writable for all: for volumes and binds, whose root is root's own.
pub(crate) fn workdir_archive() -> Vec<u8> {
    ImageTar::new().with_folder(WORKDIR, 0o1777).into_bytes()
}

/// The tag of an arm's packed image. Tags have at most 128 bytes, run and arm at most 64 each.
pub(crate) fn tag(run: &RunId, arm: &ArmId) -> String {
    let mut tag = format!("{run}.{arm}");
    if tag.len() > 128 {
        // Both have 64 bytes. The last byte goes; two such arms that differ only there cannot be told apart,
        // so the end is replaced by a digest of the whole.
        let digest = Sha256::digest(tag.as_bytes());
        tag.truncate(111);
        tag.push('.');
        tag.push_str(&hex(&digest[..8]));
    }
    tag
}

/// The name of an arm's packed image.
pub(crate) fn packed_name(run: &RunId, arm: &ArmId) -> String {
    format!("{REPOSITORY}:{}", tag(run, arm))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits = bytes
        .iter()
        .flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)]);
    digits
        .map(|digit| char::from_digit(digit, 16).expect("four bits are one digit"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_never_exceeds_what_an_engine_takes_and_stays_distinct() {
        let run = RunId::new("r".repeat(64)).unwrap();
        let first = tag(&run, &ArmId::new(format!("{}a", "x".repeat(63))).unwrap());
        let second = tag(&run, &ArmId::new(format!("{}b", "x".repeat(63))).unwrap());
        assert!(first.len() <= 128 && second.len() <= 128);
        assert_ne!(first, second);
    }

    #[test]
    fn an_image_for_a_processor_without_an_agent_is_told_by_both_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent");
        let build = "<tare-agent-build 0.1.0-ab-o3-x86_64-unknown-linux-musl>";
        std::fs::write(&path, build).unwrap();
        let agents = Agents::only(&path).unwrap();
        assert!(check_processor(&agents, "web", "amd64").is_ok());
        let error = check_processor(&agents, "we\u{7}b", "s390x").unwrap_err();
        assert!(
            error.to_string().contains("`we\\u{7}b` is built for s390x"),
            "{error}"
        );
        assert!(error.hint().unwrap().contains("s390x-unknown-linux-musl"));
    }
}
