//! The server on systems without `poll`: several threads that read, one that decides.
//!
//! One thread reads requests, and each worker has one that reads its frames and one that reads its standard error;
//! all send to one channel. The thread behind it polls for the workers' ends and does the same as the server of
//! [`super::poll`], in the same order. Idle threads use no CPU time.
//! Limits: does not find children of a worker, since there are no process groups; a probe must end them itself. On
//! Windows each worker has a job, which ends everything that the worker has started.

use std::fs::File;
use std::io::{self, Read};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use tare_model::outcome::Exit;
use tare_model::wire::{FrameError, Reply, Request, read_frame, write_frame};

use super::trial::{self, Trial};
use super::{
    Killed, PAD, ServeError, ServeOptions, WorkerFrame, already_running, hello, keep, not_started,
    pad_of, sort,
};
use crate::facts;
use crate::probe::Probe;

/// Interval at which a worker is checked that cannot be waited for without taking its handle.
const LOOK: Duration = Duration::from_millis(1);

/// Messages of the threads.
enum Event {
    Request(Result<Request, FrameError>),
    WorkerFrame(u64, Result<Reply, FrameError>),
    Stderr(u64, Vec<u8>),
}

struct Worker {
    /// Identifies the worker in events.
    number: u64,
    child: Child,
    /// Ends the processes that it has started, when dropped at the latest.
    #[cfg(windows)]
    _job: Option<crate::windows::Job>,
    stdin: Option<ChildStdin>,
    /// Number of its streams that have not ended yet.
    open: u32,
    tail: Vec<u8>,
}

impl trial::Worker for Worker {
    type Stdin = ChildStdin;

    fn stdin(&mut self) -> &mut Option<ChildStdin> {
        &mut self.stdin
    }

    /// Always `false`: reaping a worker and reporting its trial are one step here.
    fn is_reaped(&self) -> bool {
        false
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
    }

    fn into_tail(self) -> Vec<u8> {
        self.tail
    }
}

struct Server<'a> {
    output: File,
    sender: Sender<Event>,
    started: u64,
    spare: Option<Worker>,
    active: Vec<Trial<Worker>>,
    /// The pad of the workers.
    pad: String,
    options: &'a ServeOptions,
    extra: &'a [&'static Probe],
}

