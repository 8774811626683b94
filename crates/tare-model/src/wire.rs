//! The frames between host and agent: a 4-byte little-endian length, then that many bytes of JSON.
//!
//! JSON rather than a packed layout so that transcripts can be read and old frames stay readable.
//! Meant for any byte stream: a pipe, the exec stream of an engine, ssh, a serial line. `Hello` comes
//! first; an agent of another protocol version or another build is refused, because then the two sides
//! would not be running the same bytes.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};

use serde::{Deserialize, Serialize};

use crate::ProbeReport;
use crate::facts::Facts;
use crate::guest::GuestReport;
use crate::launch::LaunchSpec;
use crate::outcome::{Bytes, Failure, RawOutput, Reason};
use crate::recipe::ProbeCall;
use crate::tool::ToolQuestion;
use crate::turns::Turns;

/// The version of the frames. An agent that speaks another one is refused.
pub const PROTOCOL: u32 = 2;

/// No frame is longer than this; a longer length means that the stream is not ours.
pub const FRAME_LIMIT_BYTES: u32 = 64 << 20;

/// From host to agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// Who are you?
    Hello {
        /// The host's [`PROTOCOL`].
        protocol: u32,
    },
    /// What is this place?
    Facts {
        /// Paths whose mount is to be described.
        paths: Vec<String>,
        /// Programs about which it is to be said which they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolQuestion>,
    },
    /// The host asks from this processor of a machine that both run on: an agent that waits there for the next trial,
    /// with the worker that it has ready, is reached without waking another processor. No answer.
    Meet {
        /// The processor.
        cpu: u32,
    },
    /// Workers are to have so many bytes more in their environment and heap, so that no run depends on where things
    /// happen to lie. No answer.
    Pad {
        /// How many.
        bytes: u32,
    },
    /// Run a probe in a fresh worker process.
    Run {
        /// Chosen by the host; comes back in the replies.
        trial: u64,
        /// The probe and its arguments.
        call: ProbeCall,
        /// Time that the timed work aims at, nanoseconds.
        target_ns: u64,
        /// Kill the worker after this many nanoseconds.
        limit_ns: u64,
        /// Directory in which the probe may create files.
        workdir: String,
        /// Whether the worker prepares everything, says [`Reply::Ready`] and waits for [`Request::Go`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hold: bool,
        /// Whether the worker takes turns with those of other arms, and how; then it is held too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turns: Option<Turns>,
        /// The processor to which the worker is to bind itself, if it may; else it goes where it is sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu: Option<u32>,
    },
    /// Let the worker of this trial, which is held and ready, go on; its limit counts from here.
    Go {
        /// The trial.
        trial: u64,
    },
    /// The next slice is this worker's, which said that it is [`Reply::Waiting`].
    Turn {
        /// The trial.
        trial: u64,
    },
    /// Kill the worker of this trial, if it is still running.
    Cancel {
        /// The trial.
        trial: u64,
    },
    /// End.
    Bye,
}

/// How much of a program's output is sent to the host while it runs. It fits into the pipes on the way, so a host that
/// does not read for a while blocks no program.
pub const STREAMED_BYTES: usize = 128 << 10;

/// From agent to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "lowercase")]
pub enum Reply {
    /// I am this.
    Hello {
        /// The agent's [`PROTOCOL`].
        protocol: u32,
        /// The agent's build id.
        build: String,
        /// Names and revisions of its probes.
        probes: Vec<(String, u32)>,
        /// Those of them whose work can be cut into slices, each with what a slice aims at, nanoseconds.
        #[serde(default)]
        slices: BTreeMap<String, u64>,
    },
    /// This place.
    Facts {
        /// What was found out.
        facts: Facts,
    },
    /// The server of a pair listens; the worker goes on.
    Listening {
        /// The trial.
        trial: u64,
        /// The port.
        port: u16,
    },
    /// Output of a program that [streams it](crate::CommandCall::streams_output): the first [`STREAMED_BYTES`] in all.
    Printed {
        /// The trial.
        trial: u64,
        /// The bytes, of both streams.
        bytes: Bytes,
    },
    /// The worker has prepared everything and waits for [`Request::Go`].
    Ready {
        /// The trial.
        trial: u64,
    },
    /// The worker's slice is over, or none has begun: it waits for [`Request::Turn`].
    Waiting {
        /// The trial.
        trial: u64,
        /// Which of its phases the next slice belongs to; a probe has one for each thing that it times.
        phase: u32,
    },
    /// The worker ended and was reaped.
    Done {
        /// The trial.
        trial: u64,
        /// What it left.
        raw: RawOutput,
    },
    /// The probe cannot run here.
    Unavailable {
        /// The trial.
        trial: u64,
        /// Why.
        reason: Reason,
    },
    /// The worker failed and was reaped.
    Failed {
        /// The trial.
        trial: u64,
        /// How.
        failure: Failure,
    },
    /// Goodbye.
    Bye,
}

/// Why a frame could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The other side closed the stream between two frames.
    #[error("the stream was closed")]
    Closed,
    /// The stream broke inside a frame or could not be written.
    #[error("the stream broke: {0}")]
    Io(#[from] std::io::Error),
    /// What arrived is no frame of ours.
    #[error("not a frame: {0}")]
    Garbled(String),
}

