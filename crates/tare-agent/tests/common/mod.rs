//! Drives a running agent through frames.

#![allow(
    dead_code,
    reason = "each of the tests that share this file uses a part of it"
)]

use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use tare_model::wire::{FrameError, PROTOCOL, Reply, Request, read_frame, write_frame};
use tare_model::{ProbeCall, ProbeReport, Turns, whole_ns};

/// Far longer than any answer takes, even on a busy machine.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// A running agent.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    /// Its probes that can be sliced, with their target slice length.
    pub(crate) slices: std::collections::BTreeMap<String, u64>,
    /// Its replies, in their order.
    pub(crate) replies: Receiver<Result<Reply, FrameError>>,
    /// The run that it was started for.
    pub(crate) label: String,
}

impl Agent {
    pub(crate) fn start() -> Self {
        Self::of(Command::new(env!("CARGO_BIN_EXE_tare-agent")).arg("serve"))
    }

    pub(crate) fn of(command: &mut Command) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let label = format!("agent-test-{}-{count}", std::process::id());
        let command = command.env("TARE_RUN", &label);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, replies) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let reply = read_frame(&mut output);
                let is_last = reply.is_err();
                if sender.send(reply).is_err() || is_last {
                    return;
                }
            }
        });
        let mut agent = Self {
            input: child.stdin.take(),
            child,
            slices: std::collections::BTreeMap::new(),
            replies,
            label,
        };
        match agent.ask(&Request::Hello { protocol: PROTOCOL }) {
            Reply::Hello { slices, .. } => agent.slices = slices,
            other => panic!("no hello but {other:?}"),
        }
        agent
    }

    pub(crate) fn send(&mut self, request: &Request) {
        write_frame(self.input.as_mut().unwrap(), request).unwrap();
    }

    pub(crate) fn reply(&mut self) -> Reply {
        self.replies.recv_timeout(ANSWER_LIMIT).unwrap().unwrap()
    }

    pub(crate) fn ask(&mut self, request: &Request) -> Reply {
        self.send(request);
        self.reply()
    }

    /// Sends the request for a trial that is held, and waits until it is.
    pub(crate) fn prepare(&mut self, request: &Request) {
        let reply = self.ask(request);
        assert!(matches!(reply, Reply::Ready { .. }), "{reply:?}");
    }

    /// Lets these trials go.
    pub(crate) fn go(&mut self, trials: impl IntoIterator<Item = u64>) {
        for trial in trials {
            self.send(&Request::Go { trial });
        }
    }

    /// Returns the processes that this agent started, oldest first; the last one waits for the next trial.
    pub(crate) fn workers_of_trial_order(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(path).unwrap();
        children
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }

    pub(crate) fn report(&mut self) -> (u64, ProbeReport) {
        match self.reply() {
            Reply::Done { trial, raw } => (trial, serde_json::from_slice(&raw.stdout.0).unwrap()),
            other => panic!("no report but {other:?}"),
        }
    }

    /// Runs a trial; returns its report.
    pub(crate) fn done(&mut self, request: &Request) -> ProbeReport {
        self.send(request);
        self.report().1
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the request for a trial; without interleaving it starts at once.
pub(crate) fn trial(
    trial: u64,
    call: ProbeCall,
    target_ns: u64,
    limit: Duration,
    turns: Option<Turns>,
) -> Request {
    Request::Run {
        trial,
        call,
        target_ns,
        limit_ns: whole_ns(limit),
        workdir: env!("CARGO_TARGET_TMPDIR").to_owned(),
        hold: turns.is_some(),
        turns,
        cpu: None,
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < ANSWER_LIMIT, "{what} has not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Sends a signal, such as `-KILL`.
pub(crate) fn kill(pid: u32, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}
