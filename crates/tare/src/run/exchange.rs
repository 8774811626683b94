//! The words between host and agent about one trial, over the channel.
//!
//! Between the dispatch and the last reply the host does nothing but wait: no event, no write, no poll of
//! the environment. The wait is cut into slices only so that Ctrl-C is seen; the first slice is longer than
//! an ordinary trial, so that nobody wakes up during one, and the later ones wake for microseconds every
//! quarter of a second. The worker's limit is kept by the agent; the host waits a little longer, then asks
//! for the worker's end, and if even that is not answered, the arm is lost.
//! What it cannot see: what the worker does. Raw output is passed on unread.

use std::time::Duration;

use tare_model::wire::{Reply, Request};
use tare_model::{Failure, Outcome, ProbeCall, Spread, Study, Turns, whole_ns};

use crate::cx::Context;
pub(super) use crate::env::question::SLICE;
use crate::env::{Channel, ChannelError};

/// How long after a worker's limit its agent may still say so.
pub(super) const GRACE: Duration = Duration::from_secs(2);
/// How long an agent may take to answer `Cancel` before it is taken for lost: one whose arm hardly gets a processor
/// answers late.
const CANCEL_LIMIT: Duration = Duration::from_secs(15);
/// The same once the user has asked to stop.
const CANCEL_LIMIT_AT_END: Duration = Duration::from_secs(2);
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
pub(super) enum NoReply {
    Cancelled,
    /// The worker was ended because it was over its limit; the agent is well.
    TimedOut,
    /// The agent is gone, or what it says is no frame.
    Lost(Failure),
}

/// The last word on a worker, or the port it listens on.
pub(super) enum WorkerReply {
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
    pub(super) spreads: Vec<Option<Spread>>,
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
    ) -> Result<Outcome, NoReply> {
        channel.send(request).map_err(|error| self.lost(&error))?;
        loop {
            if let WorkerReply::Last(outcome) =
                self.worker_reply(channel, number, self.limit_ns, strays)?
            {
                return Ok(outcome);
            }
        }
    }

    pub(super) fn lost(&self, error: &ChannelError) -> NoReply {
        if self.is_cancelled_after_all() {
            return NoReply::Cancelled;
        }
        NoReply::Lost(match error {
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
    pub(super) fn worker_reply(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        limit_ns: u64,
        strays: &mut Vec<Reply>,
    ) -> Result<WorkerReply, NoReply> {
        let begun_ns = self.cx.clock.now_ns();
        let patience_ns = limit_ns.saturating_add(whole_ns(GRACE));
        let ordinary = Duration::from_nanos(self.target_ns.saturating_mul(2));
        let mut slice = (ordinary + SLICE).min(FIRST_SLICE_LIMIT);
        loop {
            let waited_ns = self.cx.clock.now_ns().saturating_sub(begun_ns);
            if waited_ns >= patience_ns {
                self.end_worker(channel, number, strays)?;
                return Err(NoReply::TimedOut);
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
                    return Err(NoReply::Cancelled);
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
    ) -> Result<(), NoReply> {
        channel
            .send(&Request::Cancel { trial: number })
            .map_err(|error| self.lost(&error))?;
        let asked_ns = self.cx.clock.now_ns();
        loop {
            let waited = Duration::from_nanos(self.cx.clock.now_ns().saturating_sub(asked_ns));
            let limit = if self.cx.cancel.is_requested() {
                CANCEL_LIMIT_AT_END
            } else {
                CANCEL_LIMIT
            };
            let Some(rest) = limit.checked_sub(waited).filter(|rest| !rest.is_zero()) else {
                return Err(NoReply::Lost(Failure::Lost(format!(
                    "its agent did not answer within {} s that the worker was to be ended",
                    limit.as_secs()
                ))));
            };
            match channel.receive(rest.min(SLICE)) {
                Ok(reply) => match about(reply, number) {
                    Ok(WorkerReply::Last(_)) => return Ok(()),
                    Ok(WorkerReply::Listening(_)) => {}
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
        ended: Result<Outcome, NoReply>,
    ) -> Result<(Outcome, bool), Cancelled> {
        match ended {
            Ok(outcome) => {
                let is_failed = matches!(outcome, Outcome::Failed(_));
                if is_failed && self.is_cancelled_after_all() {
                    return Err(Cancelled);
                }
                Ok((outcome, false))
            }
            Err(NoReply::Cancelled) => Err(Cancelled),
            Err(NoReply::TimedOut) => Ok((
                Outcome::Failed(Failure::TimedOut {
                    limit_ns: self.limit_ns,
                }),
                false,
            )),
            Err(NoReply::Lost(failure)) => Ok((Outcome::Failed(failure), true)),
        }
    }
}

/// More words on other workers than this are not kept while one is waited for: there are a few of them, and
/// an agent that goes on and on must not fill this machine's memory.
const STRAYS_LIMIT: usize = 64;

/// Keeps a word on another worker for whoever asks next.
fn keep_stray(strays: &mut Vec<Reply>, stray: Reply) -> Result<(), NoReply> {
    if strays.len() >= STRAYS_LIMIT {
        let words = "its agent talks and talks, and not about what it was asked";
        return Err(NoReply::Lost(Failure::Garbled(words.to_owned())));
    }
    strays.push(stray);
    Ok(())
}

/// What a reply says about a worker; the reply itself if it is about another one.
pub(super) fn about(reply: Reply, number: u64) -> Result<WorkerReply, Reply> {
    match reply {
        Reply::Listening { trial, port } if trial == number => Ok(WorkerReply::Listening(port)),
        Reply::Done { trial, raw } if trial == number => {
            Ok(WorkerReply::Last(Outcome::Completed(raw)))
        }
        Reply::Unavailable { trial, reason } if trial == number => {
            Ok(WorkerReply::Last(Outcome::Unavailable(reason)))
        }
        Reply::Failed { trial, failure } if trial == number => {
            Ok(WorkerReply::Last(Outcome::Failed(failure)))
        }
        other => Err(other),
    }
}

/// The request, of a worker that runs for so long on this processor while others of its block wait, and may take turns
/// with them.
pub(super) fn taking_part(
    mut request: Request,
    on: Option<u32>,
    for_ns: u64,
    in_turn: Option<Turns>,
) -> Request {
    if let Request::Run {
        hold,
        turns,
        cpu,
        target_ns,
        ..
    } = &mut request
    {
        *hold = in_turn.is_some();
        *turns = in_turn;
        *cpu = on;
        *target_ns = for_ns;
    }
    request
}
