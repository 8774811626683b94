//! Drives a running agent through frames.

pub(crate) mod frames;

use std::process::{Child, ChildStdin, Command};
use std::time::Duration;

use tare_model::ProbeReport;
use tare_model::wire::{PROTOCOL, Reply, Request, write_frame};

/// Far longer than any answer takes, even on a busy machine.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// A running agent.
pub(crate) struct Agent {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    /// Its probes that can be sliced, with their target slice length.
    #[allow(dead_code, reason = "only some of the tests that share this file look")]
    pub(crate) slices: std::collections::BTreeMap<String, u64>,
    pub(crate) replies: frames::Replies,
}

impl Agent {
    pub(crate) fn start() -> Self {
        let (child, input, replies) =
            frames::started(Command::new(env!("CARGO_BIN_EXE_tare-agent")).arg("serve"));
        let mut agent = Self {
            child,
            input,
            slices: std::collections::BTreeMap::new(),
            replies,
        };
        agent.send(&Request::Hello { protocol: PROTOCOL });
        match agent.reply() {
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

    /// Returns the processes that this agent started, oldest first; the last one waits for the next trial.
    #[allow(dead_code, reason = "only some of the tests that share this file look")]
    pub(crate) fn workers_of_trial_order(&self) -> Vec<u32> {
        let path = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = std::fs::read_to_string(path).unwrap();
        children
            .split_whitespace()
            .map(|pid| pid.parse().unwrap())
            .collect()
    }

    #[allow(dead_code, reason = "only some of the tests that share this file look")]
    pub(crate) fn report(&mut self) -> (u64, ProbeReport) {
        match self.reply() {
            Reply::Done { trial, raw } => (trial, serde_json::from_slice(&raw.stdout.0).unwrap()),
            other => panic!("no report but {other:?}"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
