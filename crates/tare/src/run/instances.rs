//! A trial with several instances at once: all are prepared, then all are started together.
//!
//! Every worker is held after its preparations; only when the last one is ready are all told to go on, one
//! message after the other without anything in between. What is left between the first and the last start is
//! recorded by the workers themselves and reported, not assumed away. The trial is one record with every
//! instance's own raw output; one instance that fails fails the trial, and the others' output is kept.
//! Two ways to spread them: as processes of one instance of the arm, or each in an instance of its own. The
//! latter are started with the arm and stay beside the first, idle, while other workloads are measured.
//! What it cannot see: whether the instances really ran at the same time. One that is done early leaves the
//! others alone; the analysis computes the overlap from what the workers report.

use std::time::Duration;

use tare_model::outcome::{Bytes, Exit};
use tare_model::together::ended_with_another;
use tare_model::wire::{Reply, Request};
use tare_model::{
    Failure, INSTANCES_FORMAT, InstanceRecord, Outcome, ProbeCall, RawOutput, Reason, Spread,
    Together,
};

use super::dispatch::{
    Cancelled, Dispatcher, FIRST_SLICE_LIMIT, GRACE, Measured, Silence, Word, about,
};
use super::rig::{Arm, NoStart, SLICE, greet};
use crate::cx::Context;
use crate::env::{ChannelError, EnvError, Instance, StartMode};

/// Where the number of an instance stands in the number of its worker: above that of the trial and above the
/// mark of a pair's server.
const INSTANCE_SHIFT: u32 = 33;

/// How long an end is listened to whose time is over already.
const LAST_LOOK: Duration = Duration::from_millis(1);

/// The instances of an arm beside its first.
#[derive(Default)]
pub(super) struct Extra {
    /// How many there should be.
    wanted: u32,
    instances: Vec<Box<dyn Instance>>,
    /// Why there are fewer.
    shortage: Option<Reason>,
}

impl Extra {
    /// None yet; so many are to be started with the arm.
    pub(super) fn new(wanted: u32) -> Self {
        Self {
            wanted,
            ..Self::default()
        }
    }

    /// The instances for `count` workers: `first` alone for processes, as many as workers otherwise.
    pub(super) fn ends<'a>(
        &'a mut self,
        first: &'a mut dyn Instance,
        spread: Spread,
        count: u32,
    ) -> Result<Vec<&'a mut dyn Instance>, Reason> {
        let needed = match spread {
            Spread::Processes => 0,
            Spread::Environments => count.saturating_sub(1) as usize,
        };
        if self.instances.len() < needed {
            return Err(self
                .shortage
                .clone()
                .unwrap_or_else(|| Reason::NoEnvironment("its instances are not running".into())));
        }
        let mut ends = vec![first];
        for instance in &mut self.instances[..needed] {
            ends.push(instance.as_mut());
        }
        Ok(ends)
    }
}

impl Arm {
    /// Starts the instances beside the first. An arm that cannot have as many is an arm all the same: then the
    /// reason is kept for the workloads that need them.
    pub(super) fn start_extra(&mut self, cx: &Context<'_>) -> Result<(), Cancelled> {
        self.start_extra_up_to(cx, self.extra.wanted)
    }

    /// The same with a number of its own, for a trial that has instances of its own.
    pub(super) fn start_extra_up_to(
        &mut self,
        cx: &Context<'_>,
        count: u32,
    ) -> Result<(), Cancelled> {
        self.extra.shortage = None;
        while self.extra.instances.len() < count as usize {
            let started = self
                .environment
                .start(cx, StartMode::Resident)
                .map_err(NoStart::from)
                .and_then(|mut instance| match greet(cx, instance.channel()) {
                    Ok(_) => Ok(instance),
                    Err(silence) => {
                        // Why it does not answer is what the reader needs.
                        let _ = instance.stop(cx);
                        Err(silence)
                    }
                });
            match started {
                Ok(instance) => self.extra.instances.push(instance),
                Err(NoStart::Cancelled) => return Err(Cancelled),
                Err(NoStart::Trouble(trouble)) => {
                    self.extra.shortage = Some(Reason::NoEnvironment(format!(
                        "instance {} of this environment beside the others: {}",
                        self.extra.instances.len() + 2,
                        trouble.why
                    )));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Stops the instances beside the first; the first failure is told, and keeps no other from being stopped.
    pub(super) fn stop_extra(&mut self, cx: &Context<'_>) -> Result<(), EnvError> {
        let mut result = Ok(());
        while let Some(instance) = self.extra.instances.pop() {
            let stopped = instance.stop(cx);
            result = result.and(stopped);
        }
        result
    }
}

/// How far one worker is.
enum State {
    Preparing,
    Ready,
    Running,
    Ended { outcome: Outcome, at_ns: u64 },
}

/// One worker of the trial.
struct Member {
    number: u64,
    /// The place of its instance in the list of ends.
    end: usize,
    state: State,
    went_on_ns: Option<u64>,
}

impl Member {
    fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended { .. })
    }
}

/// All workers of one trial.
struct Group<'d, 'c, 'e> {
    dispatcher: &'d Dispatcher<'c>,
    ends: Vec<&'e mut dyn Instance>,
    members: Vec<Member>,
    is_lost: bool,
}

impl Dispatcher<'_> {
    /// So many workers of one call at once, spread over `ends` in turn.
    pub(super) fn together(
        &self,
        trial: u64,
        spread: Spread,
        count: u32,
        call: &ProbeCall,
        ends: Vec<&mut dyn Instance>,
    ) -> Result<Measured, Cancelled> {
        let members = (0..count)
            .map(|index| Member {
                number: trial | (u64::from(index) + 1) << INSTANCE_SHIFT,
                end: index as usize % ends.len(),
                state: State::Preparing,
                went_on_ns: None,
            })
            .collect();
        let started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let mut group = Group {
            dispatcher: self,
            ends,
            members,
            is_lost: false,
        };
        group.carry_out(call)?;
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        let is_failed = |member: &Member| {
            matches!(
                member.state,
                State::Ended {
                    outcome: Outcome::Failed(_),
                    ..
                }
            )
        };
        if group.members.iter().any(is_failed) && self.is_cancelled_after_all() {
            return Err(Cancelled);
        }
        let is_arm_lost = group.is_lost;
        let together = group.into_record(spread);
        Ok(Measured {
            started_unix_ns,
            elapsed_ns,
            is_arm_lost,
            is_peer_lost: false,
            aside: is_arm_lost.then(|| together.problem()).flatten(),
            outcome: outcome(&together),
        })
    }
}

