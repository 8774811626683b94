//! Starts programs on the host.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use super::timed_read::Arriving;
#[cfg(unix)]
use super::timed_write::Patient;
use super::{Cancel, aside, locked, vars};

mod error;
mod finished;

pub use error::CommandError;
pub use finished::Finished;

/// A program with its arguments and additional environment variables. Never goes through a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Program name or path.
    pub program: String,
    /// Arguments, passed on unchanged.
    pub arguments: Vec<String>,
    /// Variables set in addition to the inherited ones and to `LC_ALL=C`.
    pub variables: BTreeMap<String, String>,
    /// Whether it gets no variables but these.
    pub is_alone: bool,
    /// Whether the program creates its own session, as `setsid` does.
    pub is_session: bool,
    /// Its name in its first argument and in messages, if that differs from the path that it is started by.
    pub name: Option<String>,
}

impl CommandLine {
    /// A command that runs `program` with `arguments`.
    pub fn new<A: Into<String>>(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            variables: BTreeMap::new(),
            is_session: false,
            is_alone: false,
            name: None,
        }
    }

    /// Runs the command in its own session: for another user's programs, which must not reach this user's terminal.
    #[must_use]
    pub fn in_session(self) -> Self {
        let arguments = std::iter::once(self.program).chain(self.arguments);
        Self {
            program: "setsid".to_owned(),
            arguments: arguments.collect(),
            is_session: true,
            name: None,
            ..self
        }
    }

    /// Marks a program that creates its own session, as the agent does.
    #[must_use]
    pub fn that_leads_a_session(self) -> Self {
        Self {
            is_session: true,
            ..self
        }
    }

    /// Sets `HOME` for a program that reads settings, or programs, from the user's home.
    #[must_use]
    pub fn at_home(self) -> Self {
        match vars::home_instead() {
            Some(home) => self.variable("HOME", home),
            None => self,
        }
    }

    /// Gives the command only the variables set here.
    #[must_use]
    pub fn with_variables_alone(self) -> Self {
        Self {
            is_alone: true,
            ..self
        }
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<String>) -> Self {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    /// The error that it could not be run.
    fn failed(&self, source: io::Error) -> CommandError {
        CommandError::Io {
            command: self.to_string(),
            source,
        }
    }
}

impl fmt::Display for CommandLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_ref().unwrap_or(&self.program);
        write!(out, "{}", name.escape_debug())?;
        for argument in &self.arguments {
            let plain = argument
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\'));
            if plain && !argument.is_empty() {
                write!(out, " {argument}")?;
            } else {
                write!(out, " {argument:?}")?;
            }
        }
        Ok(())
    }
}

/// A running program with its standard input and output as pipes. Killed and reaped when dropped.
pub trait Running: Send {
    /// Its standard input; `Some` once.
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>>;
    /// Standard input that never blocks for ever: if the program reads nothing for `patience`, or a stop is requested
    /// while it reads nothing, writing fails with `TimedOut`.
    fn take_patient_stdin(
        &mut self,
        _patience: Duration,
        _cancel: &Cancel,
    ) -> Option<Box<dyn Write + Send>> {
        self.take_stdin()
    }
    /// Its standard output; `Some` once.
    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>>;
    /// Standard output that can be read with a time limit, where the system supports it.
    fn take_arriving_stdout(&mut self) -> Option<Box<dyn Arriving>> {
        None
    }
    /// Its process id.
    fn id(&self) -> u32;
    /// Waits at most `limit` for its end; `None` if it is still running.
    fn wait(&mut self, limit: Duration) -> io::Result<Option<i32>>;
    /// Kills and reaps it; does nothing if it has ended.
    fn kill(&mut self);
    /// Kills it and, where it leads a process group, that too; by default it leads none.
    fn kill_all(&mut self) {
        self.kill();
    }
    /// Its standard error so far, at most the last 8 KiB.
    fn stderr_tail(&self) -> String;
    /// Whether standard error has been read to its end. The last words of an ended program may not have arrived yet;
    /// a grandchild that holds the stream keeps it open.
    fn has_read_stderr(&self) -> bool {
        true
    }
}

/// A means to run programs.
pub trait Exec: Sync {
    /// Runs a command to its end, for at most `limit`.
    fn run(
        &self,
        command: &CommandLine,
        input: &[u8],
        limit: Duration,
    ) -> Result<Finished, CommandError>;
    /// Starts a command and leaves it running.
    fn spawn(&self, command: &CommandLine) -> Result<Box<dyn Running>, CommandError>;
}

