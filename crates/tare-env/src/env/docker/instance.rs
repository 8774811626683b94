//! A running container with an agent at the other end of a stream.

use crate::env::prelude::*;

use std::net::SocketAddr;
use std::sync::OnceLock;

use super::super::siblings::Number;
use super::super::{Published, PublishedAt};
use super::api::Api;
use super::channel::EngineChannel;
use super::endpoint::Endpoint;
use super::locality;
use super::request::{PUBLISHED_PORT, published_key};
use super::served::{self, Server};
use super::settings::Network;
use super::system::System;

/// Everything created for one instance, under one name, and removed together.
pub(super) struct Belongings {
    /// The name of the container and of the volume.
    pub(super) name: String,
    pub(super) has_volume: bool,
    /// The folder on this machine that is bind-mounted, or that contains the one that is.
    pub(super) folder: Option<PathBuf>,
    /// The file server that provides the folder, if it is not bound directly.
    pub(super) server: Option<Server>,
}

impl Belongings {
    /// Removes whatever exists of it; continues after a failure and returns the first one.
    pub(super) fn discard(&self, cx: &Context<'_>, api: &Api) -> Result<(), EnvError> {
        let container = api.remove_container(&self.name);
        let volume = if self.has_volume {
            api.remove_volume(&self.name)
        } else {
            Ok(())
        };
        let folder = self.folder.as_deref();
        let folder = folder.map_or(Ok(()), |folder| served::remove(cx.exec, folder));
        container.and(volume).and(folder)
    }

    /// The folder that is bind-mounted.
    pub(super) fn shown(&self) -> Option<PathBuf> {
        let folder = self.folder.as_deref()?;
        Some(match self.server {
            Some(_) => served::shown(folder),
            None => folder.to_owned(),
        })
    }
}

pub(super) struct DockerInstance {
    pub(super) channel: EngineChannel,
    pub(super) belongings: Belongings,
    pub(super) network: Network,
    pub(super) elsewhere: Option<String>,
    /// Its number among those of its arm.
    pub(super) number: Number,
    /// Mount point of the folder that all instances of the arm share, if any.
    pub(super) shared: Option<String>,
    /// Mount point of the page by which workers pass the turn, if it is mounted.
    pub(super) turn_page: Option<String>,
    /// The containers' operating system.
    pub(super) system: System,
    /// How long the container's own program may take to end after SIGTERM; `None` if that program is the agent.
    pub(super) patience: Option<Duration>,
    /// Determined once.
    pub(super) charged: OnceLock<Charged>,
}

impl DockerInstance {
    /// The addresses of the two ends: the container's, then this machine's as seen from the container.
    fn ends(&self) -> Result<(IpAddr, IpAddr), Reason> {
        let here = || match &self.elsewhere {
            Some(why) => Err(no_path(why.clone())),
            None => Ok(()),
        };
        let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let api = &self.channel.api;
        match &self.network {
            Network::None => Err(no_path(NO_NETWORK)),
            Network::Host => here().map(|()| (loopback, loopback)),
            Network::Bridge | Network::Published(_) => {
                here().and_then(|()| locality::bridge(api, &self.belongings.name))
            }
            Network::Container(name) => match locality::mode_of(api, name)?.as_str() {
                "host" => here().map(|()| (loopback, loopback)),
                "none" => Err(no_path(format!("the container `{name}` has no network"))),
                _ => here().and_then(|()| locality::bridge(api, name)),
            },
        }
    }
}

const NO_NETWORK: &str = "the arm has `network = \"none\"`";

impl Instance for DockerInstance {
    fn turn_page(&self) -> Option<String> {
        self.turn_page.clone()
    }

    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.ends().map(|(inside, _)| inside)
    }

    fn way_to(&self, port: u16) -> Result<SocketAddr, Reason> {
        // Its error says why there is no path at all.
        let own = self.address_from_host()?;
        let (api, name) = (&self.channel.api, &self.belongings.name);
        let published =
            locality::published(api, name, &format!("{port}/tcp"), PublishedAt::Loopback);
        let (address, port) = published.unwrap_or((own, port));
        Ok(SocketAddr::new(address, port))
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.ends().map(|(_, outside)| outside)
    }

    fn charged(&self) -> Charged {
        // Only Linux accounts by cgroups.
        if self.system == System::Windows {
            return Charged::Nowhere;
        }
        let look = || locality::charged(&self.channel.api, &self.belongings.name);
        self.charged.get_or_init(look).clone()
    }

    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        let own = locality::disk_bytes(&self.channel.api, &self.belongings.name)?;
        let bound = self.belongings.folder.as_deref();
        Some(own + bound.map_or(0, files::taken_bytes))
    }

    fn written(&self, _cx: &Context<'_>) -> BTreeSet<String> {
        locality::written(&self.channel.api, &self.belongings.name)
    }

    /// Two containers meet in the engine, so this works wherever the engine is.
    fn address_from_arm(&self) -> Result<IpAddr, Reason> {
        match &self.network {
            Network::None => Err(no_path(NO_NETWORK)),
            // All share one loopback, and each has its own address on it.
            Network::Host | Network::Container(_) => Ok(self.number.loopback().into()),
            Network::Bridge | Network::Published(_) => {
                locality::own(&self.channel.api, &self.belongings.name)
            }
        }
    }

    fn published(&self, at: PublishedAt) -> Result<Published, Reason> {
        let api = &self.channel.api;
        match &self.network {
            Network::Host => self.ends().map(|(address, _)| Published::Direct(address)),
            Network::Published(_)
                if matches!(api.endpoint, Endpoint::Http(_) | Endpoint::Relayed { .. }) =>
            {
                Err(no_path(
                    "the engine is reached over TCP and publishes on its own machine",
                ))
            }
            Network::Published(_) => {
                let key = published_key();
                let (address, port) = locality::published(api, &self.belongings.name, &key, at)?;
                Ok(Published::Mapped {
                    address,
                    port,
                    inside: PUBLISHED_PORT,
                })
            }
            _ => Err(no_path(
                "the arm publishes no port; that takes `network = \"published\"`",
            )),
        }
    }

    fn shared(&self) -> Result<String, Reason> {
        self.shared.clone().ok_or_else(|| {
            Reason::NoEnvironment("a shared folder was not asked for at its start".into())
        })
    }

    fn workdir(&self) -> String {
        self.system.workdir().to_owned()
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        self.channel.farewell(cx);
        let stopped = match self.patience {
            Some(patience) => self
                .channel
                .api
                .stop_container(&self.belongings.name, patience),
            None => Ok(()),
        };
        stopped.and(self.belongings.discard(cx, &self.channel.api))
    }
}
