//! One trial: from a recipe to an outcome, over the channel.
//!
//! Between the dispatch and the last reply the host does nothing but wait: no event, no write, no poll of
//! the environment. The wait is cut into slices only so that Ctrl-C is seen; the first slice is longer than
//! an ordinary trial, so that nobody wakes up during one, and the later ones wake for microseconds every
//! quarter of a second. The worker's limit is kept by the agent; the host waits a little longer, then asks
//! for the worker's end, and if even that is not answered, the arm is lost.
//! What it cannot see: what the worker does. Raw output is passed on unread.

use std::time::Duration;

use tare_model::outcome::{Bytes, Exit};
use tare_model::wire::{Reply, Request};
use tare_model::{
    Failure, LIFECYCLE_FORMAT, LifecycleReport, Outcome, Path, ProbeCall, RawOutput, Reason,
    Recipe, Spread, Study, Trial,
};

use super::cluster::Calls;
use super::pair::Others;
use super::rig::{Arm, NoStart, SLICE, Trouble, greet, stop};
use crate::cx::Context;
use crate::env::{Channel, ChannelError, EnvError, Instance, StartMode};

/// How long after a worker's limit its agent may still say so.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// How long an agent may take to answer `Cancel` before it is taken for lost.
const CANCEL_LIMIT: Duration = Duration::from_secs(2);
/// The longest first slice of a wait. Longer trials hardly feel a host that wakes up beside them, and a
/// user who presses Ctrl-C does not wait for their end.
pub(super) const FIRST_SLICE_LIMIT: Duration = Duration::from_secs(2);
/// How long the host waits for news of Ctrl-C before it takes a failure for one.
const HEARSAY: Duration = Duration::from_millis(50);

/// What came of one trial.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) started_unix_ns: i64,
    pub(super) elapsed_ns: u64,
    /// The instance does not answer any more.
    pub(super) is_arm_lost: bool,
    /// The peer on the host does not answer any more.
    pub(super) is_peer_lost: bool,
    /// Something that went wrong beside the measurement, for a remark.
    pub(super) aside: Option<String>,
}

/// Somebody pressed Ctrl-C; the trial was ended and does not count.
#[derive(Debug)]
pub(super) struct Cancelled;

/// Why there is no reply.
pub(super) enum Silence {
    Cancelled,
    /// The worker was ended because it was over its limit; the agent is well.
    TimedOut,
    /// The agent is gone, or what it says is no frame.
    Lost(Failure),
}

/// The last word on a worker, or the port it listens on.
pub(super) enum Word {
    Listening(u16),
    Last(Outcome),
}

/// What all trials have in common.
pub(super) struct Dispatcher<'a> {
    pub(super) cx: Context<'a>,
    pub(super) target_ns: u64,
    pub(super) limit_ns: u64,
    pub(super) is_cold: bool,
    /// For each workload of the study, where its instances run.
    spreads: Vec<Option<Spread>>,
}

impl<'a> Dispatcher<'a> {
    pub(super) fn new(cx: &Context<'a>, study: &Study) -> Self {
        Self {
            cx: *cx,
            target_ns: study.trial_ns,
            limit_ns: study.limit_ns,
            is_cold: study.lifecycle == tare_model::Lifecycle::Cold,
            spreads: study.workloads.iter().map(|spec| spec.spread).collect(),
        }
    }

