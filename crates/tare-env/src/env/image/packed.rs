//! Shared by the images of `docker` and `podman` arms: the agent for an architecture, the packed root, the files
//! added to a foreign image, and image names.
//!
//! Both engines take the same archive, so arms of either hold the same bytes. Each driver does the import itself.

use crate::env::prelude::*;

use super::host_files::{self, HostEntry, HostFiles};
use super::{AGENT_PATH, ImageTar, WORKDIR};
pub(crate) use crate::cx::hex;
use crate::cx::{Agents, sha256};

/// The repository name of packed images.
pub(crate) const REPOSITORY: &str = "tare/agent";

/// Returns the architecture as a target triple names it, from an engine's name for it.
pub(crate) fn machine(architecture: &str) -> &str {
    match architecture {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    }
}

/// Returns the agent for containers of this architecture: a static Linux program.
pub(crate) fn agent_for<'a>(agents: &'a Agents, architecture: &str) -> Result<&'a AgentBinary> {
    let machine = machine(architecture);
    agents.linux(machine).ok_or_else(|| {
        EnvError::absent(
            format!(
                "there is no static Linux agent for {}, which the containers of this engine need",
                printable(machine)
            ),
            format!(
                "`cargo build -p tare-agent --profile agent --target {}-unknown-linux-musl`",
                printable(machine)
            ),
        )
    })
}

/// Checks that there is an agent for the architecture of a user's image.
///
/// # Errors
/// `Absent` if there is none.
pub(crate) fn check_processor(agents: &Agents, image: &str, architecture: &str) -> Result<()> {
    if agents.linux(machine(architecture)).is_some() {
        return Ok(());
    }
    let here = std::env::consts::ARCH;
    Err(EnvError::absent(
        format!(
            "the image `{}` is built for {}, and there is no agent for that processor here",
            printable(image),
            printable(architecture)
        ),
        format!(
            "take the image for this machine's processor ({here}), or build an agent for the other: `cargo build -p tare-agent --profile agent --target {}-unknown-linux-musl`",
            printable(machine(architecture))
        ),
    ))
}

/// The contents of a packed image in addition to the agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Contents {
    /// Files that the settings name: required.
    pub(crate) wanted: FileRequest,
    /// Files that the study's workloads run: packed if the host has them.
    pub(crate) provided: FileRequest,
    /// Length of the file for `copy-up`, bytes.
    pub(crate) lower_file: Option<u64>,
}

/// Builds the root of an image for this architecture and describes it in `facts`.
///
/// # Errors
/// No agent for the architecture, programs of another architecture, and files that [`host_files::find`] does not
/// find.
pub(crate) fn root(
    cx: &Context<'_>,
    architecture: &str,
    contents: &Contents,
    facts: &mut Facts,
) -> Result<ImageTar> {
    let agent = agent_for(cx.agents, architecture)?;
    let mut root = ImageTar::new().with_agent(&agent.bytes()?);
    let here = std::env::consts::ARCH;
    let is_foreign = machine(architecture) != here;
    if is_foreign && !contents.wanted.is_empty() {
        return Err(EnvError::absent(
            format!(
                "programs of this machine ({here}) do not run in containers for {}",
                printable(machine(architecture))
            ),
            "use an `image` with the programs in it",
        ));
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

/// Adds facts on the packed host files: the hash of each program, the number of files and their total size.
fn of_packed(facts: &mut Facts, found: &HostFiles) {
    let mut n_bytes = 0;
    for file in &found.files {
        let HostEntry::File { bytes, .. } = &file.entry else {
            continue;
        };
        n_bytes += bytes.len();
        for (program, path) in &found.programs {
            if *path == file.path {
                let name = fact::name_for(fact::PROGRAM_SHA256, &printable(program));
                facts.insert(name, sha256(bytes));
            }
        }
    }
    let n_files = found.files.len();
    facts.insert(fact::IMAGE_PACKED_FILES.into(), n_files.to_string());
    facts.insert(fact::IMAGE_PACKED_BYTES.into(), n_bytes.to_string());
}

/// Returns the archive to copy into a container of a foreign image.
pub(crate) fn agent_archive(agent: &[u8]) -> Vec<u8> {
    ImageTar::new()
        .with_folder(WORKDIR, 0o1777)
        .with_file(AGENT_PATH, 0o755, agent)
        .into_bytes()
}

/// Returns only the working directory, writable for all: for volumes and bind mounts, whose root belongs to root.
pub(crate) fn workdir_archive() -> Vec<u8> {
    ImageTar::new().with_folder(WORKDIR, 0o1777).into_bytes()
}

/// Returns the tag of an arm's packed image. Tags have at most 128 bytes, run and arm at most 64 each.
pub(crate) fn tag(run: &RunId, arm: &ArmId) -> String {
    let mut tag = format!("{run}.{arm}");
    if tag.len() > 128 {
        // Both have 64 bytes: 129 with the dot. Cutting the last byte could make two arms equal, so the end is
        // replaced by a digest of the whole.
        let digest = sha256(tag.as_bytes());
        tag.truncate(111);
        tag.push('.');
        tag.push_str(&digest[..16]);
    }
    tag
}

/// Returns the name of an arm's packed image.
pub(crate) fn packed_name(run: &RunId, arm: &ArmId) -> String {
    format!("{REPOSITORY}:{}", tag(run, arm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_tag_is_bounded_in_length_and_distinct() {
        let run = RunId::new("r".repeat(64)).unwrap();
        let first = tag(&run, &ArmId::new(format!("{}a", "x".repeat(63))).unwrap());
        let second = tag(&run, &ArmId::new(format!("{}b", "x".repeat(63))).unwrap());
        assert!(first.len() <= 128 && second.len() <= 128);
        assert_ne!(first, second);
    }

    #[test]
    fn image_without_matching_agent_names_arch_and_target() {
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
