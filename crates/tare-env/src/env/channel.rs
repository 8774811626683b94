//! A channel over a pair of byte streams, and one over the pipes of a process, whose standard error explains why a
//! pipe ended.
//!
//! Where the stream of replies can be waited for, the receiver reads it directly. Elsewhere a thread reads and hands
//! over, which needs a wake-up after the worker has ended, outside every timed region. The thread is only a few
//! frames ahead of the receiver, so that an endless peer fills its own pipe and not this machine's memory. The wire
//! format limits the length of a frame.
//! Tare sends an agent on this machine's kernel the CPU that requests come from, and waits for the answer there: a
//! trial's round trip then wakes no other CPU. A trial that lasts longer than the first wait ends on whichever CPU is
//! free.

use crate::env::prelude::*;

use std::io::{ErrorKind, Read, Write};
use std::sync::mpsc;

use tare_model::frames::Frames;
use tare_model::wire::{FrameError, read_frame, write_frame};

use super::text;
use crate::cx::processor::{self, Stay};
use crate::cx::timed_read::Arriving;
use crate::cx::{Cancel, aside};

mod farewell;

pub(super) use farewell::farewell;

/// How long an agent may read nothing of a request that its full pipe has no room for.
pub(super) const SEND_LIMIT: Duration = Duration::from_secs(10);

/// How many replies a thread reads ahead: more than any agent sends unasked.
const QUEUED_REPLIES: usize = 4;

/// A channel over two streams.
pub struct StreamChannel {
    writer: Box<dyn Write + Send>,
    replies: Replies,
    /// Why sending is no longer possible, if so: part of a frame may have been sent.
    broken: Option<String>,
    /// CPU placement for an agent on this machine; `None` for one that is elsewhere, or behind other programs.
    meeting: Option<Meeting>,
}

/// The source of replies.
enum Replies {
    /// The stream itself; `None` after its end.
    Stream {
        stream: Option<Box<dyn Arriving>>,
        frames: Frames,
    },
    /// A thread that reads the stream.
    Thread(mpsc::Receiver<Result<Reply, FrameError>>),
}

/// Keeps this process and an agent on the same machine on one CPU.
#[derive(Default)]
struct Meeting {
    /// The CPU that was last sent to it.
    announced: Option<u32>,
    /// Whether a request was sent whose answer has not been waited for yet.
    is_asked: bool,
}

