//! The resident side of the agent: receives requests, sends replies, and runs every trial in a fresh worker process.
//!
//! The next worker is started ahead of time, after the reply of the last trial was sent, and waits on its pipe; so a
//! dispatch is one write to a pipe, and no process is started while a trial runs. A worker is reaped before its trial
//! is reported, so that the next trial does not overlap with the end of the last. Nothing survives the agent: it
//! kills its workers when its input ends, and the kernel kills them when it is killed (Linux, Windows).
//!
//! On systems with `poll` the server is one thread ([`poll`]); elsewhere each worker has reader threads
//! ([`threads`]). Both use `conclude`, so they agree on the outcome of a trial.
//! Limits: without `poll`, processes of a probe that moved to another process group are not found.

use std::fs::File;
use std::io;
use std::time::{Duration, Instant};

use tare_model::Failure;
use tare_model::outcome::{Bytes, Exit};
use tare_model::wire::{FrameError, PROTOCOL, Reply};

use crate::binding;
use crate::build;
use crate::by_name::by_name;
use crate::probe::{PROBES, Probe};

#[cfg(unix)]
mod children;
mod confined;
#[cfg(unix)]
pub mod poll;
pub mod threads;
mod trial;

/// How many bytes of a worker's standard error are kept.
pub const STDERR_LIMIT: usize = 64 << 10;

/// How many of these bytes become a failure's message.
const MESSAGE_LIMIT: usize = 2 << 10;

/// An environment variable of a worker, used only for its length: it moves what is below it on the stack, and what is
/// allocated after as many bytes, to other addresses than in the previous launch.
pub(crate) const PAD: &str = "TARE_PAD";

/// Returns a value of [`PAD`] with this many bytes.
pub(crate) fn pad_of(bytes: u32) -> String {
    "x".repeat(usize::try_from(bytes.min(MOST_PAD_BYTES)).unwrap_or(0))
}

/// The longest pad: more would change the work and not only the addresses.
const MOST_PAD_BYTES: u32 = 64 << 10;

/// The reason why the agent gave up.
#[derive(Debug)]
pub enum ServeError {
    /// The input is not a valid frame, or the host cannot be written to.
    Frame(FrameError),
    /// A system call of the server failed.
    System(&'static str, io::Error),
}

impl std::fmt::Display for ServeError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Frame(error) => write!(out, "{error}"),
            Self::System(call, error) => write!(out, "{call}: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

impl From<FrameError> for ServeError {
    fn from(error: FrameError) -> Self {
        Self::Frame(error)
    }
}

/// Options of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeOptions {
    /// The processors that the agent and its workers may use; `None` for all that are allowed.
    pub cpus: Option<Vec<usize>>,
    /// Whether a worker is started ahead of its trial.
    pub has_spare: bool,
    /// Whether to move to a separate cgroup, if possible (Linux).
    pub has_group: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            cpus: None,
            has_spare: true,
            has_group: false,
        }
    }
}

impl ServeOptions {
    /// Parses `--cpus 0,2`, `--no-spare` and `--own-group`.
    ///
    /// # Errors
    /// The invalid argument, in words.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--no-spare" => options.has_spare = false,
                "--own-group" => options.has_group = true,
                "--cpus" => {
                    let list = arguments.next().map_or("", String::as_str);
                    let cpus: Result<Vec<usize>, _> = list.split(',').map(str::parse).collect();
                    options.cpus = Some(cpus.map_err(|_| {
                        format!(
                            "`--cpus {}` is not a list such as `0,2`",
                            list.escape_debug()
                        )
                    })?);
                }
                other => return Err(format!("no option `{}`", other.escape_debug())),
            }
        }
        Ok(options)
    }
}

/// Serves the standard streams until `Bye` or their end.
///
/// # Errors
/// A frame cannot be read, or a system call of the server failed.
pub fn standard(options: &ServeOptions, extra: &[&'static Probe]) -> Result<(), ServeError> {
    #[cfg(unix)]
    lead_a_session();
    if let Some(cpus) = &options.cpus {
        binding::restrict(cpus)
            .map_err(|error| ServeError::System("cannot use the processors asked for", error))?;
    }
    let (input, output) =
        streams().map_err(|error| ServeError::System("cannot use the standard streams", error))?;
    let _group = confined::Group::join(options);
    #[cfg(unix)]
    return poll::serve(input, output, options, extra);
    #[cfg(not(unix))]
    return threads::serve(input, output, options, extra);
}

/// Starts a new session, unless this process already leads one.
///
/// If the scheduler groups processes by session (`sched_autogroup_enabled`), workers would share their group's CPU
/// time with the other programs at the user's terminal, while workers in a container share it with none: on a busy
/// machine a loop on the host was then preempted 1.5 times as often, and appeared 0.1 to 0.2 % slower.
#[cfg(unix)]
fn lead_a_session() {
    // SAFETY: setsid takes no arguments. It fails for the leader of a process group, which may already have a
    // session.
    let _ = unsafe { libc::setsid() };
}

/// Returns the standard streams as separate files that children do not inherit.
///
/// # Errors
/// A stream is closed.
#[cfg(unix)]
pub fn streams() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;
    Ok((
        File::from(io::stdin().as_fd().try_clone_to_owned()?),
        File::from(io::stdout().as_fd().try_clone_to_owned()?),
    ))
}

