//! A container that a runtime has started: its channel, addresses and shutdown.
//!
//! The agent is the container's first process and uses the runtime's standard streams, which a runtime in the
//! foreground passes through. At the end the agent gets a goodbye, the runtime removes its part, and leftovers are
//! looked for: cgroups, state, the outer end of a veth pair.
//! Limits: processes that a runtime keeps elsewhere, such as those of a service, are not seen.

use crate::env::prelude::*;

use std::sync::OnceLock;

use tare_model::launch::{Network, PairAddresses};

use super::runtime::Container;
use super::spec::WORKDIR;
use crate::env::channel::ProcessChannel;
use crate::env::container;

/// Time limit for a container to end after its agent's goodbye, including its removal by the runtime.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Containers that were started and not stopped yet.
pub(super) type Living = Arc<Mutex<BTreeSet<Container>>>;

/// Removes all leftovers of a container whose runtime has ended.
pub(super) fn clean(cx: &Context<'_>, container: &Container) -> Result<()> {
    let options = ["--run", cx.run.as_str(), "--name", &container.name];
    let swept = container::sweep(cx, &options);
    files::remove_folder(&container.folder)?;
    swept.map(drop)
}

/// A started container.
pub(super) struct OciInstance {
    pub(super) channel: ProcessChannel,
    pub(super) container: Container,
    pub(super) network: Network,
    pub(super) addresses: Option<PairAddresses>,
    /// Path of the turn page inside.
    pub(super) turn_page: Option<String>,
    pub(super) living: Living,
    /// Cached lookup.
    pub(super) charged: OnceLock<Charged>,
}

impl OciInstance {
    fn address(&self, of_pair: impl Fn(&PairAddresses) -> Ipv4Addr) -> Result<IpAddr, Reason> {
        match (self.network, &self.addresses) {
            (Network::Host, _) => Ok(Ipv4Addr::LOCALHOST.into()),
            (_, Some(pair)) => Ok(of_pair(pair).into()),
            (_, None) => Err(no_path(
                "the container's network has a loopback device only; set network = \"veth\"",
            )),
        }
    }

    /// Returns leftovers on the host after the runtime has ended.
    fn left(&self) -> Vec<PathBuf> {
        let state = self.container.state();
        let states = self.container.left_state();
        let mut left = self.container.cgroups();
        left.extend(states.iter().map(|name| state.join(name)));
        left
    }
}

impl Instance for OciInstance {
    fn channel(&mut self) -> &mut dyn Channel {
        &mut self.channel
    }

    fn address_from_host(&self) -> Result<IpAddr, Reason> {
        self.address(|pair| pair.arm)
    }

    fn host_address(&self) -> Result<IpAddr, Reason> {
        self.address(|pair| pair.host)
    }

    fn turn_page(&self) -> Option<String> {
        self.turn_page.clone()
    }

    fn workdir(&self) -> String {
        WORKDIR.to_owned()
    }

    fn charged(&self) -> Charged {
        let look = || Charged::of_groups(self.container.cgroups());
        self.charged.get_or_init(look).clone()
    }

    /// Counts the bundle, with the agent and the writable layer; a lower layer, if any, is the host.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        Some(files::taken_bytes(&self.container.folder))
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<()> {
        // A crashed agent cannot receive it and does not need it: its runtime is already ending.
        let ended = self.channel.has_ended(STOP_LIMIT);
        let left = self.left();
        let result = if ended && left.is_empty() {
            files::remove_folder(&self.container.folder).map_err(EnvError::from)
        } else {
            clean(cx, &self.container)
        };
        if result.is_ok() {
            locked(&self.living).remove(&self.container);
        }
        if ended && !left.is_empty() {
            let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
            let first = EnvError::refused(
                format!(
                    "the runtime left {} behind, which Tare removed",
                    left.join(", ").escape_debug()
                ),
                escaped(self.channel.running.stderr_tail()),
            );
            return Err(and_cleanup(first, result));
        }
        result
    }
}
