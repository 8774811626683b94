//! A channel over a pair of byte streams, with a thread that reads replies; and one over the pipes of a process,
//! whose last words explain why a pipe ended.
//!
//! A thread rather than `poll`: it works the same on every system and over any stream. Its hand-over costs
//! a wake-up after the worker has ended, outside of every timed region. The thread is a few frames ahead of
//! whoever receives them and no more, so that a peer without end fills its own pipe and not this machine's memory;
//! how long one frame may be, the wire format says.

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc;
use std::time::Duration;

use tare_model::wire::{FrameError, Reply, Request, read_frame, write_frame};

use super::{Channel, ChannelError, text};
use crate::cx::{Cancel, Running};

/// How long an agent may read nothing of a request that its pipe has no room for.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(10);

/// How many replies are read that nobody has asked for yet: more than any agent sends unasked.
const QUEUED_REPLIES: usize = 4;

/// A channel over two streams.
pub struct StreamChannel {
    writer: Box<dyn Write + Send>,
    replies: mpsc::Receiver<Result<Reply, FrameError>>,
    /// Why nothing can be sent any more: part of a frame may be on its way.
    broken: Option<String>,
}

impl StreamChannel {
    /// Takes over both streams; the reading thread ends with the stream.
    pub fn new(writer: Box<dyn Write + Send>, mut reader: Box<dyn Read + Send>) -> Self {
        let (sender, replies) = mpsc::sync_channel(QUEUED_REPLIES);
        std::thread::spawn(move || {
            loop {
                let reply = read_frame::<Reply>(&mut reader);
                let is_last = reply.is_err();
                if sender.send(reply).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            writer,
            replies,
            broken: None,
        }
    }
}

impl Channel for StreamChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        if let Some(why) = &self.broken {
            return Err(ChannelError::Closed(why.clone()));
        }
        write_frame(&mut self.writer, request).map_err(|error| {
            let why = match error {
                FrameError::Io(error) if error.kind() == ErrorKind::TimedOut => {
                    format!("its agent takes no request: {error}")
                }
                error => error.to_string(),
            };
            self.broken = Some(why.clone());
            ChannelError::Closed(why)
        })
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

/// The two pipes of a process that an agent listens behind; `None` if they were taken already.
pub(super) fn pipes(
    running: &mut dyn Running,
    cancel: &Cancel,
) -> Option<(Box<dyn Write + Send>, Box<dyn Read + Send>)> {
    let writer = running.take_patient_stdin(SEND_LIMIT, cancel)?;
    Some((writer, running.take_stdout()?))
}

/// A channel over a stream that can say more about its end than the stream.
pub(super) trait Explaining: Send {
    /// The stream.
    fn stream(&mut self) -> &mut StreamChannel;
    /// What an error means.
    fn explain(&mut self, error: ChannelError) -> ChannelError;
}

impl<T: Explaining> Channel for T {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        let sent = self.stream().send(request);
        sent.map_err(|error| self.explain(error))
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        let received = self.stream().receive(limit);
        received.map_err(|error| self.explain(error))
    }
}

/// The pipes of a process together with the process.
pub(super) struct ProcessChannel {
    pub(super) stream: StreamChannel,
    pub(super) running: Box<dyn Running>,
}

impl ProcessChannel {
    /// Takes over the pipes of a process; one that has none is ended.
    pub(super) fn new(
        mut running: Box<dyn Running>,
        cancel: &Cancel,
    ) -> Result<Self, ChannelError> {
        let Some((writer, reader)) = pipes(running.as_mut(), cancel) else {
            running.kill();
            return Err(ChannelError::Closed("it has no pipes".to_owned()));
        };
        Ok(Self {
            stream: StreamChannel::new(writer, reader),
            running,
        })
    }
}

impl Explaining for ProcessChannel {
    fn stream(&mut self) -> &mut StreamChannel {
        &mut self.stream
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A peer that says goodbye again and again, and counts.
    struct Endless {
        frame: Vec<u8>,
        at: usize,
        begun: Arc<AtomicUsize>,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.at == 0 {
                self.begun.fetch_add(1, Ordering::SeqCst);
            }
            let rest = &self.frame[self.at..];
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            self.at = (self.at + count) % self.frame.len();
            Ok(count)
        }
    }

    #[test]
    fn a_peer_that_talks_without_end_is_read_no_further_than_a_few_frames_ahead() {
        let mut frame = Vec::new();
        write_frame(&mut frame, &Reply::Bye).unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let peer = Endless {
            frame,
            at: 0,
            begun: begun.clone(),
        };
        let mut channel = StreamChannel::new(Box::new(io::sink()), Box::new(peer));
        for received in 1..=5_000 {
            assert_eq!(
                channel.receive(Duration::from_secs(60)).unwrap(),
                Reply::Bye
            );
            let ahead = begun.load(Ordering::SeqCst) - received;
            // Those that wait, and the one that is being read.
            assert!(ahead <= QUEUED_REPLIES + 1, "{ahead} frames ahead");
        }
    }

    /// Takes a few bytes and then no more.
    struct Stuck(usize);

    impl Write for Stuck {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::new(ErrorKind::TimedOut, "it has read nothing"));
            }
            let count = self.0.min(bytes.len());
            self.0 -= count;
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn nothing_follows_a_frame_of_which_only_a_part_was_taken() {
        let mut channel = StreamChannel::new(Box::new(Stuck(10)), Box::new(io::empty()));
        for _ in 0..2 {
            let Err(ChannelError::Closed(why)) = channel.send(&Request::Bye) else {
                panic!("sent");
            };
            assert!(why.contains("takes no request"), "{why}");
        }
    }
}
