//! Workers that are prepared, held, and heard over several channels at once.
//!
//! The caller decides whether they start together ([`super::instances`]) or alternate ([`super::alternate`]). Both
//! need to know the state of each worker, notice those that stop answering, and end the others.

use std::time::Duration;

use tare_model::together::ended_with_another;
use tare_model::wire::{Reply, Request};
use tare_model::{Failure, Outcome};

use super::exchange::{Cancelled, Dispatcher, NoReply, SLICE, WorkerReply, about, with_grace};
use crate::env::{ChannelError, Instance};

/// How long a channel is still read when its time is over already.
const LAST_LOOK: Duration = Duration::from_millis(1);

/// How long each of several channels is read before the next, once the work should be done.
const ROUND: Duration = Duration::from_millis(25);

/// The state of a worker.
pub(super) enum State {
    Preparing,
    Ready,
    Running,
    /// Waits for its next slice, in this phase.
    Waiting(u32),
    Ended {
        outcome: Outcome,
        at_ns: u64,
    },
}

/// A worker of the trial.
pub(super) struct Member {
    pub(super) number: u64,
    /// Index of its instance in the list of ends.
    pub(super) end: usize,
    pub(super) state: State,
    pub(super) went_on_ns: Option<u64>,
}

impl Member {
    /// A worker in preparation.
    pub(super) fn new(number: u64, end: usize) -> Self {
        Self {
            number,
            end,
            state: State::Preparing,
            went_on_ns: None,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }

    /// How it ended, and when; as if another worker had ended it at `else_ns` if it has not.
    pub(super) fn ended_or(self, else_ns: u64) -> (Outcome, u64) {
        match self.state {
            State::Ended { outcome, at_ns } => (outcome, at_ns),
            _ => (Outcome::Failed(ended_with_another()), else_ns),
        }
    }
}

/// Workers that are held together and heard over several channels.
pub(super) struct Group<'d, 'c, 'e> {
    pub(super) dispatcher: &'d Dispatcher<'c>,
    /// Time limit of the whole group, nanoseconds.
    limit_ns: u64,
    pub(super) ends: Vec<&'e mut dyn Instance>,
    pub(super) members: Vec<Member>,
    /// Whether each end has stopped answering.
    pub(super) lost: Vec<bool>,
    /// Ended workers that are not members, by end and number: servers, which end when no client is connected any
    /// more. They send no further reply.
    others_ended: Vec<(usize, u64)>,
}

impl<'d, 'c, 'e> Group<'d, 'c, 'e> {
    /// A group whose workers have not got a request yet.
    pub(super) fn new(
        dispatcher: &'d Dispatcher<'c>,
        limit_ns: u64,
        ends: Vec<&'e mut dyn Instance>,
        members: Vec<Member>,
    ) -> Self {
        let lost = vec![false; ends.len()];
        Self {
            dispatcher,
            limit_ns,
            ends,
            members,
            lost,
            others_ended: Vec::new(),
        }
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.dispatcher.cx.clock.now_ns()
    }

    pub(super) fn send(&mut self, end: usize, request: &Request) -> Result<(), Cancelled> {
        if let Err(error) = self.ends[end].channel().send(request) {
            let no_reply = self.dispatcher.lost(&error);
            self.deal_with(end, no_reply)?;
        }
        Ok(())
    }

    /// Length of the first wait for a reply.
    pub(super) fn first_slice(&self) -> Duration {
        self.dispatcher.first_slice(self.members.len())
    }

    /// Lets every worker begin that has not ended.
    pub(super) fn let_go(&mut self) -> Result<(), Cancelled> {
        for index in 0..self.members.len() {
            if self.members[index].has_ended() {
                continue;
            }
            let now_ns = self.now_ns();
            let member = &mut self.members[index];
            member.went_on_ns = Some(now_ns);
            member.state = State::Running;
            let Member { number, end, .. } = *member;
            self.send(end, &Request::Go { trial: number })?;
        }
        Ok(())
    }

    /// Waits for a reply from any end, or until one is lost. `slice` is how long one end is read; it becomes short
    /// after the first wait without a reply.
    pub(super) fn wait_for_news(
        &mut self,
        begun_ns: u64,
        slice: &mut Duration,
    ) -> Result<(), Cancelled> {
        loop {
            for end in 0..self.ends.len() {
                let is_open = |member: &Member| member.end == end && !member.has_ended();
                if !self.members.iter().any(is_open) {
                    continue;
                }
                match self.ends[end].channel().receive(*slice) {
                    Ok(reply) => {
                        self.take(end, reply);
                        return Ok(());
                    }
                    Err(ChannelError::Timeout(_)) if self.dispatcher.cx.cancel.is_requested() => {
                        return self.deal_with(end, NoReply::Cancelled);
                    }
                    Err(ChannelError::Timeout(_)) => *slice = ROUND,
                    Err(error) => {
                        let no_reply = self.dispatcher.lost(&error);
                        return self.deal_with(end, no_reply);
                    }
                }
            }
            if self.now_ns().saturating_sub(begun_ns) >= with_grace(self.limit_ns) {
                for end in 0..self.ends.len() {
                    self.deal_with(end, NoReply::TimedOut)?;
                }
                return Ok(());
            }
        }
    }

    /// Waits until every member satisfies `is_wanted`; with `or_ended`, at most until one of them has ended.
    pub(super) fn wait_until(
        &mut self,
        is_wanted: impl Fn(&Member) -> bool,
        or_ended: bool,
    ) -> Result<(), Cancelled> {
        let begun_ns = self.now_ns();
        let mut slice = self.first_slice();
        for end in 0..self.ends.len() {
            loop {
                if or_ended && self.members.iter().any(Member::has_ended) {
                    return Ok(());
                }
                let is_missing = |member: &Member| member.end == end && !is_wanted(member);
                if !self.members.iter().any(is_missing) {
                    break;
                }
                if let Err(no_reply) = self.hear(end, begun_ns, &mut slice) {
                    self.deal_with(end, no_reply)?;
                }
            }
        }
        Ok(())
    }

