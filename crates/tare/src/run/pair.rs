//! Runs a trial with a server and a client; one of them may be on the host or in a second instance of the arm.
//!
//! The client measures; its raw output is the trial's, and so is its time. The server starts first, reports its port,
//! and is ended after the client, whatever the client's outcome.
//! Limits: whether the address given by the environment is reachable shows only when the client fails.

use std::net::IpAddr;

use tare_model::{End, Failure, Outcome, Path, ProbeCall, Reason, Recipe};

use super::exchange::{Cancelled, Dispatcher, Measured, NoReply, WorkerReply, about, with_grace};
use super::testbed::Arm;
use crate::env::{Charged, Instance, Published, PublishedAt};
use crate::service::request_plan::CLIENT;

/// Set in the number of a pair's server, so that it differs from its client's in the same agent.
pub(super) const SERVER: u64 = 1 << 32;

/// Whether this process is the client of a recipe.
pub(super) fn is_service(recipe: &Recipe) -> bool {
    matches!(recipe, Recipe::Pair { client, .. } if client.name == CLIENT)
}

impl Dispatcher<'_> {
    /// Runs a server and a client. The client's raw output is the trial's.
    pub(super) fn pair(
        &self,
        number: u64,
        path: Path,
        (server, client): (&ProbeCall, &ProbeCall),
        instance: &mut dyn Instance,
        others: Others<'_>,
    ) -> Result<Measured, Cancelled> {
        let (route, mut ends) = match route_and_ends(path, instance, others) {
            Ok(found) => found,
            Err(reason) => return Ok(self.nothing(Outcome::Unavailable(reason), false)),
        };
        let server_number = number | SERVER;
        let mut measured = self.nothing(Outcome::Failed(Failure::Lost(String::new())), false);
        // Where the server's resource use is counted without its client's.
        let charged = match path {
            Path::Loopback => Charged::Nowhere,
            _ => ends[0].charged(),
        };
        // The server outlives the client by design, so its limit has room for both.
        let limit_ns = with_grace(self.limit_ns.saturating_mul(2));
        let call = route.server_call(server);
        let request = self.request(server_number, &call, limit_ns, ends[0].workdir());
        let served_ns = self.cx.clock.now_ns();
        let listening = self.listen(
            ends[0].channel(),
            (server_number, &request),
            "server",
            &mut Vec::new(),
        );
        let port = match listening {
            Ok(port) => port,
            Err(ended) => {
                let (outcome, is_lost) = self.settle(ended)?;
                measured.outcome = outcome;
                measured.note_lost(path.server(), is_lost);
                return Ok(measured);
            }
        };
        let call = route.client_call(client, port);
        let caller = ends.len() - 1;
        let request = self.request(number, &call, self.limit_ns, ends[caller].workdir());
        let mut strays = Vec::new();
        let ended;
        (ended, measured.started_unix_ns, measured.elapsed_ns) = self.timed(|| {
            if call.name == CLIENT {
                let asked = self.ask_alone(&call, served_ns, &charged);
                return asked.map_err(|Cancelled| NoReply::Cancelled);
            }
            self.round(ends[caller].channel(), number, &request, &mut strays)
        });
        let is_cancelled = matches!(ended, Err(NoReply::Cancelled));
        // The server may end before its client. Its last reply has then arrived already if both share a channel;
        // otherwise it is the next reply on the server's channel.
        let server_word = strays
            .into_iter()
            .find_map(|stray| about(stray, server_number).ok());
        let server_end = match (&ended, path) {
            // Same agent: it is lost already.
            (Err(NoReply::Lost(_)), Path::Loopback) => Ok(()),
            _ if matches!(server_word, Some(WorkerReply::Last(_))) => Ok(()),
            _ => self.end_worker(ends[0].channel(), server_number, &mut Vec::new()),
        };
        if is_cancelled {
            return Err(Cancelled);
        }
        if let Err(NoReply::Lost(failure)) = server_end {
            measured.note_lost(path.server(), true);
            measured.aside = Some(format!("ending a server: {failure}"));
        }
        let (outcome, is_lost) = self.settle(ended)?;
        measured.note_lost(path.client(), is_lost);
        measured.outcome = match (outcome, server_word) {
            // If the server failed, its client can only fail; the server's failure is the cause.
            (Outcome::Failed(_), Some(WorkerReply::Last(Outcome::Failed(cause)))) => {
                Outcome::Failed(cause)
            }
            (outcome, _) => outcome,
        };
        Ok(measured)
    }
}

impl Measured {
    fn note_lost(&mut self, end: End, is_lost: bool) {
        match end {
            // An arm is restarted with all of its instances.
            End::Arm | End::Second | End::Third => self.is_arm_lost |= is_lost,
            End::Host => self.is_peer_lost |= is_lost,
        }
    }
}