/// The trial's outcome: everything that was left, or, where no instance left anything because the call cannot
/// be run here, the reason.
fn outcome(together: &Together) -> Outcome {
    let outcomes = || together.instances.iter().map(|record| &record.outcome);
    let is_completed = |outcome: &Outcome| matches!(outcome, Outcome::Completed(_));
    if !outcomes().any(is_completed)
        && let Some(reason) = outcomes().find_map(|outcome| match outcome {
            Outcome::Unavailable(reason) => Some(reason.clone()),
            _ => None,
        })
    {
        return Outcome::Unavailable(reason);
    }
    Outcome::Completed(RawOutput {
        format: INSTANCES_FORMAT.into(),
        stdout: Bytes(
            serde_json::to_vec(together).expect("texts and whole numbers are always JSON"),
        ),
        stderr: Bytes::default(),
        exit: Exit::Code(i32::from(!outcomes().all(is_completed))),
    })
}

impl Group<'_, '_, '_> {
    fn now_ns(&self) -> u64 {
        self.dispatcher.cx.clock.now_ns()
    }

    fn carry_out(&mut self, call: &ProbeCall) -> Result<(), Cancelled> {
        for index in 0..self.members.len() {
            let Member { number, end, .. } = self.members[index];
            let workdir = self.ends[end].workdir();
            let limit_ns = self.dispatcher.limit_ns;
            let request = self.dispatcher.request(number, call, limit_ns, workdir);
            self.send(end, &held(request))?;
        }
        let is_prepared = |member: &Member| !matches!(member.state, State::Preparing);
        self.wait_until(is_prepared, true)?;
        if self.members.iter().any(Member::has_ended) {
            return self.end_the_others();
        }
        for index in 0..self.members.len() {
            let now_ns = self.now_ns();
            let member = &mut self.members[index];
            member.went_on_ns = Some(now_ns);
            member.state = State::Running;
            let Member { number, end, .. } = *member;
            self.send(end, &Request::Go { trial: number })?;
        }
        self.wait_until(Member::has_ended, false)
    }

    fn send(&mut self, end: usize, request: &Request) -> Result<(), Cancelled> {
        if let Err(error) = self.ends[end].channel().send(request) {
            let silence = self.dispatcher.lost(&error);
            self.deal_with(end, silence)?;
        }
        Ok(())
    }

    /// Waits until every member is as wanted; with `or_ended`, at most until one of them has ended.
    fn wait_until(
        &mut self,
        is_wanted: impl Fn(&Member) -> bool,
        or_ended: bool,
    ) -> Result<(), Cancelled> {
        let begun_ns = self.now_ns();
        let ordinary = Duration::from_nanos(self.dispatcher.target_ns.saturating_mul(2));
        let mut slice = (ordinary + SLICE).min(FIRST_SLICE_LIMIT);
        for end in 0..self.ends.len() {
            loop {
                if or_ended && self.members.iter().any(Member::has_ended) {
                    return Ok(());
                }
                let is_missing = |member: &Member| member.end == end && !is_wanted(member);
                if !self.members.iter().any(is_missing) {
                    break;
                }
                if let Err(silence) = self.hear(end, begun_ns, &mut slice) {
                    self.deal_with(end, silence)?;
                }
            }
        }
        Ok(())
    }

    /// Takes one word from an end.
    fn hear(&mut self, end: usize, begun_ns: u64, slice: &mut Duration) -> Result<(), Silence> {
        let patience_ns = self
            .dispatcher
            .limit_ns
            .saturating_add(GRACE.as_nanos() as u64);
        let mut has_looked = false;
        loop {
            let waited_ns = self.now_ns().saturating_sub(begun_ns);
            if waited_ns >= patience_ns && has_looked {
                return Err(Silence::TimedOut);
            }
            // What arrived while the host waited for another end counts, however long that took.
            has_looked = true;
            let rest = Duration::from_nanos(patience_ns.saturating_sub(waited_ns)).max(LAST_LOOK);
            match self.ends[end].channel().receive((*slice).min(rest)) {
                Ok(reply) => {
                    self.take(end, reply);
                    return Ok(());
                }
                Err(ChannelError::Timeout(_)) if self.dispatcher.cx.cancel.is_requested() => {
                    return Err(Silence::Cancelled);
                }
                Err(ChannelError::Timeout(_)) => *slice = SLICE,
                Err(error) => return Err(self.dispatcher.lost(&error)),
            }
        }
    }

    /// Notes what a worker of this end said; what is about nobody here comes from an earlier trial.
    fn take(&mut self, end: usize, reply: Reply) {
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
        let mut reply = Some(reply);
        for member in self.members.iter_mut().filter(|member| member.end == end) {
            let Some(said) = reply.take() else {
                return;
            };
            match about(said, member.number) {
                Ok(Word::Last(outcome)) if !member.has_ended() => {
                    member.state = State::Ended {
                        outcome: judged(outcome, member.went_on_ns.is_some()),
                        at_ns,
                    };
                }
                Ok(_) => {}
                Err(other) => reply = Some(other),
            }
        }
    }

    /// Every worker of this end that has not ended ends so.
    fn end_all(&mut self, end: usize, failure: &Failure) {
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

    /// What follows when an end is silent.
    fn deal_with(&mut self, end: usize, silence: Silence) -> Result<(), Cancelled> {
        match silence {
            Silence::Cancelled => {
                // Whether or not they answer: everything is removed next.
                for end in 0..self.ends.len() {
                    let _ = self.stop_workers(end);
                }
                Err(Cancelled)
            }
            Silence::TimedOut => {
                if let Err(silence) = self.stop_workers(end) {
                    return self.deal_with(end, silence);
                }
                let limit_ns = self.dispatcher.limit_ns;
                self.end_all(end, &Failure::TimedOut { limit_ns });
                Ok(())
            }
            Silence::Lost(failure) => {
                self.is_lost = true;
                self.end_all(end, &failure);
                Ok(())
            }
        }
    }

    /// Asks for the end of every worker of this end that has not ended, and waits until they are reaped.
    fn stop_workers(&mut self, end: usize) -> Result<(), Silence> {
        for index in 0..self.members.len() {
            let member = &self.members[index];
            if member.end != end || member.has_ended() {
                continue;
            }
            let number = member.number;
            let mut strays = Vec::new();
            let channel = self.ends[end].channel();
            let ended = self.dispatcher.end_worker(channel, number, &mut strays);
            for stray in strays {
                self.take(end, stray);
            }
            ended?;
        }
        Ok(())
    }

    /// One did not get ready: the others are not started.
    fn end_the_others(&mut self) -> Result<(), Cancelled> {
        for end in 0..self.ends.len() {
            match self.stop_workers(end) {
                Ok(()) => self.end_all(end, &ended_with_another()),
                Err(silence) => self.deal_with(end, silence)?,
            }
        }
        Ok(())
    }

    fn into_record(self, spread: Spread) -> Together {
        let now_ns = self.now_ns();
        let instances = self
            .members
            .into_iter()
            .map(|member| {
                let (outcome, end_ns) = match member.state {
                    State::Ended { outcome, at_ns } => (outcome, at_ns),
                    _ => (Outcome::Failed(ended_with_another()), now_ns),
                };
                InstanceRecord {
                    outcome,
                    start_ns: member.went_on_ns,
                    end_ns,
                }
            })
            .collect();
        Together { spread, instances }
    }
}

/// A worker that completes without having waited measured alone.
fn judged(outcome: Outcome, went_on: bool) -> Outcome {
    match outcome {
        Outcome::Completed(_) if !went_on => Outcome::Failed(Failure::Garbled(
            "it ended without having waited for the others".into(),
        )),
        other => other,
    }
}

/// The request, with the worker held until all are ready.
fn held(request: Request) -> Request {
    match request {
        Request::Run {
            trial,
            call,
            target_ns,
            limit_ns,
            workdir,
            ..
        } => Request::Run {
            trial,
            call,
            target_ns,
            limit_ns,
            workdir,
            hold: true,
        },
        other => other,
    }
}