    /// Receives one reply from an end.
    pub(super) fn hear(
        &mut self,
        end: usize,
        begun_ns: u64,
        slice: &mut Duration,
    ) -> Result<(), NoReply> {
        let patience_ns = with_grace(self.limit_ns);
        let mut has_looked = false;
        loop {
            let waited_ns = self.now_ns().saturating_sub(begun_ns);
            if waited_ns >= patience_ns && has_looked {
                return Err(NoReply::TimedOut);
            }
            // A reply that arrived while the host waited for another end counts, however long that took.
            has_looked = true;
            let rest = Duration::from_nanos(patience_ns.saturating_sub(waited_ns)).max(LAST_LOOK);
            match self.ends[end].channel().receive((*slice).min(rest)) {
                Ok(reply) => {
                    self.take(end, reply);
                    return Ok(());
                }
                Err(ChannelError::Timeout(_)) if self.dispatcher.cx.cancel.is_requested() => {
                    return Err(NoReply::Cancelled);
                }
                Err(ChannelError::Timeout(_)) => *slice = SLICE,
                Err(error) => return Err(self.dispatcher.lost(&error)),
            }
        }
    }

    /// Handles a reply from this end. A reply about an unknown worker belongs to an earlier trial.
    pub(super) fn take(&mut self, end: usize, reply: Reply) {
        let at_ns = self.now_ns();
        if let Reply::Ready { trial } = reply {
            let member = self.members.iter_mut().find(|member| {
                member.number == trial
                    && member.end == end
                    && matches!(member.state, State::Preparing)
            });
            if let Some(member) = member {
                member.state = State::Ready;
            }
            return;
        }
        if let Reply::Waiting { trial, phase } = reply {
            let member = self
                .members
                .iter_mut()
                .find(|member| member.number == trial && member.end == end && !member.has_ended());
            if let Some(member) = member {
                member.state = State::Waiting(phase);
            }
            return;
        }
        let mut reply = Some(reply);
        for member in self.members.iter_mut().filter(|member| member.end == end) {
            let Some(said) = reply.take() else {
                return;
            };
            match about(said, member.number) {
                Ok(WorkerReply::Last(outcome)) if !member.has_ended() => {
                    member.state = State::Ended {
                        outcome: judged(outcome, member.went_on_ns.is_some()),
                        at_ns,
                    };
                }
                Ok(_) => {}
                Err(other) => reply = Some(other),
            }
        }
        if let Some(
            Reply::Done { trial, .. }
            | Reply::Unavailable { trial, .. }
            | Reply::Failed { trial, .. },
        ) = reply
        {
            self.others_ended.push((end, trial));
        }
    }

    /// Whether a worker that is not a member has ended.
    pub(super) fn has_other_ended(&self, end: usize, number: u64) -> bool {
        self.others_ended.contains(&(end, number))
    }

    /// Marks every running worker of this end as failed.
    pub(super) fn end_all(&mut self, end: usize, failure: &Failure) {
        let at_ns = self.now_ns();
        for member in &mut self.members {
            if member.end == end && !member.has_ended() {
                member.state = State::Ended {
                    outcome: Outcome::Failed(failure.clone()),
                    at_ns,
                };
            }
        }
    }

    /// Handles an end that does not answer.
    pub(super) fn deal_with(&mut self, end: usize, no_reply: NoReply) -> Result<(), Cancelled> {
        match no_reply {
            NoReply::Cancelled => {
                // Their answers are irrelevant: everything is removed next.
                for end in 0..self.ends.len() {
                    let _ = self.stop_workers(end);
                }
                Err(Cancelled)
            }
            NoReply::TimedOut => {
                if let Err(no_reply) = self.stop_workers(end) {
                    return self.deal_with(end, no_reply);
                }
                let limit_ns = self.limit_ns;
                self.end_all(end, &Failure::TimedOut { limit_ns });
                Ok(())
            }
            NoReply::Lost(failure) => {
                self.lost[end] = true;
                self.end_all(end, &failure);
                Ok(())
            }
        }
    }

    /// Cancels every running worker of this end and waits until they are reaped.
    pub(super) fn stop_workers(&mut self, end: usize) -> Result<(), NoReply> {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if member.end != end || member.has_ended() {
                continue;
            }
            self.end_worker(end, member.number)?;
        }
        Ok(())
    }

    /// Cancels a worker of this end and waits until it has been reaped.
    pub(super) fn end_worker(&mut self, end: usize, number: u64) -> Result<(), NoReply> {
        let mut strays = Vec::new();
        let channel = self.ends[end].channel();
        let ended = self.dispatcher.end_worker(channel, number, &mut strays);
        // Several workers may share an end, and another of them may have ended meanwhile.
        for stray in strays {
            self.take(end, stray);
        }
        ended
    }

    /// Ends all other workers after one has failed.
    pub(super) fn end_the_others(&mut self) -> Result<(), Cancelled> {
        for end in 0..self.ends.len() {
            match self.stop_workers(end) {
                Ok(()) => self.end_all(end, &ended_with_another()),
                Err(no_reply) => self.deal_with(end, no_reply)?,
            }
        }
        Ok(())
    }
}

/// Rejects a worker that completed without waiting: it measured alone.
fn judged(outcome: Outcome, went_on: bool) -> Outcome {
    match outcome {
        Outcome::Completed(_) if !went_on => Outcome::Failed(Failure::Garbled(
            "it ended without having waited for the others".into(),
        )),
        other => other,
    }
}