    /// Runs one trial.
    pub(super) fn measure(
        &self,
        trial: &Trial,
        recipe: &Recipe,
        arm: &mut Arm,
        peer: Option<&mut Arm>,
    ) -> Result<Measured, Cancelled> {
        if matches!(recipe, Recipe::Lifecycle) {
            return self.lifecycle(arm);
        }
        let recipe = &arm.spec.change.laid_into(recipe, trial.cell.path);
        let spread = self.spreads.get(trial.workload_index as usize);
        let several = match (recipe, spread.copied().flatten()) {
            (Recipe::Probe(call), Some(spread)) => Some((call, spread)),
            _ => None,
        };
        let (number, count) = (u64::from(trial.sequence), trial.cell.instances);
        let nodes = recipe.nodes(trial.cell.path);
        if !self.is_cold {
            let Some(instance) = arm.instance.as_mut() else {
                return Ok(self.nothing(
                    Outcome::Failed(Failure::Lost("it is not running".into())),
                    true,
                ));
            };
            if let Some((call, spread)) = several {
                return match arm.extra.ends(instance.as_mut(), spread, count) {
                    Ok(ends) => self.together(number, spread, count, call, ends),
                    Err(reason) => Ok(self.nothing(Outcome::Unavailable(reason), false)),
                };
            }
            let siblings = arm.siblings.as_mut().map_err(|reason| reason.clone());
            let others = Others {
                peer,
                siblings: siblings.map(Vec::as_mut_slice),
            };
            return self.execute(trial, recipe, instance.as_mut(), others);
        }
        match arm.environment.start(&self.cx, StartMode::Resident) {
            Ok(instance) => arm.passing = Some(instance),
            Err(error) => return Ok(self.not_started(error.into())),
        }
        let instance = arm.passing.as_mut().expect("it was put there just now");
        match greet(&self.cx, instance.channel()) {
            Ok(_) => {}
            Err(NoStart::Cancelled) => return Err(Cancelled),
            Err(NoStart::Trouble(trouble)) => {
                let _ = stop(&self.cx, &mut arm.passing);
                return Ok(self.not_started(trouble));
            }
        }
        if nodes > 1 {
            arm.start_siblings(&self.cx, nodes)?;
        }
        if matches!(several, Some((_, Spread::Environments))) {
            arm.start_extra_up_to(&self.cx, count.saturating_sub(1))?;
        }
        let instance = arm
            .passing
            .as_mut()
            .expect("it is there until it is stopped");
        let mut measured = if let Some((call, spread)) = several {
            match arm.extra.ends(instance.as_mut(), spread, count) {
                Ok(ends) => self.together(number, spread, count, call, ends)?,
                Err(reason) => self.nothing(Outcome::Unavailable(reason), false),
            }
        } else {
            let siblings = arm.siblings.as_mut().map_err(|reason| reason.clone());
            let others = Others {
                peer,
                siblings: siblings.map(Vec::as_mut_slice),
            };
            self.execute(trial, recipe, instance.as_mut(), others)?
        };
        let stopped = arm
            .stop_extra(&self.cx)
            .and(arm.stop_siblings(&self.cx))
            .and(stop(&self.cx, &mut arm.passing));
        if let Err(error) = stopped {
            measured.aside = Some(format!("stopping an instance: {error}"));
        }
        Ok(measured)
    }

    fn not_started(&self, trouble: Trouble) -> Measured {
        self.nothing(Outcome::Failed(Failure::Lost(trouble.why)), true)
    }

    /// An outcome without a measurement.
    pub(super) fn nothing(&self, outcome: Outcome, is_arm_lost: bool) -> Measured {
        Measured {
            outcome,
            started_unix_ns: self.cx.clock.unix_ns(),
            elapsed_ns: 0,
            is_arm_lost,
            is_peer_lost: false,
            aside: None,
        }
    }

    fn execute(
        &self,
        trial: &Trial,
        recipe: &Recipe,
        instance: &mut dyn Instance,
        others: Others<'_>,
    ) -> Result<Measured, Cancelled> {
        let number = u64::from(trial.sequence);
        match recipe {
            Recipe::Probe(call) => {
                let workdir = instance.workdir();
                self.probe(number, call, workdir, instance.channel())
            }
            Recipe::Pair { server, client } => {
                let path = trial.cell.path.unwrap_or(Path::Loopback);
                self.pair(number, path, server, client, instance, others)
            }
            Recipe::Cluster {
                nodes,
                slots,
                service,
                client,
            } => {
                let calls = Calls {
                    nodes: *nodes,
                    slots: *slots,
                    service,
                    client,
                };
                self.cluster(number, &calls, instance, others.siblings)
            }
            Recipe::Lifecycle => unreachable!("a lifecycle needs no instance and was dealt with"),
        }
    }

