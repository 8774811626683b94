//! A container that a runtime has started: its channel, its addresses, its end.
//!
//! The agent is the container's first process and speaks through the runtime's own standard streams, which a
//! runtime in the foreground hands on. At the end the agent is told goodbye, the runtime removes what is its own,
//! and what is left is looked for: cgroups, state, the outer end of a veth pair.
//! What it cannot see: processes that a runtime keeps elsewhere, such as those of a service.

use crate::env::prelude::*;

use std::sync::OnceLock;

use tare_model::launch::{Network, PairAddresses};

use super::runtime::Container;
use super::spec::WORKDIR;
use crate::env::channel::ProcessChannel;
use crate::env::container;
use crate::env::text::and_cleanup;

/// How long a container may take to end after its agent was told to, its removal by the runtime included.
const STOP_LIMIT: Duration = Duration::from_secs(10);

/// Containers that were started and not stopped.
pub(super) type Living = Arc<Mutex<BTreeSet<Container>>>;

/// Removes everything that a container whose runtime has ended may have left.
pub(super) fn clean(cx: &Context<'_>, container: &Container) -> Result<(), EnvError> {
    let arguments = [
        "--run".to_owned(),
        cx.run.as_str().to_owned(),
        "--name".to_owned(),
        container.name.clone(),
    ];
    let swept = container::sweep(cx, arguments.to_vec());
    files::remove_folder(&container.folder)?;
    swept.map(drop)
}

/// A started container.
pub(super) struct OciInstance {
    pub(super) channel: ProcessChannel,
    pub(super) container: Container,
    pub(super) network: Network,
    pub(super) addresses: Option<PairAddresses>,
    /// Where the page for the turns is shown inside.
    pub(super) turn_page: Option<String>,
    pub(super) living: Living,
    /// Looked up once.
    pub(super) charged: OnceLock<Charged>,
}

impl OciInstance {
    fn address(&self, of_pair: impl Fn(&PairAddresses) -> Ipv4Addr) -> Result<IpAddr, Reason> {
        match (self.network, &self.addresses) {
            (Network::Host, _) => Ok(Ipv4Addr::LOCALHOST.into()),
            (_, Some(pair)) => Ok(of_pair(pair).into()),
            (_, None) => Err(Reason::NoPath(
                "the container's network has a loopback device only; set network = \"veth\"".into(),
            )),
        }
    }

    /// What is left on the host after the runtime has ended.
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

    /// The bundle, with the agent and the layer that is written to; the layer below, if there is one, is the host.
    fn disk_bytes(&self, _cx: &Context<'_>) -> Option<u64> {
        Some(files::taken_bytes(&self.container.folder))
    }

    fn stop(mut self: Box<Self>, cx: &Context<'_>) -> Result<(), EnvError> {
        // An agent that has crashed cannot be told, and need not be: its runtime is ending already.
        let _ = self.channel.stream.send(&Request::Bye);
        let ended = matches!(self.channel.running.wait(STOP_LIMIT), Ok(Some(_)));
        if !ended {
            // The kernel then kills everything in its namespaces; the cgroups are left to be removed here.
            self.channel.running.kill();
        }
        let left = self.left();
        let result = if ended && left.is_empty() {
            files::remove_folder(&self.container.folder).map_err(EnvError::from)
        } else {
            clean(cx, &self.container)
        };
        if result.is_ok() {
            self.living
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&self.container);
        }
        if ended && !left.is_empty() {
            let words = self.channel.running.stderr_tail();
            let left: Vec<String> = left.iter().map(|path| path.display().to_string()).collect();
            let first = EnvError::Refused {
                what: format!(
                    "the runtime left {} behind, which Tare removed",
                    left.join(", ").escape_debug()
                ),
                answer: words.trim().escape_debug().to_string(),
            };
            return Err(and_cleanup(first, result));
        }
        result
    }
}
