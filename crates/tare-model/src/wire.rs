//! Frames between host and agent: a 4-byte little-endian length, then that many bytes of JSON.
//!
//! JSON rather than a packed layout, so that transcripts can be read and old frames stay readable. Works over any
//! byte stream: a pipe, an engine's exec stream, ssh, a serial line. `Hello` comes first; an agent with another
//! protocol version or another build is refused, because the two sides would not be running the same bytes.

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

/// Version of the frames. An agent with another version is refused.
pub const PROTOCOL: u32 = 2;

/// Maximum length of a frame; a longer one means that the stream is not ours.
pub const FRAME_LIMIT_BYTES: u32 = 64 << 20;

/// A message from host to agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "lowercase")]
pub enum Request {
    /// Asks for the agent's identity.
    Hello {
        /// The host's [`PROTOCOL`].
        protocol: u32,
    },
    /// Asks for facts about the environment.
    Facts {
        /// Paths whose mounts to describe.
        paths: Vec<String>,
        /// Programs to identify.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        tools: Vec<ToolQuestion>,
    },
    /// The host asks from this processor of a machine that both run on: an agent that waits there for the next trial,
    /// with its worker ready, is reached without waking another processor. No answer.
    Meet {
        /// The processor.
        cpu: u32,
    },
    /// Gives workers this many additional bytes of environment and heap, so that no run depends on a particular
    /// memory layout. No answer.
    Pad {
        /// Number of bytes.
        bytes: u32,
    },
    /// Runs a probe in a fresh worker process.
    Run {
        /// Chosen by the host; returned in the replies.
        trial: u64,
        /// The probe and its arguments.
        call: ProbeCall,
        /// Target duration of the timed work, nanoseconds.
        target_ns: u64,
        /// Kill the worker after this many nanoseconds.
        limit_ns: u64,
        /// Directory that the probe may create files in.
        workdir: String,
        /// Whether the worker prepares everything, sends [`Reply::Ready`] and waits for [`Request::Go`].
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        hold: bool,
        /// How the worker alternates with those of other arms, if it does; it is then held too.
        #[serde(skip_serializing_if = "Option::is_none")]
        turns: Option<Turns>,
        /// Processor that the worker pins itself to, if permitted; otherwise it runs where it is scheduled.
        #[serde(skip_serializing_if = "Option::is_none")]
        cpu: Option<u32>,
    },
    /// Releases the worker of this trial, which is held and ready; its limit counts from here.
    Go {
        /// The trial.
        trial: u64,
    },
    /// Starts the next slice of this worker, which has sent [`Reply::Waiting`].
    Turn {
        /// The trial.
        trial: u64,
    },
    /// Kills the worker of this trial, if it is still running.
    Cancel {
        /// The trial.
        trial: u64,
    },
    /// Ends the conversation.
    Bye,
}

/// Maximum amount of a program's output that is sent to the host while it runs. It fits into the pipes on the way, so
/// a host that does not read for a while blocks no program.
pub const STREAMED_BYTES: usize = 128 << 10;

/// A message from agent to host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "lowercase")]
pub enum Reply {
    /// The agent's identity.
    Hello {
        /// The agent's [`PROTOCOL`].
        protocol: u32,
        /// The agent's build id.
        build: String,
        /// Names and revisions of its probes.
        probes: Vec<(String, u32)>,
        /// Probes whose work can be sliced, each with the target length of a slice, nanoseconds.
        #[serde(default)]
        slices: BTreeMap<String, u64>,
    },
    /// Facts about the environment.
    Facts {
        /// The facts.
        facts: Facts,
    },
    /// The server of a pair is listening; the worker continues.
    Listening {
        /// The trial.
        trial: u64,
        /// The port.
        port: u16,
    },
    /// Output of a program that [streams it](crate::CommandCall::streams_output): the first [`STREAMED_BYTES`] in
    /// total.
    Printed {
        /// The trial.
        trial: u64,
        /// Bytes of both streams.
        bytes: Bytes,
    },
    /// The worker has prepared everything and waits for [`Request::Go`].
    Ready {
        /// The trial.
        trial: u64,
    },
    /// The worker's slice is over, or none has begun; it waits for [`Request::Turn`].
    Waiting {
        /// The trial.
        trial: u64,
        /// Phase of the next slice; a probe has one for each thing that it times.
        phase: u32,
    },
    /// The worker ended and was reaped.
    Done {
        /// The trial.
        trial: u64,
        /// Its output.
        raw: RawOutput,
    },
    /// The probe cannot run here.
    Unavailable {
        /// The trial.
        trial: u64,
        /// The reason.
        reason: Reason,
    },
    /// The worker failed and was reaped.
    Failed {
        /// The trial.
        trial: u64,
        /// The failure.
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
    /// The received bytes are not one of our frames.
    #[error("not a frame: {0}")]
    Garbled(String),
}

/// A type that is sent as JSON. Its coding is compiled in this crate rather than where it is used, so that the agent
/// has one copy, optimized for size.
pub trait Json: Sized {
    /// Appends the JSON text.
    ///
    /// # Errors
    /// Fails if the value cannot be represented in JSON.
    fn to_json(&self, bytes: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Parses the JSON text.
    ///
    /// # Errors
    /// Fails if it is not JSON, or describes something else.
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

/// Reads one frame; blocks until it is complete.
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
    fn frame_roundtrips_unchanged() {
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
    fn run_request_without_hold_does_not_hold() {
        let json = r#"{"request":"run","trial":1,"call":{"name":"null","args":{}},"target_ns":1,"limit_ns":2,"workdir":"/"}"#;
        let request: Request = serde_json::from_str(json).unwrap();
        assert!(matches!(request, Request::Run { hold: false, .. }));
        assert_eq!(serde_json::to_string(&request).unwrap(), json);
    }

    #[test]
    fn too_deep_or_invalid_json_is_garbled() {
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
