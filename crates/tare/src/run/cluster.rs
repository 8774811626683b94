//! Runs a trial on several nodes: a service on each, and a measuring client on the first.
//!
//! The services start one after another, node 1 first: it may create what the others need (keys in the shared folder)
//! and picks the port that all of them use. Then the client runs, and its raw output is the trial's. Every service is
//! ended afterwards, whatever the client's outcome.
//!
//! A lost node voids the trial even if the client finished, because the client did not measure the whole cluster. The
//! arm is then restarted with all of its nodes.
//! Limits: processes that a service starts in other sessions are not ended. Those of a program that was ended by its
//! limit end when they notice.

use std::net::IpAddr;

use tare_model::cluster::{ClusterView, SHARED, node_name};
use tare_model::{Failure, Outcome, ProbeCall, Reason, Value, whole_count};

use super::exchange::{
    Cancelled, Dispatcher, Ended, Measured, NoReply, WorkerReply, about, with_grace,
};
use super::pair::SERVER;
use crate::env::Instance;

/// The calls to make on the nodes.
pub(super) struct Calls<'a> {
    pub(super) nodes: u32,
    pub(super) slots: u32,
    pub(super) service: &'a ProbeCall,
    pub(super) client: &'a ProbeCall,
}

impl Calls<'_> {
    fn mentions(&self, blank: &str) -> bool {
        [self.service, self.client]
            .iter()
            .flat_map(|call| call.args.0.values())
            .any(|value| matches!(value, Value::Text(text) if text.contains(blank)))
    }
}

/// The nodes of a trial, their addresses and the shared folder.
struct Nodes<'a> {
    instances: Vec<&'a mut dyn Instance>,
    addresses: Vec<IpAddr>,
    shared: Option<String>,
}

impl<'a> Nodes<'a> {
    /// Returns as many nodes as are requested, or why that is impossible.
    fn gather(
        calls: &Calls<'_>,
        first: &'a mut dyn Instance,
        siblings: Result<&'a mut [Box<dyn Instance>], Reason>,
    ) -> Result<Self, Reason> {
        let wanted = calls.nodes.max(1) as usize;
        let mut instances = vec![first];
        if wanted > 1 {
            let siblings = siblings?.iter_mut().take(wanted - 1);
            instances.extend(siblings.map(|sibling| sibling.as_mut() as &mut dyn Instance));
        }
        if instances.len() < wanted {
            let there = instances.len();
            return Err(Reason::NoEnvironment(format!(
                "{wanted} nodes are called for, and there are {there}"
            )));
        }
        let addresses = instances
            .iter()
            .map(|node| node.address_from_arm())
            .collect::<Result<Vec<_>, _>>()?;
        let shared = match instances[0].shared() {
            Ok(shared) => Some(shared),
            Err(reason) if calls.mentions(SHARED) => return Err(reason),
            Err(_) => None,
        };
        Ok(Self {
            instances,
            addresses,
            shared,
        })
    }

    /// The call as made on the node with this index.
    fn call(&self, call: &ProbeCall, index: usize, slots: u32, port: Option<u16>) -> ProbeCall {
        let view = ClusterView {
            node: whole_count(index + 1),
            addresses: self.addresses.clone(),
            slots,
            shared: self.shared.clone(),
        };
        let own = self.addresses[index].to_string();
        let mut args = view.laid_into(call.args.clone());
        args = args.with("address", own.as_str()).with("bind", own);
        if let Some(port) = port {
            args = args.with("port", i64::from(port));
        }
        ProbeCall {
            name: call.name.clone(),
            args,
        }
    }
}

/// Adds the node's name to a failure.
fn of_node(index: usize, failure: Failure) -> Failure {
    let name = node_name(whole_count(index + 1));
    match failure {
        Failure::Lost(why) => Failure::Lost(format!("{name}: {why}")),
        Failure::Garbled(why) => Failure::Garbled(format!("{name}: {why}")),
        Failure::Probe(why) => Failure::Probe(format!("{name}: {why}")),
        other => other,
    }
}

impl Dispatcher<'_> {
    /// Runs services on all nodes and a client on the first, whose raw output is the trial's.
    pub(super) fn cluster(
        &self,
        number: u64,
        calls: &Calls<'_>,
        first: &mut dyn Instance,
        siblings: Result<&mut [Box<dyn Instance>], Reason>,
    ) -> Result<Measured, Cancelled> {
        let mut nodes = match Nodes::gather(calls, first, siblings) {
            Ok(nodes) => nodes,
            Err(reason) => return Ok(self.nothing(Outcome::Unavailable(reason), false)),
        };
        let mut measured = self.nothing(Outcome::Failed(Failure::Lost(String::new())), false);
        let (mut port, mut started, mut refused) = (None, 0, None);
        while refused.is_none() && started < nodes.instances.len() {
            match self.serve_on(number, calls, &mut nodes, started, port) {
                Ok(found) => {
                    port.get_or_insert(found);
                    started += 1;
                }
                Err(no_service) => refused = Some(no_service),
            }
        }
        let has_services = refused.is_none();
        let mut strays = Vec::new();
        let ended = refused.unwrap_or_else(|| {
            let call = nodes.call(calls.client, 0, calls.slots, port);
            let workdir = nodes.instances[0].workdir();
            let request = self.request(number, &call, self.limit_ns, workdir);
            let channel = nodes.instances[0].channel();
            let ended;
            (ended, measured.started_unix_ns, measured.elapsed_ns) =
                self.timed(|| self.round(channel, number, &request, &mut strays));
            ended
        });
        // Node 1 is known to be lost already, or its service has sent its last reply.
        let is_first_over = has_services && matches!(ended, Err(NoReply::Lost(_)))
            || strays
                .into_iter()
                .any(|stray| matches!(about(stray, number | SERVER), Ok(WorkerReply::Last(_))));
        let mut lost = None;
        for index in (usize::from(is_first_over)..started).rev() {
            let channel = nodes.instances[index].channel();
            let end = self.end_worker(channel, number | SERVER, &mut Vec::new());
            if let Err(NoReply::Lost(failure)) = end {
                lost = Some(of_node(index, failure));
            }
        }
        let (outcome, is_lost) = self.settle(ended)?;
        measured.is_arm_lost = is_lost || lost.is_some();
        measured.outcome = lost.map_or(outcome, Outcome::Failed);
        Ok(measured)
    }

    /// Starts the service of a node and waits until it listens. Returns its port, or the trial's end.
    fn serve_on(
        &self,
        number: u64,
        calls: &Calls<'_>,
        nodes: &mut Nodes<'_>,
        index: usize,
        port: Option<u16>,
    ) -> Result<u16, Ended> {
        let name = |failure| of_node(index, failure);
        let call = nodes.call(calls.service, index, calls.slots, port);
        let node = &mut nodes.instances[index];
        // The service must outlive the start of the other services, and the client.
        let limit_ns = with_grace(self.limit_ns.saturating_mul(u64::from(calls.nodes) + 2));
        let number = number | SERVER;
        let request = self.request(number, &call, limit_ns, node.workdir());
        let listening = self.listen(
            node.channel(),
            (number, &request),
            "service",
            &mut Vec::new(),
        );
        listening.map_err(|ended| match ended {
            Ok(Outcome::Failed(failure)) => Ok(Outcome::Failed(name(failure))),
            Err(NoReply::Lost(failure)) => Err(NoReply::Lost(name(failure))),
            other => other,
        })
    }
}