/// Returns the standard streams as separate files that children do not inherit.
///
/// # Errors
/// A stream is closed.
#[cfg(windows)]
pub fn streams() -> io::Result<(File, File)> {
    use std::os::windows::io::{AsHandle, AsRawHandle};
    let streams = (
        File::from(io::stdin().as_handle().try_clone_to_owned()?),
        File::from(io::stdout().as_handle().try_clone_to_owned()?),
    );
    // Children would inherit the originals, and a leftover program would keep them open.
    for handle in [io::stdin().as_raw_handle(), io::stdout().as_raw_handle()] {
        crate::windows::keep_from_children(handle)?;
    }
    Ok(streams)
}

/// Returns the answer to `Hello`.
pub(crate) fn hello(extra: &[&'static Probe]) -> Reply {
    let all = || PROBES.iter().chain(extra);
    Reply::Hello {
        protocol: PROTOCOL,
        build: build::id().to_owned(),
        probes: all()
            .map(|probe| (probe.name.to_owned(), probe.revision))
            .collect(),
        slices: by_name(
            all().filter_map(|probe| Some((probe.name.to_owned(), probe.cut.slice_ns()?))),
        ),
    }
}

/// Returns the time at which a trial is aborted. A limit beyond a day is a day: the clock's range is finite.
pub(crate) fn deadline(limit_ns: u64) -> Instant {
    Instant::now() + Duration::from_nanos(limit_ns).min(Duration::from_secs(86_400))
}

/// The reason why the agent killed a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Killed {
    /// It exceeded its limit.
    Limit,
    /// The host asked for it.
    Cancelled,
    /// Its output is not a frame, or a frame that is too long.
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "a worker's output is read in pieces on Unix only")
    )]
    Garbled,
}

/// The facts about a worker that has ended and was reaped.
#[derive(Debug)]
pub(crate) struct Ended {
    /// The number of the trial.
    pub(crate) trial: u64,
    /// The trial's limit, nanoseconds.
    pub(crate) limit_ns: u64,
    /// The reason, if the agent killed it.
    pub(crate) killed: Option<Killed>,
    /// The exit status or signal.
    pub(crate) exit: Exit,
    /// Its last reply, if any, or why its output is invalid.
    pub(crate) answer: Result<Option<Reply>, String>,
    /// The end of its standard error.
    pub(crate) stderr: Vec<u8>,
}

/// Returns the reply about a trial whose worker has ended. The exit takes precedence over the answer: a report does
/// not count if the process crashed afterwards.
pub(crate) fn conclude(ended: Ended) -> Reply {
    let Ended { trial, .. } = ended;
    let failure = match (ended.killed, ended.exit, ended.answer) {
        (Some(Killed::Limit), ..) => Failure::TimedOut {
            limit_ns: ended.limit_ns,
        },
        (Some(Killed::Garbled), Exit::Signal(_), Err(problem))
        | (_, Exit::Code(0), Err(problem)) => Failure::Garbled(problem),
        (_, Exit::Signal(signal), _) => Failure::Killed { signal },
        (_, Exit::Code(0), Ok(Some(Reply::Done { mut raw, .. }))) => {
            raw.stderr = Bytes(ended.stderr);
            raw.exit = ended.exit;
            return Reply::Done { trial, raw };
        }
        (_, Exit::Code(0), Ok(Some(reply))) => return reply,
        (_, Exit::Code(0), Ok(None)) => {
            Failure::Garbled("the worker ended without a report".into())
        }
        (_, Exit::Code(code), _) => Failure::Exited {
            code,
            message: message(&ended.stderr),
        },
    };
    Reply::Failed { trial, failure }
}

