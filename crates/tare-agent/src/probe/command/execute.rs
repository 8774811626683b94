//! Runs the program that is prepared: its start, its streams, and what is read back.
//!
//! What it cannot see: how systems differ in waiting for its end and in telling what it used (`ending`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Child, Command};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use tare_model::command::Stdout;
use tare_model::outcome::{Bytes, Exit};
use tare_model::{CommandCall, CommandReport, Failure, Params, Reason, counter, whole_ns};

use crate::args::refused;
use crate::meter::{Meter, OutputSink, ProbeError};

use super::ending::{wait, wait_for_end};
use super::left;
use super::port::wait_until_it_listens;
use super::prepared::{Prepared, console, inside};
#[cfg(unix)]
use super::watch::Watch;

/// How much of standard output is kept, bytes.
const STDOUT_LIMIT: usize = 16 << 20;
/// How much of standard error is kept, bytes.
const STDERR_LIMIT: usize = 1 << 20;
/// How much of one collected file is kept, bytes.
const FILE_LIMIT: u64 = 16 << 20;

pub(super) fn run(meter: &mut Meter, params: &Params) -> Result<(), ProbeError> {
    let call = CommandCall::from_args(params).map_err(refused)?;
    let mut prepared = Prepared::new(meter, &call, params)?;
    let slice = in_slices(&call, meter, &mut prepared.command)?;
    meter.ready()?;
    if let Some(slice) = slice {
        meter.first_turn(whole_ns(slice))?;
    }
    let mut sum = prepared.run(meter, &call, slice)?;
    let mut runs = 1;
    let is_good =
        |exit| matches!(exit, Exit::Code(code) if code == 0 || call.tolerated.contains(&code));
    while runs < call.runs.map_or(1, NonZeroU32::get) && slice.is_none() && is_good(sum.exit) {
        let next = Prepared::new(meter, &call, params)?.run(meter, &call, None)?;
        add(&mut sum, next);
        runs += 1;
    }
    sum.wall_ns /= u64::from(runs);
    for (name, used) in &mut sum.usage {
        if name != counter::MAX_RSS {
            *used /= f64::from(runs);
        }
    }
    meter.command(sum);
    Ok(())
}

/// The last run of several in a trial, with what all of them took.
fn add(sum: &mut CommandReport, mut next: CommandReport) {
    next.wall_ns += sum.wall_ns;
    next.left_running = next.left_running.max(sum.left_running);
    for (name, used) in &mut next.usage {
        let before = sum.usage.get(name).copied().unwrap_or_default();
        *used = if name == counter::MAX_RSS {
            used.max(before)
        } else {
            *used + before
        };
    }
    *sum = next;
}

impl Prepared {
    fn run(
        mut self,
        meter: &mut Meter,
        call: &CommandCall,
        slice: Option<Duration>,
    ) -> Result<CommandReport, ProbeError> {
        let begin = Instant::now();
        let mut child = self
            .command
            .spawn()
            .map_err(|error| not_started(&self.program, &error))?;
        #[cfg(unix)]
        let watch = call.observe.then(|| Watch::start(child.id())).transpose();
        #[cfg(unix)]
        let watch = watch.map_err(|error| no_thread(&error))?;
        let sink = meter.output_sink().filter(|_| call.streams_output);
        let to = match call.stdout {
            Stdout::Console if call.streams_output => Some(console()?),
            _ => None,
        };
        let streams = Streams::of(&mut child, call, (sink, to));
        let streams = streams.map_err(|error| no_thread(&error))?;
        if let (Some(transport), Some(port)) = (call.listens, self.port) {
            let place = (transport, self.own, port);
            if let Err(why) = wait_until_it_listens(&mut child, place, (begin, self.patience)) {
                let (_, stderr) = streams.finish();
                let end = stderr.bytes.len().min(2_048);
                let text = String::from_utf8_lossy(&stderr.bytes[..end]);
                return Err(ProbeError::Failed(Failure::Probe(format!(
                    "{why}: {}",
                    text.trim().escape_debug()
                ))));
            }
            meter.announce(port);
        }
        let cut = slice.map(|slice| run_in_slices(&mut child, slice, begin, meter));
        let cut = cut.transpose()?;
        let seen_ending = wait_for_end(&child)?;
        let (exit, mut usage) = wait(&child)?;
        let (end, running) = seen_ending.unwrap_or_else(|| (Instant::now(), Vec::new()));
        let (wall, stops) = cut.unwrap_or_else(|| (end.duration_since(begin), 0));
        usage.extend(running);
        // Before the streams are read to their ends: what is left holds them open.
        let left_running = left::end_all();
        let (stdout, stderr) = streams.finish();
        let mut files = BTreeMap::new();
        for name in &call.collect {
            if let Some(bytes) = read_file(&inside(self.folder.path(), name)?)? {
                files.insert(name.clone(), Bytes(bytes));
            }
        }
        #[cfg(unix)]
        let seen = watch.map(Watch::finish);
        // There is nothing to look at.
        #[cfg(not(unix))]
        let seen = None;
        Ok(CommandReport {
            argv: self.argv,
            program: self.program.to_string_lossy().into_owned(),
            exit,
            is_cut: stdout.is_cut || stderr.is_cut,
            stdout: Bytes(stdout.bytes),
            stderr: Bytes(stderr.bytes),
            files,
            wall_ns: whole_ns(wall),
            stops,
            usage,
            left_running,
            seen,
            pick: call.pick.clone(),
            tolerated: call.tolerated.clone(),
        })
    }
}

