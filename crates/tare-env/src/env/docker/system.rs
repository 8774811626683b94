//! Differences between Linux and Windows containers: the agent, its path, and the available settings.
//!
//! A Windows container is based on an image of Microsoft's, so none can be packed from an agent alone; the agent is
//! copied by the archive call into a container of the user's image before it starts. There are no single-file mounts,
//! no tmpfs, and no page that workers of two containers share.
//! Limits: whether an image matches the engine's Windows release, as process isolation requires, shows when the
//! container is started.

use crate::env::prelude::*;

use super::super::common;
use super::super::image::packed;
use super::super::image::{AGENT_PATH, ImageTar, WORKDIR};
use super::catalogue;
use super::settings::{Network, Settings, Storage};
use crate::cx::Agents;

/// The operating system of an engine's containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Linux,
    Windows,
}

/// The user who may write everywhere in a Microsoft image; an ordinary one has no folder to share.
const WINDOWS_USER: &str = "ContainerAdministrator";

/// Settings that only Linux containers have.
const LINUX_ONLY: [Setting; 16] = tare_model::rows! {
    catalogue::LIKE, catalogue::INSIDE, catalogue::LOWER_FILE, catalogue::SECCOMP, catalogue::APPARMOR,
    catalogue::TMPFS, catalogue::RUNTIME, catalogue::ENTRY, common::CPUSET, common::SHM, common::ULIMIT,
    common::CAP_ADD, common::CAP_DROP, common::PRIVILEGED, common::NO_NEW_PRIVILEGES, common::INIT,
};

impl System {
    /// From the engine's own report.
    pub(super) fn from_os_type(os_type: &str) -> Self {
        match os_type {
            "windows" => Self::Windows,
            _ => Self::Linux,
        }
    }

    /// Its name in platforms.
    fn as_str(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Windows => "windows",
        }
    }

    /// Path of the agent in a container.
    pub(super) fn agent_path(self) -> &'static str {
        match self {
            Self::Linux => AGENT_PATH,
            Self::Windows => r"C:\tare-agent.exe",
        }
    }

    /// Folder for the probes' files.
    pub(super) fn workdir(self) -> &'static str {
        match self {
            Self::Linux => WORKDIR,
            Self::Windows => r"C:\tare-work",
        }
    }

    /// Mount point of the volume that instances share.
    pub(super) fn shared(self) -> &'static str {
        match self {
            Self::Linux => "/tare-shared",
            Self::Windows => r"C:\tare-shared",
        }
    }

    /// The folder where an archive is unpacked.
    pub(super) fn root(self) -> &'static str {
        match self {
            Self::Linux => "/",
            Self::Windows => r"C:\",
        }
    }

    /// The engine's name of the network; Windows calls the default one `nat`.
    pub(super) fn network(self, network: &Network) -> String {
        match (self, network) {
            (Self::Windows, Network::Bridge | Network::Published(_)) => "nat".to_owned(),
            _ => network.mode(),
        }
    }

    /// The default user of processes, if it must be set.
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
        agents.windows(machine).ok_or_else(|| {
            EnvError::absent(
                format!(
                    "there is no Windows agent for {}, which the containers of this engine need",
                    printable(machine)
                ),
                "a `tare.exe` of `cargo xtask dist --target x86_64-pc-windows-gnu` carries one",
            )
        })
    }

    /// The archive to copy into a container of a foreign image.
    pub(super) fn archive(self, agent: &[u8]) -> Vec<u8> {
        match self {
            Self::Linux => packed::agent_archive(agent),
            Self::Windows => ImageTar::new()
                .with_folder("/tare-work", 0o777)
                .with_file("/tare-agent.exe", 0o755, agent)
                .into_bytes(),
        }
    }

    /// Rejects settings that the engine's system does not have.
    pub(super) fn check(self, settings: &Settings) -> Result<(), EnvError> {
        let absent = |why: String, fix: &str| Err(EnvError::absent(why, fix));
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
