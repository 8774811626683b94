//! A trial with two ends: a server and a client, one of them perhaps on the host.
//!
//! The client measures; its raw output is the trial's, and its time is the trial's time. The server is
//! started first, reports its port, and is ended after the client, whatever came of it.
//! What it cannot see: whether the address that the environment names is reachable. Where it is not, the
//! client fails and says so.

use std::net::IpAddr;

use tare_model::{End, Failure, Outcome, Path, ProbeCall, Reason, Value};

use super::dispatch::{Cancelled, Dispatcher, GRACE, Measured, Silence, Word, about};
use super::rig::Arm;
use crate::env::{Channel, Instance};

/// Set in the number of a pair's server, so that it differs from its client's in the same agent.
const SERVER: u64 = 1 << 32;

impl Dispatcher<'_> {
    /// A server and a client, one of them perhaps on the host. The client's raw output is the trial's.
    pub(super) fn pair(
        &self,
        number: u64,
        path: Path,
        server: &ProbeCall,
        client: &ProbeCall,
        instance: &mut dyn Instance,
        peer: Option<&mut Arm>,
    ) -> Result<Measured, Cancelled> {
        let address = match path {
            Path::Loopback => Ok(IpAddr::from([127, 0, 0, 1])),
            Path::HostToArm => instance.address_from_host(),
            Path::ArmToHost => instance.host_address(),
        };
        let address = match address {
            Ok(address) => address,
            Err(reason) => return Ok(self.nothing(Outcome::Unavailable(reason), false)),
        };
        if path == Path::Loopback {
            let workdir = instance.workdir();
            let mut ends = Ends::Same(instance.channel(), workdir);
            return self.serve_and_measure(number, path, address, server, client, &mut ends);
        }
        let peer = peer.filter(|peer| peer.is_usable());
        let Some(peer) = peer.and_then(|peer| peer.instance.as_mut()) else {
            let reason = Reason::NoPath("there is no agent on the host for the other end".into());
            return Ok(self.nothing(Outcome::Unavailable(reason), false));
        };
        let (in_arm, on_host) = (instance.workdir(), peer.workdir());
        let mut ends = Ends::Two {
            arm: (instance.channel(), in_arm),
            host: (peer.channel(), on_host),
        };
        self.serve_and_measure(number, path, address, server, client, &mut ends)
    }

    fn serve_and_measure(
        &self,
        number: u64,
        path: Path,
        address: IpAddr,
        server: &ProbeCall,
        client: &ProbeCall,
        ends: &mut Ends<'_>,
    ) -> Result<Measured, Cancelled> {
        let server_number = number | SERVER;
        let mut measured = self.nothing(Outcome::Failed(Failure::Lost(String::new())), false);
        // The server outlives the client by design, so its own limit leaves room for both.
        let server_limit_ns = self
            .limit_ns
            .saturating_mul(2)
            .saturating_add(GRACE.as_nanos() as u64);
        let (channel, workdir) = ends.of(path.server());
        // It listens only where the client will come, not on every address of its end.
        let mut server = server.clone();
        let bind = Value::Text(address.to_string());
        server.args.0.insert("bind".into(), bind);
        let request = self.request(server_number, &server, server_limit_ns, workdir);
        let listening = channel
            .send(&request)
            .map_err(|error| self.lost(&error))
            .and_then(|()| self.word(channel, server_number, self.limit_ns, &mut Vec::new()));
        let port = match listening {
            Ok(Word::Listening(port)) => port,
            Ok(Word::Last(Outcome::Completed(_))) => {
                measured.outcome = Outcome::Failed(Failure::Garbled(
                    "the server ended without having listened".into(),
                ));
                return Ok(measured);
            }
            Ok(Word::Last(outcome)) => {
                measured.outcome = self.settle(Ok(outcome))?.0;
                return Ok(measured);
            }
            Err(silence) => {
                let (outcome, is_lost) = self.settle(Err(silence))?;
                measured.outcome = outcome;
                measured.note_lost(path.server(), is_lost);
                return Ok(measured);
            }
        };
        let mut call = client.clone();
        let arguments = &mut call.args.0;
        arguments.insert("address".into(), Value::Text(address.to_string()));
        arguments.insert("port".into(), Value::Int(i64::from(port)));
        let (channel, workdir) = ends.of(path.client());
        let request = self.request(number, &call, self.limit_ns, workdir);
        measured.started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let mut strays = Vec::new();
        let ended = self.round(channel, number, &request, &mut strays);
        measured.elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        let is_cancelled = matches!(ended, Err(Silence::Cancelled));
        // A server may end before its client does. In the client's own channel its last word has then
        // arrived already; in a channel of its own it is the next to be received.
        let mut server_word = strays
            .into_iter()
            .find_map(|stray| about(stray, server_number).ok());
        let (channel, _) = ends.of(path.server());
        let server_end = match (&ended, path) {
            // The same agent: it is lost already.
            (Err(Silence::Lost(_)), Path::Loopback) => Ok(()),
            _ if matches!(server_word, Some(Word::Last(_))) => Ok(()),
            _ => self.end_worker(channel, server_number, &mut Vec::new()),
        };
        if is_cancelled {
            return Err(Cancelled);
        }
        if let Err(Silence::Lost(failure)) = server_end {
            measured.note_lost(path.server(), true);
            measured.aside = Some(format!("ending a server: {failure}"));
        }
        let (outcome, is_lost) = self.settle(ended)?;
        measured.note_lost(path.client(), is_lost);
        measured.outcome = match (outcome, server_word.take()) {
            // A client whose server failed can only fail; the server's failure is the cause.
            (Outcome::Failed(_), Some(Word::Last(Outcome::Failed(cause)))) => {
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
            End::Arm => self.is_arm_lost |= is_lost,
            End::Host => self.is_peer_lost |= is_lost,
        }
    }
}

/// The channels to the two ends, with the directories for their files.
enum Ends<'a> {
    Same(&'a mut dyn Channel, String),
    Two {
        arm: (&'a mut dyn Channel, String),
        host: (&'a mut dyn Channel, String),
    },
}

impl Ends<'_> {
    fn of(&mut self, end: End) -> (&mut dyn Channel, String) {
        let (channel, workdir) = match (self, end) {
            (Self::Same(channel, workdir), _) => (channel, workdir),
            (Self::Two { arm, .. }, End::Arm) => (&mut arm.0, &mut arm.1),
            (Self::Two { host, .. }, End::Host) => (&mut host.0, &mut host.1),
        };
        (&mut **channel, workdir.clone())
    }
}
