//! A running trial, independent of how the server waits for its worker.

use std::io::Write;
use std::time::Instant;

use tare_model::outcome::Exit;
use tare_model::wire::{Reply, Request, write_frame};

use super::{Ended, Killed, conclude, deadline};

/// The worker of a trial, implemented by each server.
pub(super) trait Worker {
    /// The stream for requests to the worker.
    type Stdin: Write;

    /// The worker's standard input; closed when the last request has been written.
    fn stdin(&mut self) -> &mut Option<Self::Stdin>;

    /// Whether it has ended and was reaped.
    fn is_reaped(&self) -> bool;

    /// Kills the worker.
    fn kill(&mut self);

    /// Returns the end of its standard error.
    fn into_tail(self) -> Vec<u8>;
}

/// A running trial.
pub(super) struct Trial<W> {
    pub(super) number: u64,
    limit_ns: u64,
    pub(super) deadline: Instant,
    /// Whether more requests follow after the worker was let go.
    takes_turns: bool,
    pub(super) worker: W,
    pub(super) killed: Option<Killed>,
    pub(super) answer: Result<Option<Reply>, String>,
}

impl<W: Worker> Trial<W> {
    /// Starts a trial now.
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

    /// Lets a held worker continue; its limit counts from here. A worker that is already gone is reported like one
    /// that ended during its trial.
    pub(super) fn let_go(&mut self, request: &Request) {
        if let Some(stdin) = self.worker.stdin() {
            self.deadline = deadline(self.limit_ns);
            let _ = write_frame(stdin, request);
        }
        if !self.takes_turns {
            // A probe that reads gets EOF.
            *self.worker.stdin() = None;
        }
    }

    /// Gives the next slice to the worker.
    pub(super) fn give_turn(&mut self, request: &Request) {
        if let Some(stdin) = self.worker.stdin() {
            let _ = write_frame(stdin, request);
        }
    }

    /// Kills the worker, unless it was already killed or has ended.
    pub(super) fn end(&mut self, why: Killed) {
        if self.killed.is_none() && !self.worker.is_reaped() {
            self.killed = Some(why);
            self.worker.kill();
        }
    }

    /// Kills the workers that have exceeded their limits.
    pub(super) fn end_late_ones(all: &mut [Self]) {
        let now = Instant::now();
        for trial in all.iter_mut().filter(|trial| now >= trial.deadline) {
            trial.end(Killed::Limit);
        }
    }

    /// Returns the reply about the trial after its worker has ended.
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
