//! Runs the prepared program: starts it, handles its streams and reads back its files.
//!
//! Waiting for its end and its resource usage differ between systems and are in `ending`.

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

use super::deadline::Deadline;
use super::ending::{wait, wait_for_end};
use super::left;
use super::port::wait_until_it_listens;
use super::prepared::{Prepared, console, inside};
#[cfg(target_os = "linux")]
use super::usage::UsageRecorder;
#[cfg(unix)]
use super::watch::Watch;

/// Bytes of stdout that are kept at most.
const STDOUT_LIMIT: usize = 16 << 20;
/// Bytes of stderr that are kept at most.
const STDERR_LIMIT: usize = 1 << 20;
/// Bytes of one collected file that are kept at most.
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
    let mut each_run_ns = vec![times_ns(&sum)];
    let is_good =
        |exit| matches!(exit, Exit::Code(code) if code == 0 || call.tolerated.contains(&code));
    while runs < call.runs.map_or(1, NonZeroU32::get) && is_good(sum.exit) {
        let mut next = Prepared::new(meter, &call, params)?;
        if in_slices(&call, meter, &mut next.command)?.is_some() {
            meter.next_turn()?;
        }
        let next = next.run(meter, &call, slice)?;
        each_run_ns.push(times_ns(&next));
        add(&mut sum, next);
        runs += 1;
    }
    if runs > 1 && slice.is_some() {
        sum.each_run_ns = each_run_ns;
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

/// Wall and CPU time of a run.
fn times_ns(report: &CommandReport) -> [f64; 2] {
    let used = |name| report.usage.get(name).copied().unwrap_or_default();
    let cpu_ns = used(counter::USER) + used(counter::SYS);
    [report.wall_ns as f64, cpu_ns]
}

/// Replaces the report by that of the next run in the trial, with time and usage added up.
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
        #[cfg(target_os = "linux")]
        let recorder = call
            .usage_step_ns
            .map(|step_ns| UsageRecorder::start(child.id(), step_ns))
            .transpose()
            .map_err(|error| no_thread(&error))?;
        let sink = meter.output_sink().filter(|_| call.streams_output);
        let to = match call.stdout {
            Stdout::Console if call.streams_output => Some(console()?),
            _ => None,
        };
        let streams = Streams::open(&mut child, call, (sink, to));
        let streams = streams.map_err(|error| no_thread(&error))?;
        let streams = self.listening(call, &mut child, (begin, streams), meter)?;
        let cut = slice.map(|slice| run_in_slices(&mut child, slice, begin, meter));
        let cut = cut.transpose()?;
        let deadline = call.end_after_ns.map(|ns| Deadline::start(child.id(), ns));
        let deadline = deadline.transpose().map_err(|error| no_thread(&error))?;
        let seen_ending = wait_for_end(&child)?;
        // Before `wait` lets another process have its pid.
        let is_late = deadline.is_some_and(Deadline::finish);
        #[cfg(target_os = "linux")]
        let usage_over_time = recorder.map(UsageRecorder::finish);
        #[cfg(not(target_os = "linux"))]
        let usage_over_time = None;
        let (exit, mut usage) = wait(&child)?;
        let (end, running) = seen_ending.unwrap_or_else(|| (Instant::now(), Vec::new()));
        let (wall, stops) = cut.unwrap_or_else(|| (end.duration_since(begin), 0));
        usage.extend(running);
        // Before the streams are read to their ends: leftover processes hold them open.
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
        // There is no `/proc` to watch.
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
            is_ended_early: is_late && matches!(exit, Exit::Signal(_)),
            stops,
            each_run_ns: Vec::new(),
            usage,
            usage_over_time,
            left_running,
            seen,
            pick: call.pick.clone(),
            tolerated: call.tolerated.clone(),
        })
    }

    /// Waits until a server listens, and announces its port; does nothing for other programs.
    fn listening(
        &self,
        call: &CommandCall,
        child: &mut Child,
        (begin, streams): (Instant, Streams),
        meter: &mut Meter,
    ) -> Result<Streams, ProbeError> {
        let (Some(transport), Some(port)) = (call.listens, self.port) else {
            return Ok(streams);
        };
        let place = (transport, self.own, port);
        if let Err(why) = wait_until_it_listens(child, place, (begin, self.patience)) {
            let (_, stderr) = streams.finish();
            let end = stderr.bytes.len().min(2_048);
            let text = String::from_utf8_lossy(&stderr.bytes[..end]);
            return Err(ProbeError::Failed(Failure::Probe(format!(
                "{why}: {}",
                text.trim().escape_debug()
            ))));
        }
        meter.announce(port);
        Ok(streams)
    }
}

/// Returns the slices' target length if the program runs in slices, and prepares its command for being stopped.
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

/// Runs the program in slices; returns its run time and how often it was stopped. On an error it is killed.
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
            // Both fail only if it has just exited.
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
        // The file exists, but its interpreter or dynamic linker does not.
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

/// Explains why no process or thread could be made.
fn of_limit(kind: io::ErrorKind) -> &'static str {
    if kind == io::ErrorKind::WouldBlock {
        "; a limit of processes is reached (`--pids-limit`, `ulimit -u`), which counts the agent's five, too"
    } else {
        ""
    }
}

/// The kept bytes of a stream.
#[derive(Default)]
struct CapturedStream {
    bytes: Vec<u8>,
    is_cut: bool,
}

/// The threads that read a program's streams.
struct Streams {
    stdout: Option<JoinHandle<CapturedStream>>,
    stderr: Option<JoinHandle<CapturedStream>>,
}

impl Streams {
    /// Sends both streams to the sink, and stdout also to a file, if these are given.
    fn open(
        child: &mut Child,
        call: &CommandCall,
        (sink, to): (Option<OutputSink>, Option<File>),
    ) -> io::Result<Self> {
        if let (Some(mut pipe), Some(text)) = (child.stdin.take(), call.stdin.as_deref()) {
            let text = text.to_owned();
            // A program may close the pipe without reading to the end.
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

    fn finish(self) -> (CapturedStream, CapturedStream) {
        let join = |thread: Option<JoinHandle<CapturedStream>>| {
            thread
                .and_then(|thread| thread.join().ok())
                .unwrap_or_default()
        };
        (join(self.stdout), join(self.stderr))
    }
}

/// Where a stream's bytes go.
struct Reading {
    /// How many are kept.
    limit: usize,
    /// The file that they are copied to, if any.
    to: Option<File>,
    sink: Option<OutputSink>,
}

/// Reads a stream to its end and keeps the beginning.
fn keep(
    mut pipe: impl Read + Send + 'static,
    mut reading: Reading,
) -> io::Result<JoinHandle<CapturedStream>> {
    Builder::new().spawn(move || {
        let mut kept = CapturedStream::default();
        let mut buffer = vec![0u8; 64 << 10];
        loop {
            match pipe.read(&mut buffer) {
                Ok(0) => return kept,
                Ok(count) => {
                    let room = reading.limit - kept.bytes.len();
                    if let Some(to) = &mut reading.to {
                        // The reader at the other end may be gone; the program continues.
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

/// Reads the beginning of a collected file; `None` if it does not exist.
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