    fn probe(
        &self,
        number: u64,
        call: &ProbeCall,
        workdir: String,
        channel: &mut dyn Channel,
    ) -> Result<Measured, Cancelled> {
        let request = self.request(number, call, self.limit_ns, workdir);
        let started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let ended = self.round(channel, number, &request, &mut Vec::new());
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        let (outcome, is_arm_lost) = self.settle(ended)?;
        Ok(Measured {
            outcome,
            started_unix_ns,
            elapsed_ns,
            is_arm_lost,
            is_peer_lost: false,
            aside: None,
        })
    }

    pub(super) fn request(
        &self,
        trial: u64,
        call: &ProbeCall,
        limit_ns: u64,
        workdir: String,
    ) -> Request {
        Request::Run {
            trial,
            call: call.clone(),
            target_ns: self.target_ns,
            limit_ns,
            workdir,
            hold: false,
            turns: None,
            cpu: None,
        }
    }

    /// Sends a request to run and waits for the last word on it. Words on other workers go to `strays`.
    pub(super) fn round(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        request: &Request,
        strays: &mut Vec<Reply>,
    ) -> Result<Outcome, Silence> {
        channel.send(request).map_err(|error| self.lost(&error))?;
        loop {
            if let Word::Last(outcome) = self.word(channel, number, self.limit_ns, strays)? {
                return Ok(outcome);
            }
        }
    }

    pub(super) fn lost(&self, error: &ChannelError) -> Silence {
        if self.is_cancelled_after_all() {
            return Silence::Cancelled;
        }
        Silence::Lost(match error {
            ChannelError::Garbled(text) => Failure::Garbled(text.clone()),
            other => Failure::Lost(other.to_string()),
        })
    }

    /// Whether Ctrl-C explains that a worker or an agent went away: the terminal sends it to every process,
    /// so that one of those may be gone before the host has heard of it.
    pub(super) fn is_cancelled_after_all(&self) -> bool {
        self.cx.clock.sleep(HEARSAY);
        self.cx.cancel.is_requested()
    }

