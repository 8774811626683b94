//! A worker: one process that serves one request with one probe and sends one report.
//!
//! A worker is started ahead of its trial and waits on its standard input, with the clock already measured; so it has
//! a fresh address space, and starting it costs the trial nothing. Replies go to the original standard output;
//! afterwards standard output is standard error, so that output of a probe or its children cannot corrupt a frame (on
//! Windows a probe must not print).
//!
//! It begins with a pad, whose length the host draws for each launch: it moves stack and heap.
//!
//! Around the probe are, from the outside in: the canary (a fixed chain of integer operations, which shows whether
//! the core was as fast after as before) and the counters. So `/proc` is never read inside a timed region, and the
//! canary is not inside the counters. A worker that must start together with others waits for them inside all of
//! these, just before the probe; its second canary runs while the slower ones may still be running, which costs them
//! a few milliseconds of a shared processor at the end.
//! Limits: does not see memory or CPU time of processes that a probe started and did not reap.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tare_model::outcome::Bytes;
use tare_model::wire::{
    FrameError, Json as _, Reply, Request, STREAMED_BYTES, read_frame, write_frame,
};
use tare_model::{Failure, Params, ProbeReport, RawOutput, Reason, Turns, whole_ns};

use crate::binding::Binding;
use crate::counters::Counters;
use crate::meter::{Meter, OutputSink, ProbeError, Timer};
use crate::probe::{self, Cut, Probe};
use crate::serve::PAD;
use crate::turns::TurnTaker;

/// Steps of the canary: nine cycles each by the latencies of shift, exclusive or and multiplication, so about 5 ms on
/// a core of 2.5 GHz. The same number everywhere, so that canaries can be compared.
pub const CANARY_STEPS: u64 = 1_400_000;

/// Steps of the canary of a call with `canary = false`: about a microsecond, for trials that measure their own
/// duration.
pub const SHORT_CANARY_STEPS: u64 = 280;

