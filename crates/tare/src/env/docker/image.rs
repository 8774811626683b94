//! The image of a `docker` arm: packed from the agent alone, or the user's own with the agent copied in.
//!
//! Nothing is pulled and nothing is built: a tar archive made in memory is imported over the API, so an arm
//! needs no network, no registry and no userland. Every arm of a run that packs the same agent shares one
//! image under a tag of its own; the engine counts the tags and drops the image with the last one.
//! What cannot be seen from here is whether the agent runs on the engine's processor under emulation: an
//! agent of another architecture is refused.

use std::io::Write;
use std::time::Duration;

use bollard::models::ImageInspect;
use bollard::query_parameters::{
    CreateImageOptions, ListImagesOptions, RemoveImageOptions, TagImageOptions,
    UploadToContainerOptions,
};
use futures_util::StreamExt;
use tare_model::{ArmId, RunId};

use super::super::EnvError;
use super::api::{Api, Labelled, label_filter};
use super::errors::{is_conflict, is_missing, printable};
use crate::cx::{AgentBinary, CONTROL_LIMIT, files};

/// Where the agent lies inside.
pub(super) const AGENT_PATH: &str = "/tare-agent";
/// The directory for the probes' files inside.
pub(super) const WORKDIR: &str = "/tare-work";
/// The repository of packed images.
const REPOSITORY: &str = "tare/agent";
/// Unpacking a few megabytes onto a busy disk.
const IMPORT_LIMIT: Duration = Duration::from_secs(120);

/// The processor that a Linux program is built for, as the engine names it; or why it cannot run in a
/// container without a userland. Reads the ELF header (System V ABI, "Object Files").
pub(super) fn architecture_of(program: &[u8]) -> Result<&'static str, String> {
    let word = |at: usize| Some(u16::from_le_bytes(*program.get(at..)?.first_chunk()?));
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return Err("it is no 64-bit Linux program".into());
    }
    if has_interpreter(program) == Some(true) {
        return Err("it is linked dynamically, so it would need the C library inside".into());
    }
    match word(18) {
        Some(62) => Ok("amd64"),
        Some(183) => Ok("arm64"),
        Some(243) => Ok("riscv64"),
        _ => Err("it is built for a processor that Tare does not know".into()),
    }
}

/// Whether a program header asks for a dynamic loader (`PT_INTERP`).
fn has_interpreter(program: &[u8]) -> Option<bool> {
    let table = u64::from_le_bytes(*program.get(32..)?.first_chunk()?) as usize;
    let size = u16::from_le_bytes(*program.get(54..)?.first_chunk()?) as usize;
    let count = u16::from_le_bytes(*program.get(56..)?.first_chunk()?) as usize;
    for index in 0..count {
        let at = table.checked_add(index.checked_mul(size)?)?;
        if u32::from_le_bytes(*program.get(at..)?.first_chunk()?) == 3 {
            return Some(true);
        }
    }
    Some(false)
}