/// Serves `input` and `output` until `Bye` or the end of the input.
///
/// # Errors
/// A frame cannot be read or written.
pub fn serve(
    mut input: File,
    output: File,
    options: &ServeOptions,
    extra: &[&'static Probe],
) -> Result<(), ServeError> {
    let (sender, events) = mpsc::channel();
    let requests = sender.clone();
    std::thread::spawn(move || {
        loop {
            let request = read_frame(&mut input);
            let is_last = request.is_err();
            if requests.send(Event::Request(request)).is_err() || is_last {
                return;
            }
        }
    });
    let mut server = Server {
        output,
        sender,
        started: 0,
        spare: None,
        active: Vec::new(),
        pad: String::new(),
        options,
        extra,
    };
    let result = loop {
        let event = match server.next_look() {
            None => events.recv().ok(),
            Some(limit) => match events.recv_timeout(limit) {
                Ok(event) => Some(event),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => break Ok(()),
            },
        };
        match event.map_or(Ok(true), |event| server.take(event)) {
            Ok(true) => {}
            Ok(false) => break Ok(()),
            Err(error) => break Err(error),
        }
        Trial::end_late_ones(&mut server.active);
        if let Err(error) = server.report_ended() {
            break Err(error);
        }
    };
    server.kill_everything();
    result
}

impl Server<'_> {
    /// Returns how long to wait for an event; `None` while no limit is running.
    fn next_look(&self) -> Option<Duration> {
        self.active
            .iter()
            .map(|active| {
                if active.worker.open == 0 || active.killed.is_some() {
                    LOOK
                } else {
                    active.deadline.saturating_duration_since(Instant::now())
                }
            })
            .min()
    }

    /// Handles an event; returns whether to continue.
    fn take(&mut self, event: Event) -> Result<bool, ServeError> {
        match event {
            Event::Request(Ok(request)) => return self.obey(&request),
            Event::Request(Err(FrameError::Closed)) => return Ok(false),
            Event::Request(Err(error)) => return Err(error.into()),
            Event::Stderr(number, bytes) => {
                if let Some(worker) = self.worker(number) {
                    if bytes.is_empty() {
                        worker.open -= 1;
                    }
                    keep(&mut worker.tail, &bytes);
                }
            }
            Event::WorkerFrame(number, said) => {
                if said.is_err()
                    && let Some(worker) = self.worker(number)
                {
                    worker.open -= 1;
                }
                let Some(active) = self
                    .active
                    .iter_mut()
                    .find(|active| active.worker.number == number)
                else {
                    return Ok(true);
                };
                match said.map(|reply| sort(reply, active.number)) {
                    Ok(Ok(WorkerFrame::Now(reply))) => write_frame(&mut self.output, &reply)?,
                    Ok(Ok(WorkerFrame::Last(reply))) => active.answer = Ok(Some(reply)),
                    Ok(Err(problem)) => active.answer = Err(problem),
                    Err(FrameError::Closed) => {}
                    Err(error) => active.answer = Err(error.to_string()),
                }
            }
        }
        Ok(true)
    }

    fn worker(&mut self, number: u64) -> Option<&mut Worker> {
        self.active
            .iter_mut()
            .map(|active| &mut active.worker)
            .chain(self.spare.as_mut())
            .find(|worker| worker.number == number)
    }

    fn obey(&mut self, request: &Request) -> Result<bool, ServeError> {
        match request {
            Request::Hello { .. } => {
                write_frame(&mut self.output, &hello(self.extra))?;
                self.refill();
            }
            Request::Facts { paths, tools } => {
                let facts = facts::collect(paths, tools);
                write_frame(&mut self.output, &Reply::Facts { facts })?;
            }
            // The threads of this server run on several processors.
            Request::Meet { .. } => {}
            Request::Pad { bytes } => {
                self.pad = pad_of(*bytes);
                self.spare.take().into_iter().for_each(end_worker);
                self.refill();
            }
            Request::Run {
                trial,
                limit_ns,
                hold,
                turns,
                ..
            } => self.dispatch(request, *trial, *limit_ns, *hold, turns.is_some())?,
            Request::Go { trial } => self.apply_to(*trial, |active| active.let_go(request)),
            Request::Turn { trial } => self.apply_to(*trial, |active| active.give_turn(request)),
            Request::Cancel { trial } => {
                self.apply_to(*trial, |active| active.end(Killed::Cancelled));
            }
            Request::Bye => {
                self.kill_everything();
                write_frame(&mut self.output, &Reply::Bye)?;
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Applies `act` to a trial if it is running.
    fn apply_to(&mut self, trial: u64, act: impl Fn(&mut Trial<Worker>)) {
        let wanted = |active: &&mut Trial<Worker>| active.number == trial;
        self.active.iter_mut().filter(wanted).for_each(act);
    }

    fn dispatch(
        &mut self,
        request: &Request,
        trial: u64,
        limit_ns: u64,
        hold: bool,
        takes_turns: bool,
    ) -> Result<(), ServeError> {
        if self.active.iter().any(|active| active.number == trial) {
            return Ok(write_frame(&mut self.output, &already_running(trial))?);
        }
        // A worker that died while it waited is not used.
        let spare = self
            .spare
            .take()
            .and_then(|mut worker| matches!(worker.child.try_wait(), Ok(None)).then_some(worker));
        let started = match spare {
            Some(worker) => Ok(worker),
            None => self.start_worker(),
        };
        let mut worker = match started {
            Ok(worker) => worker,
            Err(error) => return Ok(write_frame(&mut self.output, &not_started(trial, &error))?),
        };
        if let Some(mut stdin) = worker.stdin.take() {
            // A worker that is already gone is reported like one that ended during its trial.
            let _ = write_frame(&mut stdin, request);
            worker.stdin = (hold || takes_turns).then_some(stdin);
        }
        let active = Trial::begin(trial, limit_ns, takes_turns, worker);
        self.active.push(active);
        Ok(())
    }

    /// Reports the trials whose workers have ended, and reaps them.
    fn report_ended(&mut self) -> Result<(), ServeError> {
        let mut index = 0;
        while index < self.active.len() {
            let active = &mut self.active[index];
            // Its streams end with it or earlier; if it was killed, a child that holds them open is ignored.
            let may_have_ended = active.worker.open == 0 || active.killed.is_some();
            let status = if may_have_ended {
                active.worker.child.try_wait().ok().flatten()
            } else {
                None
            };
            let Some(status) = status else {
                index += 1;
                continue;
            };
            let active = self.active.swap_remove(index);
            write_frame(&mut self.output, &active.conclude(exit(status)))?;
            self.refill();
        }
        Ok(())
    }

    fn refill(&mut self) {
        if self.options.has_spare && self.active.is_empty() && self.spare.is_none() {
            self.spare = self.start_worker().ok();
        }
    }

    fn start_worker(&mut self) -> io::Result<Worker> {
        self.started += 1;
        let number = self.started;
        let agent = std::process::id();
        let job = format!("Local\\tare-{agent}-{number}");
        let mut child = Command::new(std::env::current_exe()?)
            .args(["worker", &agent.to_string(), &job])
            .env(PAD, &self.pad)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        // The worker waits for its request and has started nothing yet. If the job refuses it, its children are not
        // ended with it.
        #[cfg(windows)]
        let job = crate::windows::Job::make(&job)
            .and_then(|job| job.take_in(&child).map(|()| job))
            .ok();
        if let Some(mut stdout) = child.stdout.take() {
            let sender = self.sender.clone();
            std::thread::spawn(move || {
                loop {
                    let stdout_text = read_frame::<Reply>(&mut stdout);
                    let is_last = stdout_text.is_err();
                    if is_last {
                        // Drain the output: a worker that cannot write would fail, which would hide its real fault.
                        let _ = io::copy(&mut stdout, &mut io::sink());
                    }
                    if sender
                        .send(Event::WorkerFrame(number, stdout_text))
                        .is_err()
                        || is_last
                    {
                        return;
                    }
                }
            });
        }
        if let Some(mut stderr) = child.stderr.take() {
            let sender = self.sender.clone();
            std::thread::spawn(move || {
                loop {
                    let mut bytes = vec![0u8; 4096];
                    let count = stderr.read(&mut bytes).unwrap_or(0);
                    bytes.truncate(count);
                    // An empty piece marks the end.
                    if sender.send(Event::Stderr(number, bytes)).is_err() || count == 0 {
                        return;
                    }
                }
            });
        }
        Ok(Worker {
            number,
            stdin: child.stdin.take(),
            child,
            #[cfg(windows)]
            _job: job,
            open: 2,
            tail: Vec::new(),
        })
    }

    fn kill_everything(&mut self) {
        let active = self.active.drain(..).map(|active| active.worker);
        active.chain(self.spare.take()).for_each(end_worker);
    }
}

/// Kills and reaps a worker.
fn end_worker(mut worker: Worker) {
    let _ = worker.child.kill();
    let _ = worker.child.wait();
}

#[cfg(unix)]
fn exit(status: std::process::ExitStatus) -> Exit {
    use std::os::unix::process::ExitStatusExt;
    status
        .signal()
        .map_or_else(|| Exit::Code(status.code().unwrap_or(-1)), Exit::Signal)
}

#[cfg(not(unix))]
fn exit(status: std::process::ExitStatus) -> Exit {
    Exit::Code(status.code().unwrap_or(-1))
}