/// Serves one request; `arguments` holds the pid of the agent that started the worker, and on Windows the name of the
/// worker's job, elsewhere the processor on which it waits, if any.
pub fn main(arguments: &[String], extra: &[&'static Probe]) -> ExitCode {
    if !is_tied_to_its_agent(arguments) {
        return ExitCode::FAILURE;
    }
    let Ok((mut input, mut output)) = streams() else {
        return ExitCode::FAILURE;
    };
    #[cfg(not(windows))]
    probe::command::left::this_is_a_worker();
    #[cfg(windows)]
    if let Some(job) = arguments.get(1) {
        probe::command::left::this_is_a_worker(job);
    }
    let _pad = take_pad();
    prefer_as_victim();
    let timer = Timer::measure();
    let counters = Counters::find();
    let _entry = rehearse(timer, &counters);
    #[cfg(not(windows))]
    let meeting = meet(arguments);
    let request = read_frame::<Request>(&mut input);
    #[cfg(not(windows))]
    drop(meeting);
    match request {
        Ok(Request::Run {
            trial,
            call,
            target_ns,
            workdir,
            hold,
            turns,
            cpu,
            ..
        }) => {
            // If this is refused, the report says that the worker was not bound.
            let bound = cpu.and_then(|cpu| Binding::bind(cpu).ok());
            let begin = Instant::now();
            let Some(probe) = find(extra, &call.name).or_else(|| probe::find(&call.name)) else {
                let reason = Reason::Unsupported(format!(
                    "this agent has no probe `{}`",
                    call.name.escape_debug()
                ));
                return send(&mut output, &Reply::Unavailable { trial, reason });
            };
            let mut meter = Meter::with_timer(timer, target_ns, Path::new(&workdir));
            if let Ok(mut output) = output.try_clone() {
                meter.set_announcer(Box::new(move |port| {
                    // The agent notices if the host is gone, and then ends this process.
                    let _ = write_frame(&mut output, &Reply::Listening { trial, port });
                }));
            }
            if let Ok(output) = output.try_clone() {
                meter.set_output_sink(output_sink(output, trial));
            }
            if let Some(turns) = turns {
                let taking = take_turns(&mut meter, probe, turns, bound, trial, [&input, &output]);
                if let Err(error) = taking {
                    return send(&mut output, &error.into_reply(trial));
                }
            } else if hold {
                match output.try_clone() {
                    Ok(output) => meter.set_gate(Box::new(move || wait(input, output, trial))),
                    Err(error) => {
                        let failure =
                            Failure::Probe(format!("cannot say that all is ready: {error}"));
                        return send(&mut output, &Reply::Failed { trial, failure });
                    }
                }
            }
            let reply = match run(probe, meter, &call.args, &counters, begin) {
                Ok(report) => completed(trial, &report),
                Err(error) => error.into_reply(trial),
            };
            send(&mut output, &reply)
        }
        // The agent ended without a trial for this worker.
        Err(FrameError::Closed) => ExitCode::SUCCESS,
        Ok(_) | Err(_) => ExitCode::FAILURE,
    }
}

/// Returns a sink that sends the host the first [`STREAMED_BYTES`] of a program's output.
fn output_sink(mut output: File, trial: u64) -> OutputSink {
    let mut room = STREAMED_BYTES;
    Arc::new(Mutex::new(move |bytes: &[u8]| {
        let sent = &bytes[..bytes.len().min(room)];
        room -= sent.len();
        if !sent.is_empty() {
            let bytes = Bytes(sent.to_vec());
            let _ = write_frame(&mut output, &Reply::Printed { trial, bytes });
        }
    }))
}

/// Makes the meter interleave its slices with the workers of other arms.
fn take_turns(
    meter: &mut Meter,
    probe: &Probe,
    turns: Turns,
    bound: Option<Binding>,
    trial: u64,
    [input, output]: [&File; 2],
) -> Result<(), ProbeError> {
    let slice_ns = match probe.cut {
        Cut::Slices { ns } => ns,
        Cut::Whole(why) => {
            return Err(ProbeError::Unavailable(Reason::Unsupported(format!(
                "`{}` cannot be interleaved: {why}",
                probe.name
            ))));
        }
    };
    let copy = |file: &File| {
        let copied = file.try_clone();
        copied.map_err(|error| ProbeError::system("copy a stream", &error))
    };
    let taker = TurnTaker::new(turns, trial, copy(input)?, copy(output)?)?;
    meter.set_turns(taker, slice_ns, bound);
    Ok(())
}

/// Reports that everything is prepared and waits for the signal to continue.
fn wait(mut input: File, mut output: File, trial: u64) -> Result<(), ProbeError> {
    let lost = |what: &str| ProbeError::Failed(Failure::Lost(what.to_owned()));
    write_frame(&mut output, &Reply::Ready { trial })
        .map_err(|_| lost("its agent does not listen any more"))?;
    match read_frame::<Request>(&mut input) {
        Ok(Request::Go { trial: about }) if about == trial => Ok(()),
        _ => Err(lost("its agent ended before the worker was to go on")),
    }
}

fn find(probes: &[&'static Probe], name: &str) -> Option<&'static Probe> {
    probes.iter().copied().find(|probe| probe.name == name)
}

/// Runs one trial: canary, counters, probe, counters, canary.
fn run(
    probe: &Probe,
    mut meter: Meter,
    args: &Params,
    counters: &Counters,
    begin: Instant,
) -> Result<ProbeReport, ProbeError> {
    let is_uncounted = args.bool("canary") == Some(false);
    let steps = if is_uncounted || meter.slice_ns().is_some() {
        SHORT_CANARY_STEPS
    } else {
        CANARY_STEPS
    };
    let canary_before_ns = canary(steps);
    let is_sliced = meter.slice_ns().is_some() && probe.name != tare_model::command::COMMAND_PROBE;
    let before = (!is_uncounted).then(|| counters.before());
    if !probe::has_preparations(probe.name) {
        meter.ready()?;
    }
    let result = (probe.run)(&mut meter, args);
    meter.finish_turns(result.is_ok());
    result?;
    let span = meter.span();
    let after = (!is_uncounted).then(|| counters.after());
    let canary_after_ns = canary(steps);
    let unavailable = meter.take_unavailable();
    let command = meter.take_command();
    let (sliced, timed_ns) = (meter.sliced(), meter.timed_ns());
    let (series, checksum, timer) = meter.finish();
    Ok(ProbeReport {
        probe: probe.name.to_owned(),
        revision: probe.revision,
        series,
        unavailable,
        checksum: checksum.map(|checksum| format!("{checksum:016x}")),
        canary_ns: [canary_before_ns, canary_after_ns],
        elapsed_ns: whole_ns(begin.elapsed()),
        counters: before
            .zip(after)
            .map(|(before, after)| Counters::difference(&before, &after, is_sliced))
            .unwrap_or_default(),
        timer,
        command,
        span,
        sliced,
        timed_ns,
    })
}

/// Returns the nanoseconds of `steps` dependent integer operations.
fn canary(steps: u64) -> f64 {
    let start = Instant::now();
    black_box(probe::integer::chain(
        black_box(0x9e37_79b9_7f4a_7c15),
        black_box(steps),
    ));
    start.elapsed().as_nanos() as f64
}

/// Returns the report as a reply; the agent adds standard error and the exit.
fn completed(trial: u64, report: &ProbeReport) -> Reply {
    let mut json = Vec::new();
    match report.to_json(&mut json) {
        Ok(()) => Reply::Done {
            trial,
            raw: RawOutput::of_probe(json),
        },
        Err(error) => Reply::Failed {
            trial,
            failure: Failure::Garbled(format!("the report cannot be written: {error}")),
        },
    }
}

/// Binds to the processor from which the host asks, as the agent does, if possible.
#[cfg(not(windows))]
fn meet(arguments: &[String]) -> Option<Binding> {
    let cpu = arguments.get(1)?.parse().ok()?;
    Binding::bind(cpu).ok()
}

/// Runs an empty trial, so that the code and the heap for a report are in memory before the request arrives, and not
/// faulted in while the host waits. The returned value keeps the heap there.
fn rehearse(timer: Timer, counters: &Counters) -> Params {
    let meter = Meter::with_timer(timer, 0, Path::new("/"));
    let args = Params::new().with("canary", false);
    if let Ok(report) = run(&probe::null::PROBE, meter, &args, counters, Instant::now()) {
        // Neither can fail, and the results are not needed.
        let mut frame = Vec::new();
        let _ = write_frame(&mut frame, &completed(0, &report));
        let _ = black_box(read_frame::<Reply>(&mut frame.as_slice()));
    }
    args
}

/// Writes the last frame. If that succeeded, the process exits immediately: destructors would only delay the moment
/// at which the agent can reap it.
fn send(output: &mut File, reply: &Reply) -> ExitCode {
    if write_frame(output, reply).is_err() {
        return ExitCode::FAILURE;
    }
    #[cfg(unix)]
    // SAFETY: `_exit` has no precondition; nothing is buffered, and no other thread is waited for.
    unsafe {
        libc::_exit(0)
    }
    #[cfg(not(unix))]
    ExitCode::SUCCESS
}

/// Asks the kernel for a signal when the agent ends, which ends this process with everything that it started. Returns
/// whether the agent is still there.
#[cfg(target_os = "linux")]
fn is_tied_to_its_agent(arguments: &[String]) -> bool {
    let signal = probe::command::left::end_all_at_a_signal();
    // SAFETY: PR_SET_PDEATHSIG takes one number and touches no memory of ours.
    let tied = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) } == 0;
    // SAFETY: `getppid` has no precondition and cannot fail.
    let parent = unsafe { libc::getppid() };
    // The agent may have ended before `prctl`; then the parent is already another process.
    tied && arguments.first().map(String::as_str) == Some(parent.to_string().as_str())
}

#[cfg(not(target_os = "linux"))]
fn is_tied_to_its_agent(_arguments: &[String]) -> bool {
    true
}

/// Removes the pad variable, so that no probe or program sees it, and allocates as many bytes of the heap. What was
/// below it on the stack stays where it is.
fn take_pad() -> Vec<u8> {
    let bytes = std::env::var_os(PAD).map_or(0, |pad| pad.len());
    // SAFETY: this process still has one thread, so that nothing else reads the variables.
    unsafe { std::env::remove_var(PAD) };
    black_box(vec![0; bytes])
}

/// Makes the OOM killer prefer this process and its program to the agent, which then reports it.
fn prefer_as_victim() {
    const FILE: &str = "/proc/self/oom_score_adj";
    const SCORE: i32 = 500;
    let now = std::fs::read_to_string(FILE);
    let now: Option<i32> = now.ok().and_then(|text| text.trim().parse().ok());
    if now.is_some_and(|now| now < SCORE) {
        // Raising it needs no privilege; if the file cannot be written to, nothing changes.
        let _ = std::fs::write(FILE, SCORE.to_string());
    }
}

/// Returns the streams for the request and for the replies; standard output becomes standard error.
#[cfg(unix)]
fn streams() -> std::io::Result<(File, File)> {
    use std::os::fd::AsFd;
    let input = File::from(std::io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(std::io::stdout().as_fd().try_clone_to_owned()?);
    // SAFETY: both numbers are this process's standard streams, open since its start, and nothing is buffered for
    // them yet.
    if unsafe { libc::dup2(2, 1) } < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok((input, output))
}

/// Returns the streams for the request and for the replies.
#[cfg(windows)]
fn streams() -> std::io::Result<(File, File)> {
    crate::serve::streams()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn done_reply_holds_report_as_probe_1_json() {
        let meter = Meter::new(0, Path::new("/"));
        let args = Params::new().with("canary", false);
        let counters = Counters::find();
        let report = run(&probe::null::PROBE, meter, &args, &counters, Instant::now()).unwrap();
        assert!(report.canary_ns.iter().all(|canary_ns| *canary_ns > 0.0));
        assert!(report.counters.is_empty());
        let Reply::Done { trial: 3, raw } = completed(3, &report) else {
            panic!("no reply of the right kind");
        };
        assert_eq!(raw.format, "probe/1");
        let read: ProbeReport = serde_json::from_slice(&raw.stdout.0).unwrap();
        assert_eq!(read, report);
        assert_eq!(read.series[0].metric, "dispatch.null.time");
    }

    #[test]
    fn the_long_canary_brings_counters_with_it() {
        let meter = Meter::new(0, Path::new("/"));
        let counters = Counters::find();
        let report = run(
            &probe::null::PROBE,
            meter,
            &Params::new(),
            &counters,
            Instant::now(),
        )
        .unwrap();
        assert!(report.canary_ns[0] > 100_000.0);
        assert_eq!(report.counters.contains_key("minflt"), cfg!(unix));
    }
}
