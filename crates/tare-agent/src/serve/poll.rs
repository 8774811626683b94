//! The server on systems with `poll`: one thread that waits for the host, its workers and signals.
//!
//! A worker leads a process group; when it has ended, the rest of the group, and processes that left the group, are
//! killed before the trial is reported. `children` does starting, signals and reaping.
//! The server and the waiting worker are bound to the processor from which the host asks, if the host names it:
//! waking an idle processor takes a virtual machine a hundred microseconds, and a trial needs four wake-ups. A worker
//! with a request may use all processors again.
//! Limits: does not see how long the host takes to read a reply from the pipe; until then, the server waits.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::process::ChildStdin;
use std::time::{Duration, Instant};

use tare_model::Params;
use tare_model::frames::Frames;
use tare_model::wire::{Reply, Request, write_frame};

use super::children::{
    Worker, adopt_orphans, end_adopted, ended_child, kill_group, reap, start_worker, take_signals,
    wait_for_strays,
};
use super::trial::{self, Trial};
use super::{
    Killed, ServeError, ServeOptions, WorkerFrame, already_running, hello, keep, not_started,
    pad_of, sort,
};
use crate::binding::Binding;
use crate::facts;
use crate::probe::Probe;

/// Converts a time for `poll`: rounded up, otherwise the server would spend the last millisecond polling without a
/// pause. If `poll` cannot wait that long, the maximum: then the server checks again.
fn waiting_ms(left: Duration) -> libc::c_int {
    libc::c_int::try_from(left.as_millis()).map_or(libc::c_int::MAX, |ms| ms.saturating_add(1))
}

impl trial::Worker for Worker {
    type Stdin = ChildStdin;

    fn stdin(&mut self) -> &mut Option<ChildStdin> {
        &mut self.stdin
    }

    fn is_reaped(&self) -> bool {
        self.exit.is_some()
    }

    fn kill(&mut self) {
        kill_group(self.pid);
    }

    fn into_tail(self) -> Vec<u8> {
        self.tail
    }
}

/// Whether the server continues.
#[derive(PartialEq, Eq)]
enum Next {
    Serve,
    End,
}

struct Server<'a> {
    input: File,
    output: File,
    requests: Frames,
    signals: File,
    spare: Option<Worker>,
    active: Vec<Trial<Worker>>,
    /// The processor from which the host asks.
    near: Option<u32>,
    /// The pad of the workers.
    pad: String,
    /// The binding to `near`, except while a worker is started or facts are collected.
    meeting: Option<Binding>,
    /// A permanent entry like that of a request. Without it, the allocator would request a page from the kernel for
    /// each request, and return it.
    _entry: Params,
    options: &'a ServeOptions,
    extra: &'a [&'static Probe],
}