/// Runs programs on this machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemExec;

fn start(command: &CommandLine) -> Result<Child, CommandError> {
    let mut process = Command::new(&command.program);
    // Ctrl-C at a terminal goes to the whole foreground group. It is meant for Tare, which then stops its children in
    // order; a program that dies of it at the same moment would look like a failure.
    // A session is a group too; the leader of a group could not create a session without a fork.
    #[cfg(unix)]
    if !command.is_session {
        std::os::unix::process::CommandExt::process_group(&mut process, 0);
    }
    #[cfg(unix)]
    if let Some(name) = &command.name {
        std::os::unix::process::CommandExt::arg0(&mut process, name);
    }
    if command.is_alone {
        process.env_clear();
    } else {
        process.env("LC_ALL", "C");
    }
    process
        .args(&command.arguments)
        .envs(&command.variables)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CommandError::Missing {
                program: command.name.as_ref().unwrap_or(&command.program).clone(),
            },
            _ => command.failed(source),
        })
}

/// Limit of each output stream of a command, bytes: several times what any command of Tare's prints.
const OUTPUT_LIMIT: usize = 64 << 20;

/// Reads a stream on its own thread, to its end or just past the limit; then `is_over` is set.
fn drain(
    stream: impl Read + Send + 'static,
    is_over: &Arc<AtomicBool>,
) -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    let is_over = is_over.clone();
    aside(move || {
        let mut bytes = Vec::new();
        // An error ends the stream as EOF does: what arrived before it is kept.
        let _ = stream.take(OUTPUT_LIMIT as u64 + 1).read_to_end(&mut bytes);
        if bytes.len() > OUTPUT_LIMIT {
            is_over.store(true, Ordering::Release);
        }
        let _ = sender.send(bytes);
    })?;
    Ok(receiver)
}

/// The two output streams of a program.
type Streams = [Option<mpsc::Receiver<Vec<u8>>>; 2];

/// Reads both streams of a program while writing its input: it may block on any of them.
fn attended(child: &mut Child, input: &[u8], is_over: &Arc<AtomicBool>) -> io::Result<Streams> {
    let stdout = child.stdout.take().map(|stream| drain(stream, is_over));
    let stderr = child.stderr.take().map(|stream| drain(stream, is_over));
    if let Some(mut stdin) = child.stdin.take() {
        let input = input.to_owned();
        // A program that does not read its input closes the pipe; that is no error.
        aside(move || drop(stdin.write_all(&input)))?;
    }
    Ok([stdout.transpose()?, stderr.transpose()?])
}

/// Ends a program whose streams cannot be handled, and returns the error.
fn unattended(child: &mut Child, command: &CommandLine, source: io::Error) -> CommandError {
    reap(child);
    command.failed(source)
}

fn reap(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Polls for the child's end, in steps that grow from 100 µs to 5 ms; stops when `is_over` is set.
fn wait(
    child: &mut Child,
    limit: Duration,
    is_over: &AtomicBool,
) -> io::Result<Option<ExitStatus>> {
    let mut waited = Duration::ZERO;
    let mut step = Duration::from_micros(100);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited >= limit || is_over.load(Ordering::Acquire) {
            return Ok(None);
        }
        std::thread::sleep(step);
        waited += step;
        step = (step * 2).min(Duration::from_millis(5));
    }
}

impl Exec for SystemExec {
    fn run(
        &self,
        command: &CommandLine,
        input: &[u8],
        limit: Duration,
    ) -> Result<Finished, CommandError> {
        let mut child = start(command)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let [stdout, stderr] = attended(&mut child, input, &is_over)
            .map_err(|source| unattended(&mut child, command, source))?;
        let ended = wait(&mut child, limit, &is_over).map_err(|source| command.failed(source))?;
        let has_room = || {
            if is_over.load(Ordering::Acquire) {
                return Err(CommandError::TooMuch {
                    command: command.to_string(),
                });
            }
            Ok(())
        };
        let Some(status) = ended else {
            reap(&mut child);
            has_room()?;
            return Err(CommandError::Timeout {
                command: command.to_string(),
                limit,
            });
        };
        let collect = |stream: Option<mpsc::Receiver<Vec<u8>>>| {
            // A grandchild may hold the pipe open after the program ended; do not wait for its output.
            stream
                .and_then(|stream| stream.recv_timeout(Duration::from_secs(2)).ok())
                .unwrap_or_default()
        };
        let (stdout, stderr) = (collect(stdout), collect(stderr));
        has_room()?;
        Ok(Finished {
            status: status.code(),
            stdout,
            stderr,
        })
    }

