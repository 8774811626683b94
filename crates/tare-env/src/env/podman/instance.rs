//! A running container with an agent at the other end of the `podman` command's pipes.
//!
//! The command is a process between Tare and the container, and conmon is another: a frame passes through both, which
//! adds about 100 µs of wake-ups per hand-over, outside of every timed region. When the pipes end, the command's last
//! message explains why.
//! Limits: that message does not show that a container was killed for its memory.

use crate::env::prelude::*;

use super::super::channel::{Explaining, StreamChannel, farewell, wait_for_last_words};
use super::super::image::WORKDIR;
use super::caller::{Access, Caller, NONE};
use super::errors;
use super::facts::Engine;
use crate::cx::Cancel;

/// Time limit for the agent and its command to end after the goodbye.
const STOP_LIMIT: Duration = Duration::from_secs(2);

/// What was created for one instance; container and volume have the same name.
#[derive(Debug, Clone)]
pub(super) struct Belongings {
    /// Name of the container and of the volume.
    pub(super) name: String,
    pub(super) has_volume: bool,
    /// The host folder that is bind-mounted into it, if any.
    pub(super) folder: Option<PathBuf>,
}

impl Belongings {
    /// Removes everything that exists of it; continues after a failure and returns the first.
    pub(super) fn discard(&self, caller: Caller<'_>) -> Result<()> {
        let container = remove_containers(caller, &[&self.name]);
        let volume = if self.has_volume {
            remove_volumes(caller, &[&self.name])
        } else {
            Ok(())
        };
        let folder = self.folder.as_ref();
        let folder = folder.map_or(Ok(()), |folder| remove_folder(caller, folder));
        container.and(volume).and(folder)
    }
}

/// Returns where this machine's kernel accounts the resource use of a container that podman has set up and not
/// started.
pub(super) fn charged_to(engine: &Engine, container: &Value) -> Charged {
    let pid = container["State"]["Pid"].as_u64();
    let pid = pid.and_then(|pid| u32::try_from(pid).ok());
    match (pid, container["Id"].as_str()) {
        (Some(pid), Some(id)) if pid > 0 && !engine.is_remote => {
            match Charged::to_groups_of(pid, id) {
                // A container without its own cgroups, as for ordinary users if cgroups belong to root: its first
                // process is the agent, which waits for its children.
                Charged::Nowhere if container["HostConfig"]["Init"] != true => {
                    Charged::Process(pid)
                }
                found => found,
            }
        }
        _ => Charged::Nowhere,
    }
}

/// Returns the flag for a working directory on tmpfs.
pub(super) fn in_memory() -> String {
    format!("--mount=type=tmpfs,destination={WORKDIR},tmpfs-mode=1777")
}

/// Returns the path of the agent for containers into which nothing can be copied.
pub(super) fn agent_file(cx: &Context<'_>) -> PathBuf {
    cx.scratch.join("tare-agent-inside")
}

/// Removes containers with their processes; succeeds if they are gone.
pub(super) fn remove_containers(caller: Caller<'_>, names: &[&str]) -> Result<()> {
    let arguments = [&["rm", "--force", "--ignore", "--volumes"], names].concat();
    let removal = caller.call("remove the container", &arguments);
    removal.map(|_| ())
}

/// Removes volumes; succeeds if they are gone.
pub(super) fn remove_volumes(caller: Caller<'_>, names: &[&str]) -> Result<()> {
    let arguments = [&["volume", "rm", "--force"], names].concat();
    let removed = caller.has_done("remove the volume", &arguments, &[NONE]);
    removed.map(drop)
}

/// Whether a folder could not be removed only because other users own its files. Not if something is mounted in it:
/// that is not Tare's, and `rm` would descend into it.
fn is_of_others(error: &files::FileError, folder: &Path) -> bool {
    error.source.kind() == std::io::ErrorKind::PermissionDenied
        && files::mounted_in(folder).is_none()
}

/// Removes a bind-mounted folder; files of subordinate users are removed within their user namespace.
pub(super) fn remove_folder(caller: Caller<'_>, folder: &Path) -> Result<()> {
    let Err(error) = files::remove_folder(folder) else {
        return Ok(());
    };
    if caller.access.account.is_none() && is_of_others(&error, folder) {
        let path = folder.display().to_string();
        let arguments = ["unshare", "rm", "-rf", "--", path.as_str()];
        caller.call("remove the bound folder", &arguments)?;
        return Ok(files::remove_folder(folder)?);
    }
    Err(error.into())
}

/// The command's pipes and its process, whose last message explains why a pipe ended.
struct CommandChannel {
    stream: StreamChannel,
    running: Box<dyn Running>,
    ended: Option<String>,
}

