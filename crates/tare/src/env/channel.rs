//! A channel over a pair of byte streams, with a thread that reads replies.
//!
//! A thread rather than `poll`: it works the same on every system and over any stream. Its hand-over costs
//! a wake-up after the worker has ended, outside of every timed region.

use std::io::{Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use tare_model::wire::{FrameError, Reply, Request, read_frame, write_frame};

use super::{Channel, ChannelError};

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
