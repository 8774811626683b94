//! Runs a trial with a server and a client; one of them may be on the host or in a second instance of the arm.
//!
//! The client measures; its raw output is the trial's, and so is its time. The server starts first, reports its port,
//! and is ended after the client, whatever the client's outcome.
//! Limits: whether the address given by the environment is reachable shows only when the client fails.

use std::net::IpAddr;

use tare_model::{End, Failure, Outcome, Path, ProbeCall, Reason, Value, whole_ns};

use super::exchange::{Cancelled, Dispatcher, GRACE, Measured, NoReply, WorkerReply, about};
use super::testbed::Arm;
use crate::env::{Channel, Charged, Instance, Published, PublishedAt};
use crate::service::request_plan::CLIENT;

/// Set in the number of a pair's server, so that it differs from its client's in the same agent.
pub(super) const SERVER: u64 = 1 << 32;

impl Dispatcher<'_> {
    /// Runs a server and a client. The client's raw output is the trial's.
    pub(super) fn pair(
        &self,
        number: u64,
        path: Path,
        server: &ProbeCall,
        client: &ProbeCall,
        instance: &mut dyn Instance,
        others: Others<'_>,
    ) -> Result<Measured, Cancelled> {
        let unavailable = |reason| Ok(self.nothing(Outcome::Unavailable(reason), false));
        // Checked first: the reason for a missing route says more than that for a missing end.
        let known = (path.inside() == End::Arm).then(|| Route::find(path, instance));
        let known = match known.transpose() {
            Ok(known) => known,
            Err(reason) => return unavailable(reason),
        };
        let workdir = instance.workdir();
        if let (Path::Loopback, Some(route)) = (path, known) {
            let mut ends = Ends::Same(instance.channel(), workdir);
            return self.serve_and_measure(number, path, route, server, client, &mut ends);
        }
        let [listener, caller] = match both(path, instance, others) {
            Ok(both) => both,
            Err(reason) => return unavailable(reason),
        };
        let route = match known.map_or_else(|| Route::find(path, listener), Ok) {
            Ok(route) => route,
            Err(reason) => return unavailable(reason),
        };
        let charged = listener.charged();
        let folders = [listener.workdir(), caller.workdir()];
        let [at_server, at_client] = folders;
        let mut ends = Ends::Two {
            server: (listener.channel(), at_server),
            client: (caller.channel(), at_client),
            charged,
        };
        self.serve_and_measure(number, path, route, server, client, &mut ends)
    }

    fn serve_and_measure(
        &self,
        number: u64,
        path: Path,
        route: Route,
        server: &ProbeCall,
        client: &ProbeCall,
        ends: &mut Ends<'_>,
    ) -> Result<Measured, Cancelled> {
        let server_number = number | SERVER;
        let mut measured = self.nothing(Outcome::Failed(Failure::Lost(String::new())), false);
        // The server outlives the client by design, so its limit has room for both.
        let server_limit_ns = self
            .limit_ns
            .saturating_mul(2)
            .saturating_add(whole_ns(GRACE));
        let (channel, workdir) = ends.server();
        // The server listens only on the address that the client uses.
        let mut server = server.clone();
        let bind = Value::Text(route.bind.to_string());
        server.args.0.insert("bind".into(), bind);
        if let Some(port) = route.inside {
            let port = Value::Int(i64::from(port));
            server.args.0.insert("port".into(), port);
        }
        let request = self.request(server_number, &server, server_limit_ns, workdir);
        let served_ns = self.cx.clock.now_ns();
        let listening = channel
            .send(&request)
            .map_err(|error| self.lost(&error))
            .and_then(|()| {
                self.worker_reply(channel, server_number, self.limit_ns, &mut Vec::new())
            });
        let port = match listening {
            Ok(WorkerReply::Listening(port)) => port,
            Ok(WorkerReply::Last(Outcome::Completed(_))) => {
                measured.outcome = Outcome::Failed(Failure::Garbled(
                    "the server ended without having listened".into(),
                ));
                return Ok(measured);
            }
            Ok(WorkerReply::Last(outcome)) => {
                measured.outcome = self.settle(Ok(outcome))?.0;
                return Ok(measured);
            }
            Err(no_reply) => {
                let (outcome, is_lost) = self.settle(Err(no_reply))?;
                measured.outcome = outcome;
                measured.note_lost(path.server(), is_lost);
                return Ok(measured);
            }
        };
        let mut call = client.clone();
        let arguments = &mut call.args.0;
        let port = route.port.unwrap_or(port);
        arguments.insert("address".into(), Value::Text(route.address.to_string()));
        arguments.insert("port".into(), Value::Int(i64::from(port)));
        let charged = &ends.charged().clone();
        let (channel, workdir) = ends.client();
        let request = self.request(number, &call, self.limit_ns, workdir);
        measured.started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let mut strays = Vec::new();
        let ended = if call.name == CLIENT {
            let asked = self.ask_alone(&call, served_ns, charged);
            asked.map_err(|Cancelled| NoReply::Cancelled)
        } else {
            self.round(channel, number, &request, &mut strays)
        };
        measured.elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        let is_cancelled = matches!(ended, Err(NoReply::Cancelled));
        // The server may end before its client. Its last reply has then arrived already if both share a channel;
        // otherwise it is the next reply on the server's channel.
        let mut server_word = strays
            .into_iter()
            .find_map(|stray| about(stray, server_number).ok());
        let (channel, _) = ends.server();
        let server_end = match (&ended, path) {
            // Same agent: it is lost already.
            (Err(NoReply::Lost(_)), Path::Loopback) => Ok(()),
            _ if matches!(server_word, Some(WorkerReply::Last(_))) => Ok(()),
            _ => self.end_worker(channel, server_number, &mut Vec::new()),
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
        measured.outcome = match (outcome, server_word.take()) {
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
    pub(super) bind: IpAddr,
    /// The server's port; `None` lets its system pick one.
    pub(super) inside: Option<u16>,
    /// The address that the client connects to.
    pub(super) address: IpAddr,
    /// The port that the client connects to; `None` if it is the server's.
    pub(super) port: Option<u16>,
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

/// The channels and working directories of the two ends.
enum Ends<'a> {
    Same(&'a mut dyn Channel, String),
    Two {
        server: (&'a mut dyn Channel, String),
        client: (&'a mut dyn Channel, String),
        /// Where the server's resource use is counted.
        charged: Charged,
    },
}

impl Ends<'_> {
    fn server(&mut self) -> (&mut dyn Channel, String) {
        let (channel, workdir) = match self {
            Self::Same(channel, workdir) => (channel, workdir),
            Self::Two { server, .. } => (&mut server.0, &mut server.1),
        };
        (&mut **channel, workdir.clone())
    }

    fn charged(&self) -> &Charged {
        match self {
            Self::Same(..) => &Charged::Nowhere,
            Self::Two { charged, .. } => charged,
        }
    }

    fn client(&mut self) -> (&mut dyn Channel, String) {
        let (channel, workdir) = match self {
            Self::Same(channel, workdir) => (channel, workdir),
            Self::Two { client, .. } => (&mut client.0, &mut client.1),
        };
        (&mut **channel, workdir.clone())
    }
}