    /// Waits for the next word on a worker, at most its limit and the grace.
    pub(super) fn word(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        limit_ns: u64,
        strays: &mut Vec<Reply>,
    ) -> Result<Word, Silence> {
        let begun_ns = self.cx.clock.now_ns();
        let patience_ns = limit_ns.saturating_add(GRACE.as_nanos() as u64);
        let ordinary = Duration::from_nanos(self.target_ns.saturating_mul(2));
        let mut slice = (ordinary + SLICE).min(FIRST_SLICE_LIMIT);
        loop {
            let waited_ns = self.cx.clock.now_ns().saturating_sub(begun_ns);
            if waited_ns >= patience_ns {
                self.end_worker(channel, number, strays)?;
                return Err(Silence::TimedOut);
            }
            let rest = Duration::from_nanos(patience_ns - waited_ns);
            match channel.receive(slice.min(rest)) {
                Ok(reply) => match about(reply, number) {
                    Ok(word) => return Ok(word),
                    Err(stray) => keep_stray(strays, stray)?,
                },
                Err(ChannelError::Timeout(_)) if self.cx.cancel.is_requested() => {
                    // Whether or not it answers: everything is removed next.
                    let _ = self.end_worker(channel, number, strays);
                    return Err(Silence::Cancelled);
                }
                Err(ChannelError::Timeout(_)) => slice = SLICE,
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    /// Asks for the end of a worker and waits until it has been reaped.
    pub(super) fn end_worker(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        strays: &mut Vec<Reply>,
    ) -> Result<(), Silence> {
        channel
            .send(&Request::Cancel { trial: number })
            .map_err(|error| self.lost(&error))?;
        let asked_ns = self.cx.clock.now_ns();
        loop {
            let waited = Duration::from_nanos(self.cx.clock.now_ns().saturating_sub(asked_ns));
            let Some(rest) = CANCEL_LIMIT
                .checked_sub(waited)
                .filter(|rest| !rest.is_zero())
            else {
                return Err(Silence::Lost(Failure::Lost(format!(
                    "its agent did not answer within {} s that the worker was to be ended",
                    CANCEL_LIMIT.as_secs()
                ))));
            };
            match channel.receive(rest) {
                Ok(reply) => match about(reply, number) {
                    Ok(Word::Last(_)) => return Ok(()),
                    Ok(Word::Listening(_)) => {}
                    Err(stray) => keep_stray(strays, stray)?,
                },
                Err(ChannelError::Timeout(_)) => {}
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    /// The outcome, and whether the agent that should have told it is lost.
    pub(super) fn settle(
        &self,
        ended: Result<Outcome, Silence>,
    ) -> Result<(Outcome, bool), Cancelled> {
        match ended {
            Ok(outcome) => {
                let is_failed = matches!(outcome, Outcome::Failed(_));
                if is_failed && self.is_cancelled_after_all() {
                    return Err(Cancelled);
                }
                Ok((outcome, false))
            }
            Err(Silence::Cancelled) => Err(Cancelled),
            Err(Silence::TimedOut) => Ok((
                Outcome::Failed(Failure::TimedOut {
                    limit_ns: self.limit_ns,
                }),
                false,
            )),
            Err(Silence::Lost(failure)) => Ok((Outcome::Failed(failure), true)),
        }
    }

    /// Creates an environment, waits for its agent's first word, and removes it; timed from outside.
    fn lifecycle(&self, arm: &mut Arm) -> Result<Measured, Cancelled> {
        let cx = &self.cx;
        let started_unix_ns = cx.clock.unix_ns();
        let origin_ns = cx.clock.now_ns();
        let since = || cx.clock.now_ns().saturating_sub(origin_ns);
        let started = match arm.environment.start(cx, StartMode::Once) {
            Err(EnvError::Absent { why, .. }) => {
                let reason = Reason::NoEnvironment(why);
                return Ok(self.nothing(Outcome::Unavailable(reason), false));
            }
            other => other.map_err(Trouble::from),
        };
        let life = (|| {
            let instance = arm.passing.insert(started?);
            greet(cx, instance.channel())?;
            let ready_ns = since();
            stop(cx, &mut arm.passing)?;
            Ok(LifecycleReport {
                created_ns: 0,
                ready_ns,
                removed_ns: since(),
            })
        })();
        let elapsed_ns = since();
        let outcome = match life {
            Ok(report) => Outcome::Completed(RawOutput {
                format: LIFECYCLE_FORMAT.into(),
                stdout: Bytes(
                    serde_json::to_vec(&report).expect("three whole numbers are always JSON"),
                ),
                stderr: Bytes::default(),
                exit: Exit::Code(0),
            }),
            Err(NoStart::Cancelled) => return Err(Cancelled),
            Err(NoStart::Trouble(_)) if cx.cancel.is_requested() => return Err(Cancelled),
            Err(NoStart::Trouble(trouble)) => Outcome::Failed(Failure::Lost(trouble.why)),
        };
        let aside = stop(cx, &mut arm.passing)
            .err()
            .map(|error: EnvError| format!("stopping an instance: {error}"));
        Ok(Measured {
            outcome,
            started_unix_ns,
            elapsed_ns,
            is_arm_lost: false,
            is_peer_lost: false,
            aside,
        })
    }
}

/// More words on other workers than this are not kept while one is waited for: there are a few of them, and
/// an agent that goes on and on must not fill this machine's memory.
const STRAYS_LIMIT: usize = 64;

/// Keeps a word on another worker for whoever asks next.
fn keep_stray(strays: &mut Vec<Reply>, stray: Reply) -> Result<(), Silence> {
    if strays.len() >= STRAYS_LIMIT {
        let words = "its agent talks and talks, and not about what it was asked";
        return Err(Silence::Lost(Failure::Garbled(words.to_owned())));
    }
    strays.push(stray);
    Ok(())
}

/// What a reply says about a worker; the reply itself if it is about another one.
pub(super) fn about(reply: Reply, number: u64) -> Result<Word, Reply> {
    match reply {
        Reply::Listening { trial, port } if trial == number => Ok(Word::Listening(port)),
        Reply::Done { trial, raw } if trial == number => Ok(Word::Last(Outcome::Completed(raw))),
        Reply::Unavailable { trial, reason } if trial == number => {
            Ok(Word::Last(Outcome::Unavailable(reason)))
        }
        Reply::Failed { trial, failure } if trial == number => {
            Ok(Word::Last(Outcome::Failed(failure)))
        }
        other => Err(other),
    }
}
