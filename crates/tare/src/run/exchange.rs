//! The messages between host and agent about one trial.
//!
//! Between the request and the last reply the host only waits: no events, no writes, no polling of the environment.
//! The wait is cut into slices only to notice Ctrl-C. The first slice is longer than an ordinary trial, so that the
//! host does not wake up during one; later ones wake it for microseconds every quarter of a second. The agent
//! enforces the worker's time limit. The host waits a little longer, then cancels the worker; if that is not answered
//! either, the arm is lost. Raw output is passed on unread.

use std::time::Duration;

use tare_model::wire::{Reply, Request};
use tare_model::{Failure, Outcome, ProbeCall, Spread, Study, Turns, whole_ns};

use crate::cx::Context;
pub(super) use crate::env::question::SLICE;
use crate::env::{Channel, ChannelError};
pub(super) use crate::service::Cancelled;

/// How long after a worker's limit its agent may still report that.
const GRACE: Duration = Duration::from_secs(2);
/// How long an agent may take to answer `Cancel` before it counts as lost. An agent that gets almost no CPU time
/// answers late.
const CANCEL_LIMIT: Duration = Duration::from_secs(15);
/// The same after the user has asked to stop.
const CANCEL_LIMIT_AT_END: Duration = Duration::from_secs(2);
/// The longest first slice of a wait. A host that wakes up hardly affects longer trials, and after Ctrl-C the user
/// need not wait for their end.
const FIRST_SLICE_LIMIT: Duration = Duration::from_secs(2);
/// How long the host waits for Ctrl-C to arrive before it treats a failure as one.
const HEARSAY: Duration = Duration::from_millis(50);

/// Result of one trial.
pub(super) struct Measured {
    pub(super) outcome: Outcome,
    pub(super) started_unix_ns: i64,
    pub(super) elapsed_ns: u64,
    /// Whether the instance has stopped answering.
    pub(super) is_arm_lost: bool,
    /// Whether the peer on the host has stopped answering.
    pub(super) is_peer_lost: bool,
    /// A problem outside the measurement, for a remark.
    pub(super) aside: Option<String>,
}

/// Why there is no reply.
pub(super) enum NoReply {
    Cancelled,
    /// The worker exceeded its limit and was ended; the agent is fine.
    TimedOut,
    /// The agent is gone, or sent something that is not a frame.
    Lost(Failure),
}

/// How a worker ended.
pub(super) type Ended = Result<Outcome, NoReply>;

/// The last reply about a worker, or the port it listens on.
pub(super) enum WorkerReply {
    Listening(u16),
    Last(Outcome),
}

/// What all trials share.
pub(super) struct Dispatcher<'a> {
    pub(super) cx: Context<'a>,
    pub(super) target_ns: u64,
    pub(super) limit_ns: u64,
    pub(super) is_cold: bool,
    /// Where the instances of each workload run.
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

    /// Does `work`; also returns when it began and how long it took, nanoseconds.
    pub(super) fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, i64, u64) {
        let started_unix_ns = self.cx.clock.unix_ns();
        let started_ns = self.cx.clock.now_ns();
        let done = work();
        let elapsed_ns = self.cx.clock.now_ns().saturating_sub(started_ns);
        (done, started_unix_ns, elapsed_ns)
    }

    /// Sends a request to run and waits for its last reply. Replies about other workers go to `strays`.
    pub(super) fn round(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        request: &Request,
        strays: &mut Vec<Reply>,
    ) -> Ended {
        channel.send(request).map_err(|error| self.lost(&error))?;
        loop {
            if let WorkerReply::Last(outcome) = self.worker_reply(channel, number, strays)? {
                return Ok(outcome);
            }
        }
    }

    /// Starts a worker that serves the others; returns the port it listens on, or how it ended instead. `what` names
    /// it in a failure.
    pub(super) fn listen(
        &self,
        channel: &mut dyn Channel,
        (number, request): (u64, &Request),
        what: &str,
        strays: &mut Vec<Reply>,
    ) -> Result<u16, Ended> {
        let sent = channel.send(request);
        sent.map_err(|error| Err(self.lost(&error)))?;
        match self.worker_reply(channel, number, strays) {
            Ok(WorkerReply::Listening(port)) => Ok(port),
            Ok(WorkerReply::Last(Outcome::Completed(_))) => Err(Ok(Outcome::Failed(
                Failure::Garbled(format!("the {what} ended without having listened")),
            ))),
            Ok(WorkerReply::Last(outcome)) => Err(Ok(outcome)),
            Err(no_reply) => Err(Err(no_reply)),
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

    /// Whether Ctrl-C explains that a worker or agent is gone: the terminal sends it to every process, and one of
    /// those may end before the host gets the signal.
    pub(super) fn is_cancelled_after_all(&self) -> bool {
        self.cx.clock.sleep(HEARSAY);
        self.cx.cancel.is_requested()
    }

    /// Length of the first wait for one of so many workers: longer than the work, so that the host does not wake up
    /// during it.
    pub(super) fn first_slice(&self, n_workers: usize) -> Duration {
        let ordinary = self.target_ns.saturating_mul(2);
        let all = ordinary.saturating_mul(n_workers as u64);
        (Duration::from_nanos(all) + SLICE).min(FIRST_SLICE_LIMIT)
    }

    /// Waits for the next reply about a worker, at most its limit plus the grace period.
    fn worker_reply(
        &self,
        channel: &mut dyn Channel,
        number: u64,
        strays: &mut Vec<Reply>,
    ) -> Result<WorkerReply, NoReply> {
        let begun_ns = self.cx.clock.now_ns();
        let patience_ns = with_grace(self.limit_ns);
        let mut slice = self.first_slice(1);
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
                    // Its answer is irrelevant: everything is removed next.
                    let _ = self.end_worker(channel, number, strays);
                    return Err(NoReply::Cancelled);
                }
                Err(ChannelError::Timeout(_)) => slice = SLICE,
                Err(error) => return Err(self.lost(&error)),
            }
        }
    }

    /// Cancels a worker and waits until it has been reaped.
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

    /// Returns the outcome, and whether the agent is lost.
    pub(super) fn settle(&self, ended: Ended) -> Result<(Outcome, bool), Cancelled> {
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

/// How long the host waits for a worker with this limit.
pub(super) fn with_grace(limit_ns: u64) -> u64 {
    limit_ns.saturating_add(whole_ns(GRACE))
}

/// Most replies about other workers that are kept during a wait. Normally there are few; an agent that sends
/// endlessly must not fill the host's memory.
const STRAYS_LIMIT: usize = 64;

/// Keeps a reply about another worker for later.
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

/// The request with the CPU and duration of a worker that alternates with others, or waits while they run.
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
