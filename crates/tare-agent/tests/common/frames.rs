//! The frames that an agent writes, as they come.

use std::io::Read;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use tare_model::wire::{FrameError, Reply, Request, read_frame};
use tare_model::{ProbeCall, Turns, whole_ns};

/// What an agent answers, as it comes.
pub(crate) type Replies = Receiver<Result<Reply, FrameError>>;

/// An agent that is started so, what it reads, and what it answers.
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

/// The request for a trial; one that takes no turns goes on at once.
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

/// Every reply until there is none, read beside the test.
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
