//! Starts an agent and reads the frames that it writes.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tare_model::wire::{FrameError, Reply, Request, read_frame};
use tare_model::{ProbeCall, Turns, whole_ns};

/// An agent's replies, in their order.
pub(crate) type Replies = Receiver<Result<Reply, FrameError>>;

/// Starts an agent; returns the process, its stdin and its replies.
pub(crate) fn started(agent: &mut Command) -> (Child, Option<ChildStdin>, Replies) {
    let mut child = agent
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    let replies = replies(child.stdout.take().unwrap());
    (child, input, replies)
}

/// Returns the request for a trial; without interleaving it starts at once.
pub(crate) fn run(
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

/// Reads every reply to the end, on a thread of its own.
fn replies(mut output: impl Read + Send + 'static) -> Replies {
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
    replies
}