/// Serves `input` and `output` until `Bye`, the end of the input or SIGTERM. Takes over SIGCHLD, SIGTERM and SIGINT
/// of the whole process and reaps every child of it: call it in a separate process.
///
/// # Errors
/// A frame cannot be read, or a system call of the server failed.
pub fn serve(
    input: File,
    output: File,
    options: &ServeOptions,
    extra: &[&'static Probe],
) -> Result<(), ServeError> {
    let signals =
        take_signals().map_err(|error| ServeError::System("cannot take signals", error))?;
    adopt_orphans();
    let mut server = Server {
        input,
        output,
        requests: Frames::default(),
        signals,
        spare: None,
        active: Vec::new(),
        near: None,
        pad: String::new(),
        meeting: None,
        _entry: Params::new().with("", false),
        options,
        extra,
    };
    let result = server.run();
    server.kill_everything();
    result
}

impl Server<'_> {
    fn run(&mut self) -> Result<(), ServeError> {
        loop {
            let ready = self.wait()?;
            if ready.signals && self.take_signals() == Next::End {
                return Ok(());
            }
            for index in 0..self.active.len() {
                self.hear(index)?;
            }
            Trial::end_late_ones(&mut self.active);
            self.report_ended()?;
            if ready.input && self.read_requests()? == Next::End {
                return Ok(());
            }
        }
    }

    /// Waits until something can be read, a signal arrives or a trial exceeds its limit.
    fn wait(&mut self) -> Result<Ready, ServeError> {
        let entry = |fd: RawFd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let mut entries = vec![
            entry(self.input.as_raw_fd()),
            entry(self.signals.as_raw_fd()),
        ];
        // A worker that has answered only has to exit, which a signal reports; waking up for the ends of its streams
        // would delay that.
        let unanswered = self
            .active
            .iter()
            .filter(|active| !matches!(active.answer, Ok(Some(_))));
        for active in unanswered {
            let worker = &active.worker;
            for stream in [&worker.stdout, &worker.stderr].into_iter().flatten() {
                entries.push(entry(stream.as_raw_fd()));
            }
        }
        let limit_ms = self
            .active
            .iter()
            .filter(|active| active.killed.is_none())
            .map(|active| active.deadline.saturating_duration_since(Instant::now()))
            .min()
            .map_or(-1, waiting_ms);
        // SAFETY: the pointer and the length are those of a live vector, exclusively borrowed.
        let count = unsafe {
            libc::poll(
                entries.as_mut_ptr(),
                entries.len() as libc::nfds_t,
                limit_ms,
            )
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(ServeError::System("poll", error));
            }
            for entry in &mut entries {
                entry.revents = 0;
            }
        }
        Ok(Ready {
            input: entries[0].revents != 0,
            signals: entries[1].revents != 0,
        })
    }

    /// Empties the signal pipe and reaps children.
    fn take_signals(&mut self) -> Next {
        let mut bytes = [0u8; 64];
        let mut next = Next::Serve;
        while let Ok(count @ 1..) = self.signals.read(&mut bytes) {
            let mut signals = bytes[..count].iter().copied().map(i32::from);
            if signals.any(|signal| signal == libc::SIGTERM) {
                next = Next::End;
            }
        }
        self.reap();
        next
    }

    /// Reaps every child that has ended. A worker's group is killed before the worker is reaped, because until then
    /// its number cannot be reused.
    fn reap(&mut self) {
        while let Some(pid) = ended_child() {
            let is_ours = self.spare.as_ref().is_some_and(|spare| spare.pid == pid)
                || self.active.iter().any(|active| active.worker.pid == pid);
            if is_ours {
                kill_group(pid);
            }
            let exit = reap(pid);
            if self.spare.as_ref().is_some_and(|spare| spare.pid == pid) {
                self.spare = None;
            }
            for active in &mut self.active {
                if active.worker.pid == pid {
                    wait_for_strays(pid);
                    active.worker.exit = exit;
                }
            }
            if is_ours {
                end_adopted(&self.living());
            }
        }
    }

    /// Returns the workers that are not reaped yet.
    fn living(&self) -> Vec<libc::pid_t> {
        let active = self.active.iter().map(|active| &active.worker);
        let living = active.filter(|worker| worker.exit.is_none());
        living.chain(&self.spare).map(|worker| worker.pid).collect()
    }

    /// Reads a worker's output.
    fn hear(&mut self, index: usize) -> Result<(), ServeError> {
        let active = &mut self.active[index];
        read_available(&mut active.worker.stderr, |bytes| {
            keep(&mut active.worker.tail, bytes);
        });
        let frames = &mut active.worker.frames;
        let is_readable = active.answer.is_ok();
        read_available(&mut active.worker.stdout, |bytes| {
            if is_readable {
                frames.push(bytes);
            }
        });
        while active.answer.is_ok() {
            let shown = match active.worker.frames.take::<Reply>() {
                Ok(None) => break,
                Ok(Some(reply)) => sort(reply, active.number),
                Err(error) => Err(error.to_string()),
            };
            match shown {
                Ok(WorkerFrame::Now(reply)) => write_frame(&mut self.output, &reply)?,
                Ok(WorkerFrame::Last(reply)) => active.answer = Ok(Some(reply)),
                Err(problem) => {
                    active.answer = Err(problem);
                    // Any later output cannot be parsed.
                    active.end(Killed::Garbled);
                }
            }
        }
        Ok(())
    }

    /// Reports the trials whose workers are reaped; then starts the next worker if none is left.
    fn report_ended(&mut self) -> Result<(), ServeError> {
        let mut index = 0;
        while index < self.active.len() {
            let Some(exit) = self.active[index].worker.exit else {
                index += 1;
                continue;
            };
            // Its last output may still be in the pipes.
            self.hear(index)?;
            let mut active = self.active.swap_remove(index);
            if active.answer.is_ok() && !active.worker.frames.is_empty() {
                active.answer = Err("the worker's output ends inside a frame".to_owned());
            }
            write_frame(&mut self.output, &active.conclude(exit))?;
            self.refill();
        }
        Ok(())
    }

    /// Starts the next worker if no trial is running, and moves to the host's processor. A failure shows when the
    /// worker is needed.
    fn refill(&mut self) {
        if !self.active.is_empty() {
            return;
        }
        if self.options.has_spare && self.spare.is_none() {
            self.spare = self.start_worker().ok();
        }
        if self.meeting.as_ref().map(Binding::cpu) != self.near {
            // Drop the old binding first: otherwise the new one would save the bound set as the one to restore.
            self.meeting = None;
            self.meeting = self.near.and_then(|cpu| Binding::bind(cpu).ok());
        }
    }

    /// Starts a worker that may use every processor of this agent.
    fn start_worker(&mut self) -> io::Result<Worker> {
        self.meeting = None;
        start_worker(self.near, &self.pad)
    }

    fn read_requests(&mut self) -> Result<Next, ServeError> {
        let mut bytes = [0u8; 16 << 10];
        match self.input.read(&mut bytes) {
            Ok(0) => return Ok(Next::End),
            Ok(count) => self.requests.push(&bytes[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock
                ) => {}
            Err(error) => return Err(ServeError::System("read", error)),
        }
        while let Some(request) = self.requests.take::<Request>()? {
            match request {
                Request::Hello { .. } => {
                    write_frame(&mut self.output, &hello(self.extra))?;
                    self.refill();
                }
                Request::Facts { paths, tools } => {
                    // Facts include the available processors.
                    self.meeting = None;
                    let facts = facts::collect(&paths, &tools);
                    write_frame(&mut self.output, &Reply::Facts { facts })?;
                }
                Request::Meet { cpu } => self.near = Some(cpu),
                Request::Pad { bytes } => {
                    self.pad = pad_of(bytes);
                    self.spare.take().iter().for_each(end_worker);
                    self.refill();
                }
                Request::Run { .. } => self.dispatch(&request)?,
                Request::Go { trial } => self.apply_to(trial, |active| active.let_go(&request)),
                Request::Turn { trial } => {
                    self.apply_to(trial, |active| active.give_turn(&request));
                }
                Request::Cancel { trial } => {
                    self.apply_to(trial, |active| active.end(Killed::Cancelled));
                }
                Request::Bye => {
                    self.kill_everything();
                    write_frame(&mut self.output, &Reply::Bye)?;
                    return Ok(Next::End);
                }
            }
        }
        Ok(Next::Serve)
    }

    /// Hands the request to the waiting worker, or to a new one if none waits.
    fn dispatch(&mut self, request: &Request) -> Result<(), ServeError> {
        let Request::Run {
            trial,
            limit_ns,
            hold,
            ref turns,
            ..
        } = *request
        else {
            return Ok(());
        };
        let is_held = hold || turns.is_some();
        if self.active.iter().any(|active| active.number == trial) {
            return Ok(write_frame(&mut self.output, &already_running(trial))?);
        }
        let started = match self.spare.take() {
            Some(worker) => Ok(worker),
            None => self.start_worker(),
        };
        let mut worker = match started {
            Ok(worker) => worker,
            Err(error) => return Ok(write_frame(&mut self.output, &not_started(trial, &error))?),
        };
        if let Some(mut stdin) = worker.stdin.take() {
            // A worker that is already gone is reaped and reported like one that ended during its trial.
            let _ = stdin.write_all(self.requests.last());
            worker.stdin = is_held.then_some(stdin);
        }
        let active = Trial::begin(trial, limit_ns, turns.is_some(), worker);
        self.active.push(active);
        Ok(())
    }

    /// Applies `act` to a trial if it is running: otherwise it has ended, and its reply has been or will be sent.
    fn apply_to(&mut self, trial: u64, act: impl Fn(&mut Trial<Worker>)) {
        let wanted = |active: &&mut Trial<Worker>| active.number == trial;
        self.active.iter_mut().filter(wanted).for_each(act);
    }

    /// Kills and reaps all workers.
    fn kill_everything(&mut self) {
        let spare = self.spare.take();
        let active = self.active.drain(..).map(|active| active.worker);
        let living = active.filter(|worker| worker.exit.is_none());
        living.chain(spare).for_each(|worker| end_worker(&worker));
        end_adopted(&[]);
    }
}