/// Candidates for the other end.
pub(super) struct Others<'a> {
    /// The agent on the host.
    pub(super) peer: Option<&'a mut Arm>,
    /// The additional instances of the arm, or why there are none.
    pub(super) siblings: Result<&'a mut [Box<dyn Instance>], Reason>,
}

/// The route of a path and the instances at its ends, the server's first and the client's last; both ends of a loopback
/// are one instance.
fn route_and_ends<'a>(
    path: Path,
    first: &'a mut dyn Instance,
    others: Others<'a>,
) -> Result<(Route, Vec<&'a mut dyn Instance>), Reason> {
    // Checked first: the reason for a missing route says more than that for a missing end.
    let known = (path.inside() == End::Arm).then(|| Route::find(path, first));
    let known = known.transpose()?;
    let ends = match path {
        Path::Loopback => vec![first],
        _ => both(path, first, others)?.into(),
    };
    let route = known.map_or_else(|| Route::find(path, ends[0]), Ok)?;
    Ok((route, ends))
}

/// The instances at the two ends of a path, the server's first.
fn both<'a>(
    path: Path,
    first: &'a mut dyn Instance,
    others: Others<'a>,
) -> Result<[&'a mut dyn Instance; 2], Reason> {
    let mut nodes = vec![Some(first)];
    if path.nodes() > 1 {
        let siblings = others.siblings?.iter_mut();
        nodes.extend(siblings.map(|sibling| Some(sibling.as_mut() as &mut dyn Instance)));
    }
    let peer = others.peer.filter(|peer| peer.is_usable());
    let mut peer = peer.and_then(|peer| peer.instance.as_mut());
    let mut take = |end: End| -> Result<&'a mut dyn Instance, Reason> {
        let Some(number) = end.node() else {
            let peer = peer.take().map(|peer| peer.as_mut() as &mut dyn Instance);
            let why = "there is no agent on the host for the other end";
            return peer.ok_or_else(|| Reason::NoPath(why.into()));
        };
        let node = nodes.get_mut(number as usize - 1).and_then(Option::take);
        node.ok_or_else(|| Reason::NoPath(format!("there is no instance {number}")))
    };
    Ok([take(path.server())?, take(path.client())?])
}

/// Where the server listens and where the client connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    /// The server's address.
    bind: IpAddr,
    /// The server's port; `None` lets its system pick one.
    inside: Option<u16>,
    /// The address that the client connects to.
    address: IpAddr,
    /// The port that the client connects to; `None` if it is the server's.
    port: Option<u16>,
}

/// The call with an address and, if given, a port.
fn at(call: &ProbeCall, name: &str, address: IpAddr, port: Option<u16>) -> ProbeCall {
    let mut call = call.clone();
    call.args = call.args.with(name, address.to_string());
    if let Some(port) = port {
        call.args = call.args.with("port", i64::from(port));
    }
    call
}

impl Route {
    fn direct(address: IpAddr) -> Self {
        Self {
            bind: address,
            inside: None,
            address,
            port: None,
        }
    }

    /// The call of a server that listens only on the address that its client uses.
    pub(super) fn server_call(&self, server: &ProbeCall) -> ProbeCall {
        at(server, "bind", self.bind, self.inside)
    }

    /// The call of a client whose server listens on this port.
    pub(super) fn client_call(&self, client: &ProbeCall, port: u16) -> ProbeCall {
        let port = self.port.unwrap_or(port);
        at(client, "address", self.address, Some(port))
    }

    /// The route, as known by the instance at the path's end [inside](Path::inside).
    pub(super) fn find(path: Path, instance: &dyn Instance) -> Result<Self, Reason> {
        let at = match path {
            Path::Loopback => return Ok(Self::direct(IpAddr::from([127, 0, 0, 1]))),
            Path::HostToArm => return instance.address_from_host().map(Self::direct),
            Path::ArmToHost => return instance.host_address().map(Self::direct),
            Path::ArmToArm | Path::FirstToSecond | Path::SecondToThird => {
                return instance.address_from_arm().map(Self::direct);
            }
            Path::PublishedLoopback => PublishedAt::Loopback,
            Path::PublishedBridge => PublishedAt::Bridge,
        };
        Ok(match instance.published(at)? {
            Published::Direct(address) => Self::direct(address),
            Published::Mapped {
                address,
                port,
                inside,
            } => Self {
                // The engine forwards to whichever address the instance has in its network.
                bind: IpAddr::from([0, 0, 0, 0]),
                inside: Some(inside),
                address,
                port: Some(port),
            },
        })
    }
}