/// The architecture by the name that Go and the engine use for it, whatever name it came under.
pub(super) fn engine_name(architecture: &str) -> &str {
    match architecture {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Reads the agent and checks that it can run on an engine of `architecture`.
pub(super) fn read_agent(agent: &AgentBinary, architecture: &str) -> Result<Vec<u8>, EnvError> {
    let program = files::read(&agent.path)?;
    let absent = |why: String| EnvError::Absent {
        why: format!(
            "the agent `{}` cannot run in a container: {why}",
            agent.path.display()
        ),
        fix: Some(format!(
            "build it for the engine: `cargo build -p tare-agent --profile agent --target \
             {}-unknown-linux-musl`",
            match engine_name(architecture) {
                "arm64" => "aarch64",
                _ => "x86_64",
            }
        )),
    };
    let built_for = architecture_of(&program).map_err(absent)?;
    if built_for == engine_name(architecture) {
        Ok(program)
    } else {
        Err(absent(format!(
            "it is built for {built_for}, and the engine's machine is {}",
            printable(architecture)
        )))
    }
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

/// The working directory alone, writable for all: for volumes and binds, whose root is root's own.
pub(super) fn workdir_archive() -> Vec<u8> {
    archive(&[("tare-work", 0o1777)], &[])
}

/// The tag of an arm's packed image. Tags have at most 128 bytes, run and arm at most 64 each.
fn tag(run: &RunId, arm: &ArmId) -> String {
    let mut tag = format!("{run}.{arm}");
    if tag.len() > 128 {
        // Both have 64 bytes. The last byte goes; two such arms that differ only there cannot be told apart,
        // so the end is replaced by a digest of the whole.
        use sha2::{Digest, Sha256};
        let digest = Sha256::digest(tag.as_bytes());
        tag.truncate(111);
        tag.push('.');
        tag.push_str(&super::hex(&digest[..8]));
    }
    tag
}

/// The name of an arm's packed image.
pub(super) fn packed_name(run: &RunId, arm: &ArmId) -> String {
    format!("{REPOSITORY}:{}", tag(run, arm))
}

/// Makes sure that the arm's packed image exists: imports it, or tags the one of another arm of this run.
pub(super) fn ensure_packed(
    api: &Api,
    run: &RunId,
    arm: &ArmId,
    owner: &str,
    agent: &AgentBinary,
    architecture: &str,
) -> Result<ImageInspect, EnvError> {
    let name = packed_name(run, arm);
    let program = read_agent(agent, architecture)?;
    let labels = [
        "tare=1".to_owned(),
        format!("tare.run={run}"),
        format!("tare.agent={}", agent.sha256),
    ];
    let options = ListImagesOptions {
        filters: Some(label_filter(&labels)),
        ..Default::default()
    };
    let present = api.call(
        "list images",
        CONTROL_LIMIT,
        api.client.list_images(Some(options)),
    )?;
    if let Some(image) = present.first() {
        let options = TagImageOptions {
            repo: Some(REPOSITORY.into()),
            tag: Some(tag(run, arm)),
        };
        api.call(
            "tag the image",
            CONTROL_LIMIT,
            api.client.tag_image(&image.id, Some(options)),
        )?;
        return inspect(api, &name);
    }
    let mut changes: Vec<String> = labels
        .iter()
        .filter_map(|label| label.split_once('='))
        .map(|(key, value)| format!("LABEL {key}=\"{value}\""))
        .collect();
    changes.push(format!("LABEL {}=\"{owner}\"", super::owner::LABEL));
    changes.push(format!("ENTRYPOINT [\"{AGENT_PATH}\"]"));
    let options = CreateImageOptions {
        from_src: Some("-".into()),
        repo: Some(REPOSITORY.into()),
        tag: Some(tag(run, arm)),
        message: Some("packed by tare from its agent".into()),
        changes,
        platform: format!("linux/{}", engine_name(architecture)),
        ..Default::default()
    };
    let body = bollard::body_full(root_archive(&program).into());
    api.call("import the packed image", IMPORT_LIMIT, async {
        let mut progress = Box::pin(api.client.create_image(Some(options), Some(body), None));
        while let Some(step) = progress.next().await {
            step?;
        }
        Ok(())
    })?;
    inspect(api, &name)
}

/// Describes a local image; its absence is an error with the command that would fetch it.
pub(super) fn inspect(api: &Api, name: &str) -> Result<ImageInspect, EnvError> {
    api.attempt(CONTROL_LIMIT, api.client.inspect_image(name))
        .map_err(|error| {
            if is_missing(&error) {
                EnvError::Absent {
                    why: format!(
                        "the image `{name}` is not on this engine, and Tare pulls nothing"
                    ),
                    fix: Some(format!("`docker pull {name}`")),
                }
            } else {
                api.explain("inspect the image", CONTROL_LIMIT, &error)
            }
        })
}

/// Unpacks an archive at the root of a container that has not been started.
pub(super) fn upload(api: &Api, container: &str, archive: Vec<u8>) -> Result<(), EnvError> {
    let options = UploadToContainerOptions {
        path: "/".into(),
        ..Default::default()
    };
    api.call(
        "copy the agent into the container",
        IMPORT_LIMIT,
        api.client.upload_to_container(
            container,
            Some(options),
            bollard::body_full(archive.into()),
        ),
    )
}

/// Takes the arm's tag away, and with the last tag the image. Fine if it is gone; one that another
/// container still uses stays for that one's owner.
pub(super) fn remove(api: &Api, name: &str) -> Result<bool, EnvError> {
    let removal = api.attempt(
        CONTROL_LIMIT,
        api.client
            .remove_image(name, None::<RemoveImageOptions>, None),
    );
    match removal {
        Ok(_) => Ok(true),
        Err(error) if is_missing(&error) || is_conflict(&error) => Ok(false),
        Err(error) => Err(api.explain("remove the packed image", CONTROL_LIMIT, &error)),
    }
}

/// The packed images whose labels match, once for every tag.
pub(super) fn packed(api: &Api, labels: &[String]) -> Result<Vec<Labelled>, EnvError> {
    let options = ListImagesOptions {
        filters: Some(label_filter(labels)),
        ..Default::default()
    };
    let found = api.call(
        "list images",
        CONTROL_LIMIT,
        api.client.list_images(Some(options)),
    )?;
    let mut images = Vec::new();
    for image in found {
        let is_tag = |tag: &String| tag != "<none>:<none>";
        let mut keys: Vec<String> = image.repo_tags.into_iter().filter(is_tag).collect();
        if keys.is_empty() {
            keys.push(image.id);
        }
        images.extend(keys.into_iter().map(|key| Labelled {
            name: printable(&key),
            key,
            labels: image.labels.clone(),
        }));
    }
    Ok(images)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn elf(machine: u16, segments: &[u32]) -> Vec<u8> {
        let mut bytes = vec![0u8; 64];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&(segments.len() as u16).to_le_bytes());
        for segment in segments {
            let mut header = vec![0u8; 56];
            header[..4].copy_from_slice(&segment.to_le_bytes());
            bytes.extend(header);
        }
        bytes
    }

    #[test]
    fn an_agent_that_cannot_run_inside_is_recognised_before_it_is_tried() {
        assert_eq!(architecture_of(&elf(62, &[1, 1])), Ok("amd64"));
        assert_eq!(architecture_of(&elf(183, &[1])), Ok("arm64"));
        assert!(
            architecture_of(&elf(62, &[1, 3]))
                .unwrap_err()
                .contains("dynamically")
        );
        assert!(
            architecture_of(&elf(8, &[1]))
                .unwrap_err()
                .contains("processor")
        );
        assert!(architecture_of(b"MZ\x90").unwrap_err().contains("Linux"));
        assert!(architecture_of(b"\x7fELF\x02\x01").is_err());
        // A header that points outside of the file must not be followed.
        let mut broken = elf(62, &[1]);
        broken[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        assert_eq!(architecture_of(&broken), Ok("amd64"));
    }

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