/// Returns the end of standard error as text.
fn message(stderr: &[u8]) -> String {
    let tail = &stderr[stderr.len().saturating_sub(MESSAGE_LIMIT)..];
    String::from_utf8_lossy(tail).trim().to_owned()
}

/// Appends to the kept end of standard error.
pub(crate) fn keep(stderr: &mut Vec<u8>, bytes: &[u8]) {
    stderr.extend_from_slice(bytes);
    let surplus = stderr.len().saturating_sub(STDERR_LIMIT);
    stderr.drain(..surplus);
}

/// A worker's frame: a port and readiness are forwarded immediately, an answer is kept until the worker has ended.
pub(crate) enum WorkerFrame {
    /// Is sent immediately.
    Now(Reply),
    /// Is sent when the worker has been reaped.
    Last(Reply),
}

/// Classifies a worker's frame for `trial`; an error if it is about something else.
pub(crate) fn sort(reply: Reply, trial: u64) -> Result<WorkerFrame, String> {
    match reply {
        Reply::Listening { trial: about, .. }
        | Reply::Printed { trial: about, .. }
        | Reply::Ready { trial: about }
        | Reply::Waiting { trial: about, .. }
            if about == trial =>
        {
            Ok(WorkerFrame::Now(reply))
        }
        Reply::Done { trial: about, .. }
        | Reply::Unavailable { trial: about, .. }
        | Reply::Failed { trial: about, .. }
            if about == trial =>
        {
            Ok(WorkerFrame::Last(reply))
        }
        _ => Err("the worker answered something that it was not asked".to_owned()),
    }
}

/// Returns the failure of a trial for which no worker could be started.
pub(crate) fn not_started(trial: u64, error: &io::Error) -> Reply {
    Reply::Failed {
        trial,
        failure: Failure::Probe(format!("cannot start a worker: {error}")),
    }
}

/// Returns the failure of a trial whose number is already in use.
pub(crate) fn already_running(trial: u64) -> Reply {
    Reply::Failed {
        trial,
        failure: Failure::Probe(format!("trial {trial} is already running")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::RawOutput;

    fn ended(exit: Exit, answer: Result<Option<Reply>, String>) -> Ended {
        Ended {
            trial: 4,
            limit_ns: 9,
            killed: None,
            exit,
            answer,
            stderr: b"why\n".to_vec(),
        }
    }

    fn done() -> Reply {
        Reply::Done {
            trial: 4,
            raw: RawOutput {
                format: "probe/1".into(),
                stdout: Bytes(b"{}".to_vec()),
                stderr: Bytes::default(),
                exit: Exit::Code(0),
            },
        }
    }

    #[test]
    fn a_report_counts_only_if_the_worker_ended_well() {
        let Reply::Done { raw, .. } = conclude(ended(Exit::Code(0), Ok(Some(done())))) else {
            panic!("a good trial was refused");
        };
        assert_eq!(raw.stderr.0, b"why\n");
        let cases = [
            (
                Exit::Code(3),
                Failure::Exited {
                    code: 3,
                    message: "why".into(),
                },
            ),
            (Exit::Signal(11), Failure::Killed { signal: 11 }),
        ];
        for (exit, failure) in cases {
            let reply = conclude(ended(exit, Ok(Some(done()))));
            assert_eq!(reply, Reply::Failed { trial: 4, failure });
        }
    }

    #[test]
    fn exceeded_time_limit_overrides_finished_report() {
        let mut late = ended(Exit::Signal(9), Ok(Some(done())));
        late.killed = Some(Killed::Limit);
        let failure = Failure::TimedOut { limit_ns: 9 };
        assert_eq!(conclude(late), Reply::Failed { trial: 4, failure });
    }

    #[test]
    fn an_answer_about_another_trial_is_refused() {
        assert!(sort(done(), 4).is_ok());
        assert!(sort(done(), 5).is_err());
        assert!(sort(Reply::Bye, 4).is_err());
    }

    #[test]
    fn options_that_are_not_understood_are_refused() {
        let parse = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            ServeOptions::parse(&words)
        };
        assert_eq!(parse("--cpus 0,2").unwrap().cpus, Some(vec![0, 2]));
        assert!(!parse("--no-spare").unwrap().has_spare);
        for bad in ["--cpus", "--cpus a", "--cpus 1-2", "--fast"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stderr_over_limit_keeps_only_its_tail() {
        let mut kept = Vec::new();
        keep(&mut kept, &vec![b'a'; STDERR_LIMIT]);
        keep(&mut kept, b"end");
        assert_eq!(kept.len(), STDERR_LIMIT);
        assert!(kept.ends_with(b"aend"));
    }
}
