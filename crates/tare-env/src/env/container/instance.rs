//! A started `container`: its channel, its addresses and its end.

use crate::env::prelude::*;

use tare_model::launch::{LaunchReport, Missing, Network};

use super::super::channel::ProcessChannel;
use super::super::siblings::Number;
use super::{Living, STOP_LIMIT, clean};

/// Why the launcher could not join an instance to its siblings, if that was wanted and failed.
pub(super) fn lost_place(report: &LaunchReport, is_wanted: bool) -> Option<Reason> {
    let mut missing = report.missing.iter().filter(|_| is_wanted);
    let missing = missing.find(|missing| missing.what == Missing::SIBLINGS)?;
    Some(no_path(escaped(&missing.why)))
}

/// A started `container`.
pub(super) struct ContainerInstance {
    pub(super) channel: ProcessChannel,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) workdir: String,
    pub(super) network: Network,
    /// The address where its siblings reach it.
    pub(super) place: Result<IpAddr, Reason>,
    /// The path inside of the folder that they share.
    pub(super) shared: Option<String>,
    pub(super) turn_page: Option<String>,
    pub(super) _number: Number,
    pub(super) report: LaunchReport,
    pub(super) living: Living,
}

impl ContainerInstance {
    fn address(
        &self,
        of_pair: impl Fn(&LaunchReport) -> Option<Ipv4Addr>,
    ) -> Result<IpAddr, Reason> {
        match self.network {
            Network::Host => Ok(Ipv4Addr::LOCALHOST.into()),
            Network::None => Err(no_path("network = \"none\"")),
            Network::Veth => of_pair(&self.report)
                .map(IpAddr::from)
                .ok_or_else(|| no_path("there is no veth pair without root")),
        }
    }

    /// Whether the launcher left no cgroups and devices on the host.
    fn is_gone(&self) -> bool {
        let groups = self.report.cgroups.iter().map(PathBuf::from);
        let devices = self
            .report
            .links
            .iter()
            .map(|name| Path::new("/sys/class/net").join(name));
        !groups.chain(devices).any(|path| path.exists())
    }
}

impl Instance for ContainerInstance {
    fn turn_page(&self) -> Option<String> {
        self.turn_page.clone()
    }

    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.address(|report| report.addresses.map(|pair| pair.arm))
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.address(|report| report.addresses.map(|pair| pair.host))
    }

    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        self.place.clone()
    }

    fn shared(&self) -> Result<String, Reason> {
        self.shared.clone().ok_or_else(not_shared)
    }

    fn workdir(&self) -> String {
        self.workdir.clone()
    }

    fn charged(&self) -> Charged {
        let groups = self.report.cgroups.iter().map(PathBuf::from).collect();
        match (Charged::of_groups(groups), self.report.init) {
            // Without cgroups it is accounted like a process of the host.
            (Charged::Nowhere, Some(pid)) => Charged::Process(pid),
            (charged, _) => charged,
        }
    }

    /// The upper layer with the agent in it; the lower layer is the host.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        Some(files::taken_bytes(&self.folder))
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<()> {
        // Fails if the agent has crashed, which is fine: its launcher is ending already.
        // If it does not end, the kernel kills the processes inside; the cgroups are removed below.
        let ended = self.channel.has_ended(STOP_LIMIT);
        let result = if ended && self.is_gone() {
            files::remove_folder(&self.folder).map_err(EnvError::from)
        } else {
            clean(cx, &self.name, &self.folder)
        };
        if result.is_ok() {
            locked(&self.living).remove(&(self.name.clone(), self.folder.clone()));
        }
        result
    }
}