/// What travels as JSON. The coding is compiled in this crate and not where it is asked for: there is one copy of it
/// in the agent, made for size.
pub trait Json: Sized {
    /// Appends the text.
    ///
    /// # Errors
    /// What cannot stand in JSON.
    fn to_json(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Reads the text.
    ///
    /// # Errors
    /// What is no JSON, or says something else.
    fn from_json(bytes: &[u8]) -> serde_json::Result<Self>;
}

macro_rules! travel_as_json {
    ($($type:ty),+) => {
        $(impl Json for $type {
            fn to_json(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()> {
                serde_json::to_writer(bytes, self)
            }

            fn from_json(bytes: &[u8]) -> serde_json::Result<Self> {
                serde_json::from_slice(bytes)
            }
        })+
    };
}

travel_as_json!(Request, Reply, ProbeReport, LaunchSpec, GuestReport);

/// Writes one frame and flushes.
pub fn write_frame(writer: &mut impl Write, frame: &impl Json) -> Result<(), FrameError> {
    let mut bytes = vec![0u8; 4];
    frame
        .to_json(&mut bytes)
        .map_err(|error| FrameError::Garbled(error.to_string()))?;
    let length = u32::try_from(bytes.len() - 4)
        .ok()
        .filter(|length| *length <= FRAME_LIMIT_BYTES);
    let Some(length) = length else {
        return Err(FrameError::Garbled(format!(
            "{} bytes are too many for one frame",
            bytes.len() - 4
        )));
    };
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    writer.write_all(&bytes)?;
    writer.flush()?;
    Ok(())
}

/// Reads one frame; blocks until it is whole.
pub fn read_frame<T: Json>(reader: &mut impl Read) -> Result<T, FrameError> {
    let mut head = [0u8; 4];
    let mut filled = 0;
    while filled < head.len() {
        match reader.read(&mut head[filled..]) {
            Ok(0) if filled == 0 => return Err(FrameError::Closed),
            Ok(0) => {
                return Err(FrameError::Garbled(
                    "the stream ended inside a frame's length".into(),
                ));
            }
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = u32::from_le_bytes(head);
    if length > FRAME_LIMIT_BYTES {
        return Err(FrameError::Garbled(format!(
            "length {length}: starts with {:?}",
            String::from_utf8_lossy(&head)
        )));
    }
    let mut body = vec![0u8; length as usize];
    reader.read_exact(&mut body)?;
    T::from_json(&body).map_err(|error| FrameError::Garbled(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_comes_back_as_it_was_written() {
        let request = Request::Run {
            trial: 7,
            call: ProbeCall {
                name: "syscall".into(),
                args: crate::params::Params::new().with("n", 3i64),
            },
            target_ns: 1,
            limit_ns: 2,
            workdir: "/tmp".into(),
            hold: false,
            turns: None,
            cpu: None,
        };
        let mut stream = Vec::new();
        write_frame(&mut stream, &request).unwrap();
        assert_eq!(
            read_frame::<Request>(&mut stream.as_slice()).unwrap(),
            request
        );
    }

    #[test]
    fn a_request_without_a_word_about_holding_is_one_that_does_not_hold() {
        let json = r#"{"request":"run","trial":1,"call":{"name":"null","args":{}},"target_ns":1,"limit_ns":2,"workdir":"/"}"#;
        let request: Request = serde_json::from_str(json).unwrap();
        assert!(matches!(request, Request::Run { hold: false, .. }));
        assert_eq!(serde_json::to_string(&request).unwrap(), json);
    }

    #[test]
    fn json_that_is_too_deep_or_none_is_garbled_and_does_nothing_worse() {
        let deep = |inner: &str| {
            let (open, close) = ("[".repeat(200), "]".repeat(200));
            format!(r#"{{"reply":"facts","facts":{{"a":{open}{inner}{close}}}}}"#).into_bytes()
        };
        for json in [
            deep("1"),
            "[".repeat(1_000_000).into_bytes(),
            br#"{"reply":"facts","facts":{"a":NaN}}"#.to_vec(),
            b"{\"reply\":\"facts\",\"facts\":{\"a\":\"\0\"}}".to_vec(),
            b"{\"reply\":\"facts\",\"facts\":{\"a\":\"\xff\xfe\"}}".to_vec(),
            vec![0; 64],
            Vec::new(),
        ] {
            let mut frame = u32::try_from(json.len()).unwrap().to_le_bytes().to_vec();
            frame.extend(&json);
            let read = read_frame::<Reply>(&mut frame.as_slice());
            assert!(matches!(read, Err(FrameError::Garbled(_))), "{read:?}");
            let read = read_frame::<Request>(&mut frame.as_slice());
            assert!(matches!(read, Err(FrameError::Garbled(_))), "{read:?}");
        }
    }

    #[test]
    fn text_that_is_no_frame_is_called_garbled() {
        for text in [
            &b"OCI runtime exec failed: no such file"[..],
            b"\x05\0\0\0hello",
            b"\x01",
        ] {
            assert!(
                matches!(
                    read_frame::<Reply>(&mut &text[..]),
                    Err(FrameError::Garbled(_))
                ),
                "{text:?}"
            );
        }
        assert!(matches!(
            read_frame::<Reply>(&mut &b""[..]),
            Err(FrameError::Closed)
        ));
    }
}
