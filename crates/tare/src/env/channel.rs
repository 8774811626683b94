//! A channel over a pair of byte streams, with a thread that reads replies; and one over the pipes of a process,
//! whose last words explain why a pipe ended.
//!
//! A thread rather than `poll`: it works the same on every system and over any stream. Its hand-over costs
//! a wake-up after the worker has ended, outside of every timed region.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use tare_model::wire::{FrameError, Reply, Request, read_frame, write_frame};

use super::{Channel, ChannelError, text};
use crate::cx::Running;

/// A channel over two streams.
pub struct StreamChannel {
    writer: Box<dyn Write + Send>,
    replies: mpsc::Receiver<Result<Reply, FrameError>>,
}

impl StreamChannel {
    /// Takes over both streams; the reading thread ends with the stream.
    pub fn new(writer: Box<dyn Write + Send>, mut reader: Box<dyn Read + Send>) -> Self {
        let (sender, replies) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                let reply = read_frame::<Reply>(&mut reader);
                let is_last = reply.is_err();
                if sender.send(reply).is_err() || is_last {
                    return;
                }
            }
        });
        Self { writer, replies }
    }
}

impl Channel for StreamChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        write_frame(&mut self.writer, request)
            .map_err(|error| ChannelError::Closed(error.to_string()))
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        match self.replies.recv_timeout(limit) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(FrameError::Garbled(text))) => Err(ChannelError::Garbled(text)),
            Ok(Err(error)) => Err(ChannelError::Closed(error.to_string())),
            Err(mpsc::RecvTimeoutError::Timeout) => Err(ChannelError::Timeout(limit)),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Err(ChannelError::Closed("its stream ended".into()))
            }
        }
    }
}

/// How long the last words of a process that ends may be on their way.
pub(super) const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Waits until a program has ended and all of its last words were read, at most `limit` each; its status.
pub(super) fn wait_for_last_words(running: &mut dyn Running, limit: Duration) -> Option<i32> {
    let status = running.wait(limit).ok().flatten();
    let step = Duration::from_millis(5);
    let mut waited = Duration::ZERO;
    while status.is_some() && !running.has_read_stderr() && waited < limit {
        std::thread::sleep(step);
        waited += step;
    }
    status
}

/// The pipes of a process together with the process.
pub(super) struct ProcessChannel {
    pub(super) stream: StreamChannel,
    pub(super) running: Box<dyn Running>,
}

impl ProcessChannel {
    /// Takes over the pipes of a process; one that has none is ended.
    pub(super) fn new(mut running: Box<dyn Running>) -> Result<Self, ChannelError> {
        let (Some(writer), Some(reader)) = (running.take_stdin(), running.take_stdout()) else {
            running.kill();
            return Err(ChannelError::Closed("it has no pipes".to_owned()));
        };
        Ok(Self {
            stream: StreamChannel::new(writer, reader),
            running,
        })
    }

    fn explain(&mut self, error: ChannelError) -> ChannelError {
        let ChannelError::Closed(first) = error else {
            return error;
        };
        wait_for_last_words(self.running.as_mut(), LAST_WORDS_LIMIT);
        let words = text::printable(&self.running.stderr_tail());
        ChannelError::Closed(if words.is_empty() { first } else { words })
    }
}

impl Channel for ProcessChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        self.stream
            .send(request)
            .map_err(|error| self.explain(error))
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        self.stream
            .receive(limit)
            .map_err(|error| self.explain(error))
    }
}