impl CommandChannel {
    /// Sends a goodbye, if the channel is open, and ends the command.
    fn farewell(&mut self, cx: &Context<'_>) {
        if self.ended.is_none() && farewell(cx.clock, cx.cancel, &mut self.stream) {
            // The command then ends by itself, and with it the container.
            let _ = self.running.wait(STOP_LIMIT);
        }
        self.running.kill();
    }
}

impl Explaining for CommandChannel {
    fn stream(&mut self) -> &mut StreamChannel {
        &mut self.stream
    }

    fn explain(&mut self, error: ChannelError) -> ChannelError {
        let ChannelError::Closed(first) = error else {
            return error;
        };
        if let Some(words) = &self.ended {
            return ChannelError::Closed(words.clone());
        }
        let mut words = first;
        if let Some(status) = wait_for_last_words(self.running.as_mut(), STOP_LIMIT) {
            words.push_str("; the container exited with status ");
            words.push_str(&status.to_string());
        }
        let stderr = self.running.stderr_tail();
        let tail = errors::words(&stderr);
        if let Some((why, fix)) = errors::meaning(&stderr) {
            words = format!("{why} (podman says: {tail}); hint: {fix}");
        } else if !tail.is_empty() {
            words.push_str("; it said: ");
            words.push_str(&tail);
        }
        self.ended = Some(words.clone());
        ChannelError::Closed(words)
    }
}

pub(super) struct PodmanInstance {
    channel: CommandChannel,
    access: Access,
    belongings: Belongings,
    ends: Result<(IpAddr, IpAddr), Reason>,
    charged: Charged,
}

impl PodmanInstance {
    /// Takes over the command that is attached to the container. `ends` are the container's address, and this
    /// machine's as seen by the container; `charged` is where the host's kernel accounts its resource use.
    pub(super) fn new(
        mut running: Box<dyn Running>,
        cancel: &Cancel,
        access: Access,
        belongings: Belongings,
        ends: Result<(IpAddr, IpAddr), Reason>,
        charged: Charged,
    ) -> Result<Self, ChannelError> {
        let stream = StreamChannel::take_over(running.as_mut(), cancel)?;
        Ok(Self {
            channel: CommandChannel {
                stream,
                running,
                ended: None,
            },
            access,
            belongings,
            ends,
            charged,
        })
    }
}

impl Instance for PodmanInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.ends.clone().map(|(inside, _)| inside)
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.ends.clone().map(|(_, outside)| outside)
    }

    fn charged(&self) -> Charged {
        self.charged.clone()
    }

    fn workdir(&self) -> String {
        WORKDIR.to_owned()
    }

    /// Counts the image and what was written over it, without volumes.
    fn disk_bytes(&self, cx: &Context<'_>) -> Option<u64> {
        let name = self.belongings.name.as_str();
        let arguments = [
            "container",
            "inspect",
            "--size",
            "--format=json",
            "--",
            name,
        ];
        let what = "ask for the container's size";
        let answer = self.access.caller(cx).ask(what, &arguments).ok()?;
        let own = answer.get(0)?["SizeRootFs"].as_u64()?;
        let bound = self.belongings.folder.as_deref();
        Some(own + bound.map_or(0, files::taken_bytes))
    }

    fn written(&self, cx: &Context<'_>) -> BTreeSet<String> {
        let arguments = ["diff", "--format=json", "--", &self.belongings.name];
        let what = "ask for the container's changes";
        let answer = self.access.caller(cx).ask(what, &arguments);
        let answer = answer.unwrap_or_default();
        let of = |kind: &str| answer[kind].as_array().cloned().unwrap_or_default();
        let paths = ["added", "changed"].into_iter().flat_map(of);
        paths
            .filter_map(|path| path.as_str().map(str::to_owned))
            .collect()
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<()> {
        self.channel.farewell(cx);
        self.belongings.discard(self.access.caller(cx))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn only_foreign_files_are_removed_inside_not_mounts() {
        let folder = tempfile::tempdir().unwrap();
        let error = |source: Error| files::FileError {
            action: "remove",
            path: folder.path().join("x"),
            source,
        };
        let denied = error(ErrorKind::PermissionDenied.into());
        assert!(is_of_others(&denied, folder.path()));
        let mounted = error(Error::other("something is mounted there; unmount it first"));
        assert!(!is_of_others(&mounted, folder.path()));
        // The assertion holds whichever mount is found first.
        assert!(!is_of_others(&denied, Path::new("/proc")) || !cfg!(target_os = "linux"));
    }
}
