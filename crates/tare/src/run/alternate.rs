//! Alternation: runs one workload of a block in all arms at once, interleaved in slices (METHOD 10).
//!
//! Every arm has a prepared worker that waits. The workers then run alternately, each for a slice of milliseconds, in
//! the orders of a Williams square, so that the slices of a cycle see the same machine state. If all arms share this
//! machine's memory, the workers pass the turn to each other; otherwise the host passes it over the channels, and
//! slices are longer. The host reads, writes and draws nothing meanwhile.
//!
//! An arm that cannot run the workload is left out before the first slice. One that dies within the block spoils the
//! block for every arm, because the other slices have lost their partners: the others are ended, and the stored
//! result says so. The next block is not affected.

use tare_model::together::ended_with_another;
use tare_model::turns::{DONE, next_turn};
use tare_model::wire::Request;
use tare_model::{
    End, Failure, Outcome, Path, ProbeCall, Reason, Recipe, TurnPage, Turns, whole_count,
};

use super::exchange::{Cancelled, Dispatcher, Measured, NoReply, taking_part, with_grace};
use super::group::{Group, Member, State};
use super::pair::{Route, SERVER, is_service};
use super::services::{self, Started};
use super::testbed::Arm;
use super::turn_state::Cycle;
use crate::cx::turn_page;
use crate::env::Instance;

/// One arm's part in the block.
pub(super) struct Part<'a> {
    /// The number of the arm's trial.
    pub(super) number: u64,
    pub(super) arm: &'a mut Arm,
}

/// Indices of a part's two ends in the list of instances.
struct Ends {
    server: usize,
    client: usize,
}

impl Dispatcher<'_> {
    /// Runs a workload interleaved in all of these arms. Returns the results in their order, and the index of an arm
    /// that does not share the host's turn page, if any.
    pub(super) fn alternate(
        &self,
        recipe: &Recipe,
        path: Option<Path>,
        parts: Vec<Part<'_>>,
        peer: Option<&mut Arm>,
        cycle: &Cycle,
    ) -> Result<(Vec<Measured>, Option<usize>), Cancelled> {
        let count = parts.len();
        let mut measured: Vec<Measured> = parts
            .iter()
            .map(|_| self.nothing(Outcome::Failed(ended_with_another()), false))
            .collect();
        let numbers: Vec<u64> = parts.iter().map(|part| part.number).collect();
        let recipes: Vec<Recipe> = parts
            .iter()
            .map(|part| part.arm.spec.change.laid_into(recipe, path))
            .collect();
        let mut instances: Vec<&mut dyn Instance> = Vec::new();
        let mut ends = Vec::new();
        let mut without = Vec::new();
        for (place, part) in parts.into_iter().enumerate() {
            let Arm {
                instance, siblings, ..
            } = part.arm;
            let Some(first) = instance.as_mut() else {
                measured[place].outcome =
                    Outcome::Failed(Failure::Lost("it is not running".into()));
                without.push(place);
                ends.push(Ends {
                    server: 0,
                    client: 0,
                });
                continue;
            };
            let own = instances.len();
            instances.push(first.as_mut());
            let mut both = Ends {
                server: own,
                client: own,
            };
            if let Some(path) = path.filter(|path| path.nodes() > 1) {
                match siblings.as_mut() {
                    Ok(siblings) if whole_count(siblings.len() + 1) >= path.nodes() => {
                        let beside = siblings.iter_mut().take(path.nodes() as usize - 1);
                        instances.extend(beside.map(|one| one.as_mut() as &mut dyn Instance));
                        let at = |end: End| own + end.node().map_or(0, |node| node as usize - 1);
                        both = Ends {
                            server: at(path.server()),
                            client: at(path.client()),
                        };
                    }
                    Ok(_) => without.push(place),
                    Err(reason) => {
                        measured[place].outcome = Outcome::Unavailable(reason.clone());
                        without.push(place);
                    }
                }
            }
            ends.push(both);
        }
        if let Some(path) = path.filter(|path| path.touches(End::Host)) {
            let peer = peer.filter(|peer| peer.is_usable());
            let Some(peer) = peer.and_then(|peer| peer.instance.as_mut()) else {
                let reason =
                    Reason::NoPath("there is no agent on the host for the other end".into());
                for one in &mut measured {
                    one.outcome = Outcome::Unavailable(reason.clone());
                }
                return Ok((measured, None));
            };
            let at = instances.len();
            instances.push(peer.as_mut());
            for both in &mut ends {
                match path.server() {
                    End::Host => both.server = at,
                    _ => both.client = at,
                }
            }
        }
        let members = numbers
            .iter()
            .zip(&ends)
            .map(|(number, ends)| Member::new(*number, ends.client))
            .collect();
        let limit_ns = cycle.limit_ns(self.limit_ns);
        let mut block = Block {
            group: Group::new(self, limit_ns, instances, members),
            cycle,
            limit_ns,
            servers: Vec::new(),
            sent_ns: vec![0; count],
        };
        for place in without {
            block.group.members[place].state = State::Ended {
                outcome: measured[place].outcome.clone(),
                at_ns: 0,
            };
        }
        let started_unix_ns = self.cx.clock.unix_ns();
        let carried_out = block.carry_out(&recipes, path.unwrap_or(Path::Loopback), &ends);
        let ended_servers = block.end_servers();
        let not_shared = carried_out?;
        ended_servers?;
        let Block { group, sent_ns, .. } = block;
        for (place, (one, member)) in measured.iter_mut().zip(group.members).enumerate() {
            let both = &ends[place];
            let (outcome, at_ns) = member.ended_or(sent_ns[place]);
            if matches!(outcome, Outcome::Failed(_)) && self.is_cancelled_after_all() {
                return Err(Cancelled);
            }
            one.outcome = outcome;
            one.started_unix_ns = started_unix_ns;
            // From a worker's request to its last reply.
            one.elapsed_ns = at_ns.saturating_sub(sent_ns[place]);
            one.is_arm_lost = group.lost[both.client] || group.lost[both.server];
        }
        Ok((measured, not_shared))
    }
}

