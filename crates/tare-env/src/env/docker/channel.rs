//! The channel to the agent over the engine's attached stream.
//!
//! The engine multiplexes standard output and standard error over one hijacked connection; frames are reassembled
//! from the pieces of standard output, and the end of standard error is kept for messages. A frame passes client →
//! engine → containerd's shim → agent and back: that takes some 100 µs of wake-ups at every hand-over, outside every
//! timed region, because trials are timed inside.

use crate::env::prelude::*;

use std::pin::Pin;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error as ApiError;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use bollard::query_parameters::AttachContainerOptions;
use futures_util::{Stream, StreamExt};
use tare_model::frames::Frames;
use tare_model::wire::write_frame;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::super::ChannelError;
use super::super::channel::farewell;
use super::api::Api;

/// Time limit for the agent to accept a request.
const SEND_LIMIT: Duration = Duration::from_secs(10);
/// How much of standard error is kept, bytes.
const TAIL_BYTES: usize = 8192;

pub(super) type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, ApiError>> + Send>>;
pub(super) type Input = Pin<Box<dyn AsyncWrite + Send>>;

/// A channel over an attached stream. It owns the stream's runtime.
pub(super) struct EngineChannel {
    pub(super) api: Api,
    container: String,
    output: Output,
    input: Input,
    frames: Frames,
    stderr: Vec<u8>,
    ended: Option<String>,
}

/// Attaches to the streams of a container that is about to start.
pub(super) fn attached(
    api: &Api,
    container: &str,
    has_input: bool,
) -> Result<AttachContainerResults, EnvError> {
    let options = AttachContainerOptions {
        stream: true,
        stdin: has_input,
        stdout: true,
        stderr: true,
        ..Default::default()
    };
    let request = api.client.attach_container(container, Some(options));
    api.call("attach to the container", CONTROL_LIMIT, request)
}

/// Starts the agent in a running container and opens the streams to it.
pub(super) fn served_inside(
    api: &Api,
    container: &str,
    config: ExecConfig,
) -> Result<(Output, Input), EnvError> {
    api.call("start the agent in the container", CONTROL_LIMIT, async {
        let exec = api.client.create_exec(container, config).await?;
        match api.client.start_exec(&exec.id, None).await? {
            StartExecResults::Attached { output, input } => Ok((output, input)),
            StartExecResults::Detached => Err(ApiError::DockerStreamError {
                error: "the engine detached from the agent".into(),
            }),
        }
    })
}

impl EngineChannel {
    /// Takes over both directions of the stream to the agent in `container`.
    pub(super) fn new(api: Api, container: String, output: Output, input: Input) -> Self {
        Self {
            api,
            container,
            output,
            input,
            frames: Frames::default(),
            stderr: Vec::new(),
            ended: None,
        }
    }

    /// Says goodbye if the stream is open, and waits only briefly for the answer.
    pub(super) fn farewell(&mut self, cx: &Context<'_>) {
        if self.ended.is_none() {
            farewell(cx.clock, cx.cancel, self);
        }
    }

    /// Marks the stream as ended and adds the reason: the container's state and the end of standard error.
    fn end(&mut self, first: &str) -> ChannelError {
        let mut words = first.to_owned();
        let state = self.api.attempt(
            Duration::from_secs(2),
            self.api.client.inspect_container(&self.container, None),
        );
        match state.map(|container| container.state) {
            Ok(Some(state)) if state.running == Some(false) => {
                if let Some(code) = state.exit_code {
                    words.push_str("; the container exited with status ");
                    words.push_str(&code.to_string());
                }
                if state.oom_killed == Some(true) {
                    words.push_str(", killed because it exceeded its memory limit");
                }
            }
            Ok(_) => {}
            Err(_) => words.push_str("; the engine does not answer any more"),
        }
        let tail = printable(&String::from_utf8_lossy(&self.stderr));
        if !tail.is_empty() {
            words.push_str("; it said: ");
            words.push_str(&tail);
        }
        self.ended = Some(words.clone());
        ChannelError::Closed(words)
    }
}

