//! A started `container`: the way to its agent, where it is reached, and its end.

use crate::env::prelude::*;

use tare_model::launch::{LaunchReport, Missing, Network};

use super::super::channel::ProcessChannel;
use super::super::siblings::Number;
use super::{Living, STOP_LIMIT, clean, escaped};

/// Why an instance that was to be joined to its siblings is not, if the launcher says so.
pub(super) fn lost_place(report: &LaunchReport, is_wanted: bool) -> Option<Reason> {
    let mut missing = report.missing.iter().filter(|_| is_wanted);
    let missing = missing.find(|missing| missing.what == Missing::SIBLINGS)?;
    Some(Reason::NoPath(escaped(&missing.why)))
}

/// A started `container`.
pub(super) struct ContainerInstance {
    pub(super) channel: ProcessChannel,
    pub(super) name: String,
    pub(super) folder: PathBuf,
    pub(super) workdir: String,
    pub(super) network: Network,
    /// Where its siblings reach it.
    pub(super) place: Result<IpAddr, Reason>,
    /// The folder that they share, as it is called inside.
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
            Network::None => Err(Reason::NoPath("network = \"none\"".into())),
            Network::Veth => of_pair(&self.report)
                .map(IpAddr::from)
                .ok_or_else(|| Reason::NoPath("there is no veth pair without root".into())),
        }
    }

    /// Whether the launcher left nothing on the host, by looking.
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
        self.shared.clone().ok_or_else(|| {
            Reason::NoEnvironment("a shared folder was not asked for at its start".into())
        })
    }

    fn workdir(&self) -> String {
        self.workdir.clone()
    }

    fn charged(&self) -> Charged {
        let groups = self.report.cgroups.iter().map(PathBuf::from).collect();
        match (Charged::of_groups(groups), self.report.init) {
            // Without groups it is like a process of the host's.
            (Charged::Nowhere, Some(pid)) => Charged::Process(pid),
            (charged, _) => charged,
        }
    }

    /// The layer that is written to, with the agent in it; the layer below is the host.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        Some(files::taken_bytes(&self.folder))
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        // An agent that has crashed cannot be told, and need not be: its launcher is ending already.
        let _ = self.channel.stream.send(&Request::Bye);
        let ended = matches!(self.channel.running.wait(STOP_LIMIT), Ok(Some(_)));
        if !ended {
            // The kernel then kills what is inside; the cgroups are left to be removed here.
            self.channel.running.kill();
        }
        let result = if ended && self.is_gone() {
            files::remove_folder(&self.folder).map_err(EnvError::from)
        } else {
            clean(cx, &self.name, &self.folder)
        };
        if result.is_ok() {
            self.living
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&(self.name.clone(), self.folder.clone()));
        }
        result
    }
}
