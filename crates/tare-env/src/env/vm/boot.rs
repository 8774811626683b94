//! Boots a machine: from the command line to a guest that has reported.
//!
//! Waiting for the guest's first frame distinguishes a machine that never boots, reported with the last lines of its
//! console, from an agent that does not answer.
//! Limits: messages below the guest kernel's log level are not on the console.

use crate::env::prelude::*;

use std::io::{Read, Write};
use std::sync::mpsc;

use tare_model::guest::GuestReport;
use tare_model::launch::OWN_USERS;
use tare_model::wire::{FrameError, read_frame};

use super::command::Machine;
use crate::cx::aside;
use crate::env::channel::{LAST_WORDS_LIMIT, pipes, wait_for_last_words};

/// Interval of checks for Ctrl-C while a guest boots.
const SLICE: Duration = Duration::from_millis(50);

/// How much of the console is included in a message: lines, and bytes of the file that are read.
const TAIL_LINES: usize = 6;
const TAIL_BYTES: usize = 2 << 10;

/// A guest that has reported.
pub(super) struct Booted {
    pub(super) running: Box<dyn Running>,
    pub(super) writer: Box<dyn Write + Send>,
    pub(super) reader: Box<dyn Read + Send>,
    pub(super) report: GuestReport,
    /// From the start of the emulator to the report, by the host's clock.
    pub(super) took: Duration,
}

/// Boots a machine; on failure nothing is left running.
pub(super) fn boot(
    cx: &Context<'_>,
    agent: &AgentBinary,
    machine: &Machine<'_>,
    limit: Duration,
) -> Result<Booted> {
    let begin_ns = cx.clock.now_ns();
    let mut running = cx.exec.spawn(&machine.command(agent))?;
    let pipes = pipes(running.as_mut(), cx.cancel);
    let (writer, reader) = pipes.inspect_err(|_| end(running.as_mut()))?;
    let frames = first_frame(reader);
    let elapsed = || Duration::from_nanos(cx.clock.now_ns().saturating_sub(begin_ns));
    loop {
        match frames.recv_timeout(SLICE.min(limit)) {
            Ok((Ok(report), reader)) => {
                if let Some(problem) = &report.error {
                    end(running.as_mut());
                    return Err(EnvError::refused("setting up the guest", escaped(problem)));
                }
                return Ok(Booted {
                    running,
                    writer,
                    reader,
                    report,
                    took: elapsed(),
                });
            }
            Ok((Err(error), _)) => {
                wait_for_last_words(running.as_mut(), LAST_WORDS_LIMIT);
                let words = last_words(running.as_ref(), machine.console);
                end(running.as_mut());
                return Err(EnvError::refused(
                    "the machine ended before its guest was ready",
                    words.unwrap_or_else(|| error.to_string()),
                ));
            }
            Err(_) if cx.cancel.is_requested() => {
                end(running.as_mut());
                return Err(EnvError::refused("booting the guest", "interrupted"));
            }
            Err(_) if elapsed() >= limit => {
                let words = last_words(running.as_ref(), machine.console);
                end(running.as_mut());
                let seen = words.unwrap_or_else(|| "nothing was printed".to_owned());
                return Err(EnvError::Timeout {
                    phase: format!("booting the guest (its console: {seen})"),
                    limit,
                });
            }
            Err(_) => {}
        }
    }
}

/// Returns the user of the emulator in this sandbox and its seccomp mode, from the kernel, because a request need not
/// have taken effect.
pub(super) fn held_back(sandbox: u32) -> Vec<(&'static str, String)> {
    let read = |path: String| files::read_text(path.as_ref()).unwrap_or_default();
    let children = read(format!("/proc/{sandbox}/task/{sandbox}/children"));
    let Some(emulator) = children.split_whitespace().next() else {
        return Vec::new();
    };
    let status = read(format!("/proc/{emulator}/status"));
    let facts = [("user", "Uid:", 1), ("seccomp", "Seccomp:", 0)];
    facts
        .into_iter()
        .filter_map(|(name, field, place)| {
            let rest = status.lines().find_map(|line| line.strip_prefix(field))?;
            let value = rest.split_whitespace().nth(place)?;
            let is_its_own =
                name == "user" && value.parse().is_ok_and(|user: u32| user > OWN_USERS);
            let value = if is_its_own { "its own" } else { value };
            Some((name, value.to_owned()))
        })
        .collect()
}

/// Time limit for an emulator to end once its sandbox is gone.
const END_LIMIT: Duration = Duration::from_secs(10);

/// Ends a machine and waits until the emulator is gone, not only its sandbox. The kernel kills the emulator a moment
/// after the sandbox; then the stderr that both hold is closed.
pub(super) fn end(running: &mut dyn Running) {
    running.kill();
    wait_for_last_words(running, END_LIMIT);
}

type FirstFrame = (Result<GuestReport, FrameError>, Box<dyn Read + Send>);

/// Reads the first frame on a thread, which ends at the latest with the stream, and returns the stream.
fn first_frame(mut reader: Box<dyn Read + Send>) -> mpsc::Receiver<FirstFrame> {
    let (sender, receiver) = mpsc::channel();
    // Without a thread no frame is sent.
    let _ = aside(move || {
        let frame = read_frame::<GuestReport>(&mut reader);
        // The receiver is gone after a time limit.
        let _ = sender.send((frame, reader));
    });
    receiver
}

/// Returns the last output of the emulator and the guest's console, escaped; `None` if there is none.
pub(super) fn last_words(running: &dyn Running, console: &Path) -> Option<String> {
    let emulator = running.stderr_tail();
    let console = files::read(console).unwrap_or_default();
    let shown: Vec<String> = [tail(emulator.as_bytes()), tail(&console)]
        .into_iter()
        .flatten()
        .collect();
    (!shown.is_empty()).then(|| shown.join("; "))
}

/// Joins the last lines of a text, escaped.
fn tail(bytes: &[u8]) -> Option<String> {
    let end = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(TAIL_LINES)..];
    (!last.is_empty()).then(|| escaped(last.join(" | ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_tail_is_one_line_and_terminal_safe() {
        assert_eq!(tail(b""), None);
        assert_eq!(tail(b"\r\n \r\n"), None);
        assert_eq!(
            tail(b"one\r\ntwo\x1b[31m\r\n").as_deref(),
            Some("one | two\\u{1b}[31m")
        );
        let many: Vec<String> = (0..1000).map(|number| format!("line {number}")).collect();
        let shown = tail(many.join("\n").as_bytes()).unwrap();
        assert!(
            shown.starts_with("line 994 |") && shown.ends_with("| line 999"),
            "{shown}"
        );
    }
}