/// The next complete reply, if it has arrived.
fn next_reply(frames: &mut Frames) -> Result<Option<Reply>, ChannelError> {
    frames
        .take()
        .map_err(|error| ChannelError::Garbled(printable(&error.to_string())))
}

fn keep_tail(tail: &mut Vec<u8>, bytes: &[u8]) {
    tail.extend_from_slice(bytes);
    tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
}

impl Channel for EngineChannel {
    fn send(&mut self, request: &Request) -> Result<(), ChannelError> {
        if let Some(words) = &self.ended {
            return Err(ChannelError::Closed(words.clone()));
        }
        let mut bytes = Vec::new();
        write_frame(&mut bytes, request)
            .map_err(|error| ChannelError::Garbled(error.to_string()))?;
        let input = &mut self.input;
        let written = self.api.runtime.block_on(async {
            tokio::time::timeout(SEND_LIMIT, async {
                input.write_all(&bytes).await?;
                input.flush().await
            })
            .await
        });
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.end(&printable(&error.to_string()))),
            // Part of the frame may have been sent: the stream cannot be used any more.
            Err(_) => Err(self.end("it takes no more requests")),
        }
    }

    fn receive(&mut self, limit: Duration) -> Result<Reply, ChannelError> {
        if let Some(words) = &self.ended {
            return Err(ChannelError::Closed(words.clone()));
        }
        let (output, frames, stderr) = (&mut self.output, &mut self.frames, &mut self.stderr);
        let received = self.api.runtime.block_on(async {
            tokio::time::timeout(limit, async {
                loop {
                    match next_reply(frames) {
                        Ok(None) => {}
                        Ok(Some(reply)) => return Ok(Ok(reply)),
                        Err(error) => return Ok(Err(error)),
                    }
                    match output.next().await {
                        Some(Ok(LogOutput::StdOut { message })) => {
                            frames.push(&message);
                        }
                        // Output without a stream header comes from the engine itself.
                        Some(Ok(
                            LogOutput::StdErr { message } | LogOutput::Console { message },
                        )) => {
                            keep_tail(stderr, &message);
                        }
                        Some(Ok(LogOutput::StdIn { .. })) => {}
                        Some(Err(error)) => return Err(printable(&error.to_string())),
                        None => return Err("its stream ended".to_owned()),
                    }
                }
            })
            .await
        });
        match received {
            Ok(Ok(reply)) => {
                if let Err(error) = &reply {
                    self.ended = Some(error.to_string());
                }
                reply
            }
            Ok(Err(words)) => Err(self.end(&words)),
            Err(_) => Err(ChannelError::Timeout(limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cut_anywhere_are_put_together() {
        let mut stream = Vec::new();
        write_frame(&mut stream, &Reply::Bye).unwrap();
        write_frame(&mut stream, &Reply::Listening { trial: 7, port: 9 }).unwrap();
        for cut in 0..stream.len() {
            let mut frames = Frames::default();
            frames.push(&stream[..cut]);
            let mut replies = Vec::new();
            replies.extend(next_reply(&mut frames).unwrap());
            frames.push(&stream[cut..]);
            while let Some(reply) = next_reply(&mut frames).unwrap() {
                replies.push(reply);
            }
            assert_eq!(
                replies,
                [Reply::Bye, Reply::Listening { trial: 7, port: 9 }]
            );
            assert!(frames.is_empty());
        }
    }

    #[test]
    fn text_of_the_runtime_in_place_of_a_frame_is_garbled() {
        let mut frames = Frames::default();
        frames.push(b"OCI runtime exec failed: \x1b[2J");
        let error = next_reply(&mut frames).unwrap_err();
        assert!(matches!(&error, ChannelError::Garbled(text) if !text.contains('\u{1b}')));
    }

    #[test]
    fn stderr_over_limit_keeps_only_its_tail() {
        let mut tail = Vec::new();
        for _ in 0..10 {
            keep_tail(&mut tail, &[b'x'; 4000]);
        }
        keep_tail(&mut tail, b"last");
        assert_eq!(tail.len(), TAIL_BYTES);
        assert!(tail.ends_with(b"last"));
    }
}