/// What a slice of the program aims at, if it runs in slices; makes its command one that can be stopped.
fn in_slices(
    call: &CommandCall,
    meter: &Meter,
    command: &mut Command,
) -> Result<Option<Duration>, ProbeError> {
    let Some(wanted) = call.in_slices else {
        if meter.slice_ns().is_none() {
            return Ok(None);
        }
        return Err(ProbeError::Unavailable(Reason::Unsupported(
            "`command` cannot be interleaved: a program that runs to its end".to_owned(),
        )));
    };
    #[cfg(target_os = "linux")]
    super::in_slices::prepare(command)?;
    #[cfg(not(target_os = "linux"))]
    let _ = command;
    Ok(Some(Duration::from_nanos(wanted.ns)))
}

/// Runs it in slices; how long it ran, and how often it was stopped. Where that goes wrong it is ended.
#[cfg(target_os = "linux")]
fn run_in_slices(
    child: &mut Child,
    slice: Duration,
    begin: Instant,
    meter: &mut Meter,
) -> Result<(Duration, u64), ProbeError> {
    match super::in_slices::run(child, slice, begin, meter) {
        Ok(ran) => Ok((ran.wall, ran.stops)),
        Err(error) => {
            // Both fail only if it has just ended by itself.
            let _ = child.kill();
            let _ = child.wait();
            Err(error)
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn run_in_slices(
    _child: &mut Child,
    _slice: Duration,
    _begin: Instant,
    _meter: &mut Meter,
) -> Result<(Duration, u64), ProbeError> {
    Err(crate::probe::linux_only("stopping a program on its way"))
}

fn not_started(program: &Path, error: &io::Error) -> ProbeError {
    let program = program.display().to_string();
    let program = program.escape_default();
    match error.kind() {
        // The file is there: its interpreter or dynamic linker is not.
        io::ErrorKind::NotFound => ProbeError::Unavailable(Reason::MissingTool(format!(
            "the interpreter or dynamic linker of {program}"
        ))),
        io::ErrorKind::PermissionDenied => ProbeError::Unavailable(Reason::NeedsPrivilege(
            format!("the permission to execute `{program}`"),
        )),
        kind => ProbeError::Failed(Failure::Probe(format!(
            "execute `{program}`: {error}{}",
            of_limit(kind)
        ))),
    }
}

fn no_thread(error: &io::Error) -> ProbeError {
    ProbeError::Failed(Failure::Probe(format!(
        "start a thread next to the program: {error}{}",
        of_limit(error.kind())
    )))
}

/// What is behind a process or thread that cannot be had for now.
fn of_limit(kind: io::ErrorKind) -> &'static str {
    if kind == io::ErrorKind::WouldBlock {
        "; a limit of processes is reached (`--pids-limit`, `ulimit -u`), which counts the agent's five, too"
    } else {
        ""
    }
}

/// What was read from a stream.
#[derive(Default)]
struct Kept {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// The threads at the other ends of a program's streams.
struct Streams {
    stdout: Option<JoinHandle<Kept>>,
    stderr: Option<JoinHandle<Kept>>,
}

impl Streams {
    /// Both streams are sent to the sink, and standard output is written on to a file, if there are these.
    fn of(
        child: &mut Child,
        call: &CommandCall,
        (sink, to): (Option<OutputSink>, Option<File>),
    ) -> io::Result<Self> {
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), call.stdin.as_deref()) {
            let text = text.to_owned();
            // A program that does not read to the end closes the pipe, and that is its affair.
            Builder::new().spawn(move || pipe.write_all(text.as_bytes()))?;
        }
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let kept = match call.stdout {
            Stdout::Kept => STDOUT_LIMIT,
            _ => 0,
        };
        let on = |limit, to| Reading {
            limit,
            to,
            sink: sink.clone(),
        };
        Ok(Self {
            stdout: stdout.map(|pipe| keep(pipe, on(kept, to))).transpose()?,
            stderr: stderr
                .map(|pipe| keep(pipe, on(STDERR_LIMIT, None)))
                .transpose()?,
        })
    }

    fn finish(self) -> (Kept, Kept) {
        let join = |thread: Option<JoinHandle<Kept>>| {
            thread
                .and_then(|thread| thread.join().ok())
                .unwrap_or_default()
        };
        (join(self.stdout), join(self.stderr))
    }
}

/// What is done with a stream's bytes.
struct Reading {
    /// So many are kept.
    limit: usize,
    /// Where they go on to.
    to: Option<File>,
    sink: Option<OutputSink>,
}

/// Reads a stream to its end and keeps the beginning.
fn keep(
    mut pipe: impl Read + Send + 'static,
    mut reading: Reading,
) -> io::Result<JoinHandle<Kept>> {
    Builder::new().spawn(move || {
        let mut kept = Kept::default();
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return kept,
                Ok(count) => {
                    let room = reading.limit - kept.bytes.len();
                    if let Some(to) = &mut reading.to {
                        // The reader at the other end may be gone; the program goes on.
                        let _ = to.write_all(&buffer[..count]);
                    }
                    if let Some(Ok(mut send)) = reading.sink.as_ref().map(|it| it.lock()) {
                        send(&buffer[..count]);
                    }
                    kept.bytes.extend_from_slice(&buffer[..count.min(room)]);
                    kept.is_cut |= count > room && reading.limit > 0;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    kept.is_cut = true;
                    return kept;
                }
            }
        }
    })
}

/// The beginning of a collected file; `None` where there is none.
fn read_file(path: &Path) -> Result<Option<Vec<u8>>, ProbeError> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(ProbeError::system("open a collected file", &error)),
    };
    let mut bytes = Vec::new();
    file.take(FILE_LIMIT)
        .read_to_end(&mut bytes)
        .map_err(|error| ProbeError::system("read a collected file", &error))?;
    Ok(Some(bytes))
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