    fn spawn(&self, command: &CommandLine) -> Result<Box<dyn Running>, CommandError> {
        let mut child = start(command)?;
        let tail = Arc::new(Mutex::new(Vec::new()));
        let is_read = Arc::new(AtomicBool::new(child.stderr.is_none()));
        if let Some(mut stderr) = child.stderr.take() {
            let tail = tail.clone();
            let is_read = is_read.clone();
            let attended = aside(move || {
                let mut buffer = [0u8; 1024];
                while let Ok(count @ 1..) = stderr.read(&mut buffer) {
                    let mut tail = locked(&tail);
                    tail.extend_from_slice(&buffer[..count]);
                    let surplus = tail.len().saturating_sub(8192);
                    tail.drain(..surplus);
                }
                is_read.store(true, Ordering::Release);
            });
            attended.map_err(|source| unattended(&mut child, command, source))?;
        }
        Ok(Box::new(SystemRunning {
            child,
            tail,
            is_read,
        }))
    }
}

struct SystemRunning {
    child: Child,
    tail: Arc<Mutex<Vec<u8>>>,
    is_read: Arc<AtomicBool>,
}

impl Running for SystemRunning {
    fn take_stdin(&mut self) -> Option<Box<dyn Write + Send>> {
        let stdin = self.child.stdin.take()?;
        Some(Box::new(stdin))
    }

    #[cfg(unix)]
    fn take_patient_stdin(
        &mut self,
        patience: Duration,
        cancel: &Cancel,
    ) -> Option<Box<dyn Write + Send>> {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let stdin = self.child.stdin.take()?;
        let flags = fcntl_getfl(&stdin);
        // A pipe whose flags cannot be read is written to like any other.
        if flags.is_ok_and(|flags| fcntl_setfl(&stdin, flags | OFlags::NONBLOCK).is_ok()) {
            Some(Box::new(Patient::new(stdin, patience, cancel)))
        } else {
            Some(Box::new(stdin))
        }
    }

    fn take_stdout(&mut self) -> Option<Box<dyn Read + Send>> {
        let stdout = self.child.stdout.take()?;
        Some(Box::new(stdout))
    }

    #[cfg(unix)]
    fn take_arriving_stdout(&mut self) -> Option<Box<dyn Arriving>> {
        let stdout = self.child.stdout.take()?;
        Some(Box::new(stdout))
    }

    fn id(&self) -> u32 {
        self.child.id()
    }

    fn wait(&mut self, limit: Duration) -> io::Result<Option<i32>> {
        let ended = wait(&mut self.child, limit, &AtomicBool::new(false))?;
        Ok(ended.map(|status| status.code().unwrap_or(-1)))
    }

    fn kill(&mut self) {
        reap(&mut self.child);
    }

    #[cfg(unix)]
    fn kill_all(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        // It leads its group and was not reaped yet, so the process id is still its own.
        if let Some(group) = Pid::from_raw(self.child.id().cast_signed()) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        self.kill();
    }

    fn stderr_tail(&self) -> String {
        String::from_utf8_lossy(&locked(&self.tail)).into_owned()
    }

    fn has_read_stderr(&self) -> bool {
        self.is_read.load(Ordering::Acquire)
    }
}

impl Drop for SystemRunning {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn endless_output_ends_command_with_an_error() {
        for words in [&["y"][..], &["-c", "exec yes >&2"]] {
            let program = if words.len() == 1 { "yes" } else { "sh" };
            let command = CommandLine::new(program, words.iter().copied());
            let limit = Duration::from_secs(600);
            let Err(CommandError::TooMuch { command }) = SystemExec.run(&command, &[], limit)
            else {
                panic!("it was let go on");
            };
            assert!(command.contains(program), "{command}");
        }
    }

    #[test]
    fn a_program_goes_by_the_name_that_it_was_given() {
        let mut command = CommandLine::new("/bin/sh", ["-c", "echo $0; exit 1"]);
        command.name = Some("/opt/agent".to_owned());
        assert!(
            command.to_string().starts_with("/opt/agent -c"),
            "{command}"
        );
        let finished = SystemExec
            .run(&command, &[], Duration::from_secs(60))
            .unwrap();
        assert_eq!(finished.stdout, b"/opt/agent\n");
    }
}
