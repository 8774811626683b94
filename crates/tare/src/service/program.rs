//! Runs a client program on this machine once.
//!
//! Its time is from the request to start it until its stdout has ended and it has exited.
//! Limits: only its output shows what it did.

use std::io::Read as _;
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use tare_model::CommandReport;
use tare_model::outcome::{Bytes, Exit};

use super::user::{HOST, PORT};
use crate::cx::{Cancel, Clock, CommandLine, Exec, Running};

/// Longest wait without a check for Ctrl-C.
const SLICE: Duration = Duration::from_millis(250);
/// Most bytes of stdout that are kept.
const STDOUT_LIMIT: u64 = 16 << 20;

/// Fills the server's address into the arguments.
pub(crate) fn filled(argv: &[String], way: SocketAddr) -> Vec<String> {
    let (host, port) = (way.ip().to_string(), way.port().to_string());
    let fill = |word: &String| word.replace(HOST, &host).replace(PORT, &port);
    argv.iter().map(fill).collect()
}

/// The end of what a program wrote to standard error or, if that is nothing, to standard output.
pub(crate) fn tail(stderr: &[u8], stdout: &[u8], most_bytes: usize) -> String {
    let bytes = if stderr.is_empty() { stdout } else { stderr };
    let end = &bytes[bytes.len().saturating_sub(most_bytes)..];
    String::from_utf8_lossy(end).trim().to_owned()
}

/// Why a client did not end by itself.
#[derive(Debug)]
pub enum NoEnd {
    /// Ctrl-C.
    Cancelled,
    /// It did not end within this time.
    TooLong(Duration),
    /// It could not be run.
    Failed(String),
}

/// Runs the client until it ends, for at most `limit`.
///
/// # Errors
/// The client did not end by itself.
pub fn run(
    (exec, clock, cancel): (&dyn Exec, &dyn Clock, &Cancel),
    argv: &[String],
    way: SocketAddr,
    limit: Duration,
) -> Result<CommandReport, NoEnd> {
    let argv = filled(argv, way);
    let Some((program, arguments)) = argv.split_first() else {
        return Err(NoEnd::Failed("there is no client to run".to_owned()));
    };
    let failed = NoEnd::Failed;
    let begun_ns = clock.now_ns();
    let line = CommandLine::new(program.as_str(), arguments.iter().cloned());
    let mut running = exec
        .spawn(&line)
        .map_err(|error| failed(error.to_string()))?;
    drop(running.take_stdin());
    let stdout = running.take_stdout();
    let left = |now_ns: u64| limit.checked_sub(Duration::from_nanos(now_ns - begun_ns));
    let (bytes, exit, ended_ns) = std::thread::scope(|scope| {
        let (sender, receiver) = mpsc::channel();
        scope.spawn(move || {
            let mut bytes = Vec::new();
            if let Some(stdout) = stdout {
                // An error ends the stream; data that arrived before it is kept.
                let _ = stdout.take(STDOUT_LIMIT).read_to_end(&mut bytes);
            }
            let _ = sender.send((bytes, clock.now_ns()));
        });
        let over = |running: &mut Box<dyn Running>| {
            let now_ns = clock.now_ns();
            let why = if cancel.is_requested() {
                NoEnd::Cancelled
            } else if left(now_ns).is_none() {
                NoEnd::TooLong(limit)
            } else {
                return Ok(());
            };
            running.kill_all();
            Err(why)
        };
        let (bytes, mut ended_ns) = loop {
            match receiver.recv_timeout(SLICE) {
                Ok(read) => break read,
                Err(RecvTimeoutError::Timeout) => over(&mut running)?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("its output could not be read".to_owned()));
                }
            }
        };
        let waited = |error: std::io::Error| NoEnd::Failed(error.to_string());
        let mut exit = running.wait(Duration::from_millis(1)).map_err(waited)?;
        while exit.is_none() {
            exit = running.wait(SLICE).map_err(waited)?;
            ended_ns = clock.now_ns();
            if exit.is_none() {
                over(&mut running)?;
            }
        }
        Ok((bytes, exit.unwrap_or(-1), ended_ns))
    })?;
    let stderr = Bytes(running.stderr_tail().into_bytes());
    Ok(CommandReport {
        exit: Exit::Code(exit),
        is_cut: bytes.len() as u64 == STDOUT_LIMIT,
        stdout: Bytes(bytes),
        stderr,
        ..CommandReport::silent(argv, ended_ns.saturating_sub(begun_ns))
    })
}
