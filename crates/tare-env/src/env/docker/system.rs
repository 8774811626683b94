//! What depends on the system that an engine's containers run: the agent, where it lies, what can be asked for.
//!
//! A Windows container begins with an image of Microsoft's, so none can be packed from an agent alone; the agent is
//! copied into a container of the user's image by the archive call, before it is started. There are no mounts of
//! single files, nothing in memory, and no page that workers of two containers share.
//! What it cannot see: whether an image fits the engine's own release, as process isolation demands; the engine says
//! so when the container is started.

use crate::env::prelude::*;

use super::super::common;
use super::super::image::packed;
use super::super::image::{AGENT_PATH, ImageTar, WORKDIR};
use super::catalogue;
use super::settings::{Network, Settings, Storage};
use crate::cx::Agents;

/// What the containers of an engine run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Linux,
    Windows,
}

/// The user who may write everywhere in an image of Microsoft's; an ordinary one has no folder of its own to share.
const WINDOWS_USER: &str = "ContainerAdministrator";

/// Settings that only Linux containers have.
const LINUX_ONLY: [Setting; 16] = tare_model::rows! {
    catalogue::LIKE, catalogue::INSIDE, catalogue::LOWER_FILE, catalogue::SECCOMP, catalogue::APPARMOR,
    catalogue::TMPFS, catalogue::RUNTIME, catalogue::ENTRY, common::CPUSET, common::SHM, common::ULIMIT,
    common::CAP_ADD, common::CAP_DROP, common::PRIVILEGED, common::NO_NEW_PRIVILEGES, common::INIT,
};

impl System {
    /// By the engine's own word.
    pub(super) fn of(os_type: &str) -> Self {
        match os_type {
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }

    /// The system as platforms name it.
    fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }

    /// Where the agent lies in a container.
    pub(super) fn agent_path(self) -> &'static str {
        match self {
            Self::Linux => AGENT_PATH,
            Self::Windows => r"C:\tare-agent.exe",
        }
    }

    /// Where the probes' files lie.
    pub(super) fn workdir(self) -> &'static str {
        match self {
            Self::Linux => WORKDIR,
            Self::Windows => r"C:\tare-work",
        }
    }

    /// Where the volume that instances share is mounted.
    pub(super) fn shared(self) -> &'static str {
        match self {
            Self::Linux => "/tare-shared",
            Self::Windows => r"C:\tare-shared",
        }
    }

    /// The folder at which an archive is unpacked.
    pub(super) fn root(self) -> &'static str {
        match self {
            Self::Linux => "/",
            Self::Windows => r"C:\",
        }
    }

    /// How the engine calls the network of a container that asks for none.
    pub(super) fn network(self, network: &Network) -> String {
        match (self, network) {
            (Self::Windows, Network::Bridge | Network::Published(_)) => "nat".to_owned(),
            _ => network.mode(),
        }
    }

    /// As whom processes run where nobody is named.
    pub(super) fn user(self) -> Option<String> {
        (self == Self::Windows).then(|| WINDOWS_USER.to_owned())
    }

    /// The agent for its containers.
    pub(super) fn agent<'a>(
        self,
        agents: &'a Agents,
        architecture: &str,
    ) -> Result<&'a AgentBinary, EnvError> {
        if self == Self::Linux {
            return packed::agent_for(agents, architecture);
        }
        let machine = packed::machine(architecture);
        agents.windows(machine).ok_or_else(|| EnvError::Absent {
            why: format!(
                "there is no Windows agent for {}, which the containers of this engine need",
                super::errors::printable(machine)
            ),
            fix: Some(
                "a `tare.exe` of `cargo xtask dist --target x86_64-pc-windows-gnu` carries one"
                    .to_owned(),
            ),
        })
    }

    /// What is laid into a container of a foreign image.
    pub(super) fn archive(self, agent: &[u8]) -> Vec<u8> {
        match self {
            Self::Linux => packed::agent_archive(agent),
            Self::Windows => ImageTar::new()
                .with_folder("/tare-work", 0o777)
                .with_file("/tare-agent.exe", 0o755, agent)
                .into_bytes(),
        }
    }

    /// Refuses what the engine's system has not.
    pub(super) fn check(self, settings: &Settings) -> Result<(), EnvError> {
        let absent = |why: String, fix: &str| {
            Err(EnvError::Absent {
                why,
                fix: Some(fix.to_owned()),
            })
        };
        let word = self.as_str();
        if let Some(platform) = &settings.platform
            && platform.split('/').next() != Some(word)
        {
            return absent(
                format!(
                    "the engine runs {} containers, and `{platform}` is none",
                    self.name()
                ),
                &format!("remove `platform`, or name one that begins with `{word}/`"),
            );
        }
        if self == Self::Linux {
            return match &settings.isolation {
                Some(_) => absent(
                    "`isolation` is for Windows containers, and the engine runs Linux ones"
                        .to_owned(),
                    "leave it out",
                ),
                None => Ok(()),
            };
        }
        let is_said = |row: &&Setting| settings.said.contains(&row.name);
        if let Some(row) = LINUX_ONLY.iter().find(is_said) {
            return absent(
                format!(
                    "`{}` is for Linux containers, and the engine runs Windows ones",
                    row.name
                ),
                "leave it out",
            );
        }
        if matches!(settings.storage, Storage::Served | Storage::Tmpfs) {
            return absent(
                "Windows containers have their files in the `layer`, a `volume` or a `bind`"
                    .to_owned(),
                "name one of those as `storage`",
            );
        }
        if settings.image.is_none() {
            return absent(
                "the engine runs Windows containers, which all begin with an image of Microsoft's; none can be packed \
                 from an agent alone"
                    .to_owned(),
                "name one that the engine has, `image = \"mcr.microsoft.com/windows/nanoserver:ltsc2022\"`",
            );
        }
        Ok(())
    }

    fn name(self) -> &'static str {
        match self {
            Self::Linux => "Linux",
            Self::Windows => "Windows",
        }
    }
}
