//! A trial that is under way, however its worker is waited for.

use std::io::Write;
use std::time::Instant;

use tare_model::outcome::Exit;
use tare_model::wire::{Reply, Request, write_frame};

use super::{Ended, Killed, conclude, deadline};

/// The worker of a trial, as each server has it.
pub(super) trait Worker {
    /// What it is told through.
    type Stdin: Write;

    /// Where it is told what comes; closed when the last request has been written.
    fn stdin(&mut self) -> &mut Option<Self::Stdin>;

    /// Whether it has ended and was reaped.
    fn is_reaped(&self) -> bool;

    /// Kills it.
    fn kill(&mut self);

    /// The end of its standard error.
    fn into_tail(self) -> Vec<u8>;
}

/// A trial that is under way.
pub(super) struct Trial<W> {
    pub(super) number: u64,
    limit_ns: u64,
    pub(super) deadline: Instant,
    /// Whether there is more to tell the worker after it was let go.
    takes_turns: bool,
    pub(super) worker: W,
    pub(super) killed: Option<Killed>,
    pub(super) answer: Result<Option<Reply>, String>,
}

impl<W: Worker> Trial<W> {
    /// One that begins now.
    pub(super) fn begin(number: u64, limit_ns: u64, takes_turns: bool, worker: W) -> Self {
        Self {
            number,
            limit_ns,
            deadline: deadline(limit_ns),
            takes_turns,
            worker,
            killed: None,
            answer: Ok(None),
        }
    }

    /// Lets a worker that is held go on; its limit counts from here. One that is gone already is reported like one that
    /// ended at work.
    pub(super) fn let_go(&mut self, request: &Request) {
        if let Some(stdin) = self.worker.stdin() {
            self.deadline = deadline(self.limit_ns);
            let _ = write_frame(stdin, request);
        }
        if !self.takes_turns {
            // A probe that reads finds the end.
            *self.worker.stdin() = None;
        }
    }

    /// Tells the worker that the next slice is its own.
    pub(super) fn give_turn(&mut self, request: &Request) {
        if let Some(stdin) = self.worker.stdin() {
            let _ = write_frame(stdin, request);
        }
    }

    /// Kills the worker, unless it was killed or has ended.
    pub(super) fn end(&mut self, why: Killed) {
        if self.killed.is_none() && !self.worker.is_reaped() {
            self.killed = Some(why);
            self.worker.kill();
        }
    }

    /// Kills the workers that are over their limits at this moment.
    pub(super) fn end_late_ones(all: &mut [Self]) {
        let now = Instant::now();
        for trial in all.iter_mut().filter(|trial| now >= trial.deadline) {
            trial.end(Killed::Limit);
        }
    }

    /// The reply about it when its worker has ended in this way.
    pub(super) fn conclude(self, exit: Exit) -> Reply {
        conclude(Ended {
            trial: self.number,
            limit_ns: self.limit_ns,
            killed: self.killed,
            exit,
            answer: self.answer,
            stderr: self.worker.into_tail(),
        })
    }
}