/// Kills and reaps a worker that is not reaped yet.
fn end_worker(worker: &Worker) {
    kill_group(worker.pid);
    reap(worker.pid);
    wait_for_strays(worker.pid);
}

/// The streams that [`Server::wait`] found readable, except the workers'.
struct Ready {
    input: bool,
    signals: bool,
}

/// How much is read of one stream before the others, the host and the limits are checked again. A pipe holds less, so
/// one call reads everything that a worker wrote before it ended.
const MOST_AT_ONCE: usize = 256 << 10;

/// Reads until the stream would block or `MOST_AT_ONCE` bytes were read; closes it at its end.
fn read_available(stream: &mut Option<File>, mut take: impl FnMut(&[u8])) {
    let mut bytes = [0u8; 16 << 10];
    let mut read = 0;
    while let Some(file) = stream.as_mut().filter(|_| read < MOST_AT_ONCE) {
        match file.read(&mut bytes) {
            Ok(count @ 1..) => {
                read += count;
                take(&bytes[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
            Ok(0) | Err(_) => *stream = None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poll_timeout_of_weeks_is_finite_and_in_parts() {
        assert_eq!(waiting_ms(Duration::ZERO), 1);
        assert_eq!(waiting_ms(Duration::from_micros(2_500)), 3);
        for days in [24, 25, 40, 60, 100_000] {
            assert!(waiting_ms(Duration::from_secs(days * 86_400)) > 2_000_000_000);
        }
    }
}