/// A running block.
struct Block<'d, 'c, 'e, 'b> {
    group: Group<'d, 'c, 'e>,
    cycle: &'b Cycle,
    limit_ns: u64,
    /// Listening servers of pairs: end and number.
    servers: Vec<(usize, u64)>,
    /// When each worker got its request.
    sent_ns: Vec<u64>,
}

impl Block<'_, '_, '_, '_> {
    fn carry_out(
        &mut self,
        recipes: &[Recipe],
        path: Path,
        ends: &[Ends],
    ) -> Result<Option<usize>, Cancelled> {
        let pages = self.pages().filter(|_| self.cycle.has_page);
        let scratch = self.group.dispatcher.cx.scratch;
        let pages = pages.filter(|_| turn_page::clear(scratch, self.cycle.key).is_ok());
        let mut asked = Vec::new();
        for place in self.cycle.starting_order(ends.len()) {
            let both = &ends[place];
            if self.group.members[place].has_ended() {
                continue;
            }
            self.sent_ns[place] = self.group.now_ns();
            let Some(call) = self.call(place, &recipes[place], path, both)? else {
                continue;
            };
            if is_service(&recipes[place]) {
                let sent_ns = self.sent_ns[place];
                asked.push(Started::once_ready(
                    &self.group,
                    (place, both.server),
                    call,
                    sent_ns,
                )?);
                continue;
            }
            let page = pages.as_ref().map(|pages| TurnPage {
                path: pages[both.client].clone(),
                key: self.cycle.key,
            });
            let turns = Turns {
                place: whole_count(place),
                rows: self.cycle.rows.clone(),
                stages: self.cycle.stages(place),
                page,
                check: self.cycle.check,
                patience_ns: self.limit_ns,
            };
            let workdir = self.group.ends[both.client].workdir();
            let number = self.group.members[place].number;
            let request = self
                .group
                .dispatcher
                .request(number, &call, self.limit_ns, workdir);
            self.sent_ns[place] = self.group.now_ns();
            let request = taking_part(request, self.cycle.cpu, self.cycle.target_ns, Some(turns));
            self.group.send(both.client, &request)?;
        }
        if recipes.iter().any(is_service) {
            services::ask(&mut self.group, self.cycle, &asked)?;
            return Ok(None);
        }
        let is_prepared =
            |member: &Member| matches!(member.state, State::Ready) || member.has_ended();
        self.group.wait_until(is_prepared, false)?;
        let stranger = pages.as_ref().and_then(|_| self.stranger());
        if stranger.is_some() || self.group.members[self.cycle.baseline].has_ended() {
            self.group.end_the_others()?;
            return Ok(stranger);
        }
        if pages.is_some() {
            for (place, member) in self.group.members.iter().enumerate() {
                if member.has_ended() && turn_page::leave_out(scratch, place).is_err() {
                    self.group.end_the_others()?;
                    return Ok(None);
                }
            }
        }
        self.group.let_go()?;
        if pages.is_some() {
            self.listen()?;
        } else {
            self.give_turns()?;
        }
        Ok(None)
    }

    /// Returns the call of an arm's worker; for a pair that of its client, after starting the server.
    fn call(
        &mut self,
        place: usize,
        recipe: &Recipe,
        path: Path,
        ends: &Ends,
    ) -> Result<Option<ProbeCall>, Cancelled> {
        match recipe {
            Recipe::Probe(call) => Ok(Some(call.clone())),
            Recipe::Pair { server, client } => self.serve(place, path, ends, server, client),
            _ => unreachable!("only probes and pairs are interleaved"),
        }
    }

    /// The path of the turn page at each end, if all of them have it.
    fn pages(&self) -> Option<Vec<String>> {
        self.group
            .ends
            .iter()
            .map(|instance| instance.turn_page())
            .collect()
    }