impl StreamChannel {
    /// Takes over both streams; a thread reads the second and ends with it.
    pub fn new(writer: Box<dyn Write + Send>, mut reader: Box<dyn Read + Send>) -> Self {
        let (sender, replies) = mpsc::sync_channel(QUEUED_REPLIES);
        // Without a thread there is no sender, as at the stream's end.
        let _ = aside(move || {
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
            replies: Replies::Thread(replies),
            broken: None,
            meeting: None,
        }
    }

    /// Takes over the pipes of a process.
    pub(super) fn take_over(
        running: &mut dyn Running,
        cancel: &Cancel,
    ) -> Result<Self, ChannelError> {
        let Some(stream) = running.take_arriving_stdout() else {
            let (writer, reader) = pipes(running, cancel)?;
            return Ok(Self::new(writer, reader));
        };
        let writer = running.take_patient_stdin(SEND_LIMIT, cancel);
        Ok(Self {
            writer: writer.ok_or_else(no_pipes)?,
            replies: Replies::Stream {
                stream: Some(stream),
                frames: Frames::default(),
            },
            broken: None,
            meeting: None,
        })
    }

    /// The same for an agent on this machine's kernel that is the process itself, or that the process has become by
    /// exec.
    fn take_over_local(running: &mut dyn Running, cancel: &Cancel) -> Result<Self, ChannelError> {
        Ok(Self {
            meeting: Some(Meeting::default()),
            ..Self::take_over(running, cancel)?
        })
    }

    /// Writes a request; before a trial, also the CPU that it is sent from, if that has changed.
    fn write(&mut self, request: &Request) -> Result<(), FrameError> {
        let mut bytes = Vec::new();
        if let Some(meeting) = &mut self.meeting {
            meeting.is_asked = true;
            let here = processor::current().filter(|_| matches!(request, Request::Run { .. }));
            if let Some(cpu) = here.filter(|cpu| meeting.announced != Some(*cpu)) {
                meeting.announced = Some(cpu);
                write_frame(&mut bytes, &Request::Meet { cpu })?;
            }
        }
        write_frame(&mut bytes, request)?;
        self.writer.write_all(&bytes)?;
        Ok(self.writer.flush()?)
    }
}

impl Replies {
    /// The next reply; `None` if none came in time.
    fn next(&mut self, limit: Duration) -> Result<Option<Reply>, FrameError> {
        let (stream, frames) = match self {
            Self::Stream { stream, frames } => (stream, frames),
            Self::Thread(replies) => {
                return match replies.recv_timeout(limit) {
                    Ok(reply) => reply.map(Some),
                    Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
                    Err(mpsc::RecvTimeoutError::Disconnected) => Err(FrameError::Closed),
                };
            }
        };
        let mut left = limit;
        loop {
            if let Some(reply) = frames.take()? {
                return Ok(Some(reply));
            }
            let Some(open) = stream else {
                return Err(FrameError::Closed);
            };
            if !open.wait(&mut left)? {
                if left.is_zero() {
                    return Ok(None);
                }
                continue;
            }
            let mut bytes = [0u8; 16 << 10];
            match open.read(&mut bytes) {
                Ok(0) => {
                    *stream = None;
                    // Reports an incomplete frame, if there is one.
                    return read_frame(&mut frames.rest()).map(Some);
                }
                Ok(count) => frames.push(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Channel for StreamChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        if let Some(why) = &self.broken {
            return Err(ChannelError::Closed(why.clone()));
        }
        self.write(request).map_err(|error| {
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
        // A second wait happens while a trial runs, and must not take the worker's CPU.
        let meeting = self.meeting.as_mut();
        let is_asked = meeting.is_some_and(|meeting| std::mem::take(&mut meeting.is_asked));
        let _stay = is_asked.then(Stay::here).flatten();
        match self.replies.next(limit) {
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(ChannelError::Timeout(limit)),
            Err(FrameError::Garbled(text)) => Err(ChannelError::Garbled(text)),
            Err(error) => Err(ChannelError::Closed(error.to_string())),
        }
    }
}

/// How long to wait for the last words of a process that ends.
pub(super) const LAST_WORDS_LIMIT: Duration = Duration::from_secs(1);

/// Waits until a program has ended and all of its standard error was read, at most `limit` each; returns its exit
/// status.
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

/// A channel's two streams.
type Pipes = (Box<dyn Write + Send>, Box<dyn Read + Send>);

/// The two pipes of a process in which another program speaks before the agent.
pub(super) fn pipes(running: &mut dyn Running, cancel: &Cancel) -> Result<Pipes, ChannelError> {
    let writer = running.take_patient_stdin(SEND_LIMIT, cancel);
    let pipes = writer.zip(running.take_stdout());
    pipes.ok_or_else(no_pipes)
}

/// The error that a process has no pipes, or that they were taken already.
pub(super) fn no_pipes() -> ChannelError {
    ChannelError::Closed("it has no pipes".to_owned())
}

/// A channel that can explain its end better than its stream can.
pub(super) trait Explaining: Send {
    /// The stream.
    fn stream(&mut self) -> &mut StreamChannel;
    /// Adds the cause to an error.
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

/// The pipes of a process, with the process.
pub(super) struct ProcessChannel {
    pub(super) stream: StreamChannel,
    pub(super) running: Box<dyn Running>,
}

impl ProcessChannel {
    /// Takes over the pipes of a process; one that has none is killed.
    pub(super) fn new(
        mut running: Box<dyn Running>,
        cancel: &Cancel,
    ) -> Result<Self, ChannelError> {
        let stream = StreamChannel::take_over_local(running.as_mut(), cancel)?;
        Ok(Self { stream, running })
    }

    /// Says goodbye and returns whether the process ended within `limit`; kills it otherwise.
    pub(super) fn has_ended(&mut self, limit: Duration) -> bool {
        let _ = self.stream.send(&Request::Bye);
        let has_ended = matches!(self.running.wait(limit), Ok(Some(_)));
        if !has_ended {
            self.running.kill();
        }
        has_ended
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
    use std::collections::VecDeque;
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A peer that says goodbye endlessly, and counts.
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
    fn endless_peer_is_read_only_a_few_frames_ahead() {
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
            // The queued ones and the one that is being read.
            assert!(ahead <= QUEUED_REPLIES + 1, "{ahead} frames ahead");
        }
    }

    /// Takes a few bytes and then blocks.
    struct BlockingWriter(usize);

    impl Write for BlockingWriter {
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
    fn partially_sent_frame_blocks_further_requests() {
        let mut channel = StreamChannel::new(Box::new(BlockingWriter(10)), Box::new(io::empty()));
        for _ in 0..2 {
            let Err(ChannelError::Closed(why)) = channel.send(&Request::Bye) else {
                panic!("sent");
            };
            assert!(why.contains("takes no request"), "{why}");
        }
    }

    /// A stream that arrives in pieces: a pause for each `None`, and then the end.
    struct Pieces(VecDeque<Option<Vec<u8>>>);

    impl Read for Pieces {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(Some(piece)) = self.0.pop_front() else {
                return Ok(0);
            };
            buffer[..piece.len()].copy_from_slice(&piece);
            Ok(piece.len())
        }
    }

    impl Arriving for Pieces {
        fn wait(&mut self, left: &mut Duration) -> io::Result<bool> {
            let is_pause = matches!(self.0.front(), Some(None));
            if is_pause {
                self.0.pop_front();
                *left = Duration::ZERO;
            }
            Ok(!is_pause)
        }
    }

    fn over(pieces: Vec<Option<Vec<u8>>>) -> StreamChannel {
        StreamChannel {
            writer: Box::new(io::sink()),
            replies: Replies::Stream {
                stream: Some(Box::new(Pieces(pieces.into()))),
                frames: Frames::default(),
            },
            broken: None,
            meeting: None,
        }
    }

    #[test]
    fn partial_reply_survives_timeout_and_is_completed() {
        let mut frame = Vec::new();
        write_frame(&mut frame, &Reply::Ready { trial: 7 }).unwrap();
        for cut in 1..frame.len() {
            let (begin, rest) = frame.split_at(cut);
            let mut channel = over(vec![
                Some(begin.to_vec()),
                None,
                Some([rest, begin].concat()),
            ]);
            let mut receive = || channel.receive(Duration::from_secs(60));
            assert!(matches!(receive(), Err(ChannelError::Timeout(_))));
            assert_eq!(receive().unwrap(), Reply::Ready { trial: 7 });
            let Err(ChannelError::Garbled(_) | ChannelError::Closed(_)) = receive() else {
                panic!("half a frame was taken for one");
            };
            assert!(matches!(receive(), Err(ChannelError::Closed(_))));
        }
    }

    #[test]
    fn agent_gets_cpu_once_before_trial() {
        #[derive(Clone, Default)]
        struct SharedBuffer(Arc<std::sync::Mutex<Vec<u8>>>);
        impl Write for SharedBuffer {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().unwrap().extend_from_slice(bytes);
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let kept = SharedBuffer::default();
        let mut channel = over(Vec::new());
        channel.writer = Box::new(kept.clone());
        channel.meeting = Some(Meeting::default());
        // The thread must not migrate between the two.
        let stay = Stay::here();
        let run = Request::Run {
            trial: 1,
            call: tare_model::ProbeCall {
                name: "null".into(),
                args: tare_model::Params::new(),
            },
            target_ns: 0,
            limit_ns: 0,
            workdir: String::new(),
            hold: false,
            turns: None,
            cpu: None,
        };
        for request in [&Request::Go { trial: 1 }, &run, &run] {
            channel.send(request).unwrap();
        }
        let bytes = kept.0.lock().unwrap().clone();
        let (mut rest, mut requests) = (bytes.as_slice(), Vec::new());
        while !rest.is_empty() {
            requests.push(read_frame::<Request>(&mut rest).unwrap());
        }
        let meet = stay.and_then(|_| processor::current().map(|cpu| Request::Meet { cpu }));
        let mut expected = vec![Request::Go { trial: 1 }];
        expected.extend(meet);
        expected.extend([run.clone(), run]);
        assert_eq!(requests, expected);
    }
}