    /// Starts the server of a pair. Returns the call of its client, unless the pair is unavailable.
    fn serve(
        &mut self,
        place: usize,
        path: Path,
        ends: &Ends,
        server: &ProbeCall,
        client: &ProbeCall,
    ) -> Result<Option<ProbeCall>, Cancelled> {
        let dispatcher = self.group.dispatcher;
        // The address is the arm's, whichever end listens.
        let own = if path.inside() == path.server() {
            ends.server
        } else {
            ends.client
        };
        let route = match Route::find(path, &*self.group.ends[own]) {
            Ok(route) => route,
            Err(reason) => return Ok(self.ended(place, Outcome::Unavailable(reason))),
        };
        let number = self.group.members[place].number | SERVER;
        let limit_ns = with_grace(self.limit_ns.saturating_mul(2));
        let listener = &mut self.group.ends[ends.server];
        let call = route.server_call(server);
        let request = dispatcher.request(number, &call, limit_ns, listener.workdir());
        let request = taking_part(request, self.cycle.cpu, self.cycle.target_ns, None);
        let mut strays = Vec::new();
        let listening = dispatcher.listen(
            listener.channel(),
            (number, &request),
            "server",
            &mut strays,
        );
        for stray in strays {
            self.group.take(ends.server, stray);
        }
        match listening {
            Ok(port) => {
                self.servers.push((ends.server, number));
                Ok(Some(route.client_call(client, port)))
            }
            Err(ended) => {
                let (outcome, is_lost) = dispatcher.settle(ended)?;
                self.group.lost[ends.server] |= is_lost;
                Ok(self.ended(place, outcome))
            }
        }
    }

    /// Records that a part ended before it began.
    fn ended(&mut self, place: usize, outcome: Outcome) -> Option<ProbeCall> {
        let at_ns = self.group.now_ns();
        self.group.members[place].state = State::Ended { outcome, at_ns };
        None
    }

    /// A worker that began but left no trace on the host's page: it has another page, or may not write to it.
    fn stranger(&self) -> Option<usize> {
        let scratch = self.group.dispatcher.cx.scratch;
        let members = &self.group.members;
        let phases = turn_page::phases(scratch, members.len()).unwrap_or_default();
        let has_begun = |member: &Member| match &member.state {
            State::Ended { outcome, at_ns } => {
                *at_ns > 0 && matches!(outcome, Outcome::Failed(Failure::Probe(_)))
            }
            _ => true,
        };
        let is_untouched = |place: usize| phases.get(place).is_none_or(|at| *at == 0);
        (0..members.len()).find(|place| has_begun(&members[*place]) && is_untouched(*place))
    }

    /// Waits until all workers have ended; if one dies without passing on its turn, ends the others.
    fn listen(&mut self) -> Result<(), Cancelled> {
        let begun_ns = self.group.now_ns();
        let mut slice = self.group.first_slice();
        while !self.group.members.iter().all(Member::has_ended) {
            self.group.wait_for_news(begun_ns, &mut slice)?;
            if self.is_spoiled() {
                return self.group.end_the_others();
            }
        }
        Ok(())
    }

    /// Whether a worker that had begun was ended from outside, so that it cannot have passed on its turn.
    fn is_spoiled(&self) -> bool {
        self.group.members.iter().any(|member| {
            member.went_on_ns.is_some()
                && matches!(
                    &member.state,
                    State::Ended {
                        outcome: Outcome::Failed(
                            Failure::Killed { .. }
                                | Failure::Exited { .. }
                                | Failure::TimedOut { .. }
                                | Failure::Lost(_)
                                | Failure::Garbled(_)
                        ),
                        ..
                    }
                )
        })
    }

    /// Passes the turn over the channels until all workers are done.
    fn give_turns(&mut self) -> Result<(), Cancelled> {
        let is_still = |member: &Member| !matches!(member.state, State::Running);
        self.group.wait_until(is_still, false)?;
        let (mut last, mut last_phase) = (None, 0);
        loop {
            let phases: Vec<u32> = self
                .group
                .members
                .iter()
                .map(|member| match member.state {
                    State::Waiting(phase) => phase,
                    _ => DONE,
                })
                .collect();
            let Some((number, place)) = next_turn(&self.cycle.rows, &phases, last, last_phase)
            else {
                return Ok(());
            };
            (last, last_phase) = (Some(number), phases[place as usize]);
            let member = &mut self.group.members[place as usize];
            member.state = State::Running;
            let (trial, end) = (member.number, member.end);
            self.group.send(end, &Request::Turn { trial })?;
            self.group.wait_until(is_still, false)?;
            if self.is_spoiled() {
                return self.group.end_the_others();
            }
        }
    }

    /// Ends the servers that still run; continues after a failure.
    fn end_servers(&mut self) -> Result<(), Cancelled> {
        let mut result = Ok(());
        for (end, number) in std::mem::take(&mut self.servers) {
            if self.group.has_other_ended(end, number) {
                continue;
            }
            match self.group.end_worker(end, number) {
                Ok(()) | Err(NoReply::TimedOut) => {}
                Err(NoReply::Cancelled) => result = Err(Cancelled),
                Err(NoReply::Lost(_)) => self.group.lost[end] = true,
            }
        }
        result
    }
}
