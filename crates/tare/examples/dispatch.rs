//! Measures what Tare promises about its agent: size, start, resident memory, and the dispatch of a trial.
//!
//! `cargo run --release -p tare --example dispatch -- PATH-OF-AGENT [PAUSE-IN-MS]`. A dispatch is the time
//! from sending `Run(null)` to having `Done`, through the same channel that a run uses, with a pause
//! before each in which the next worker starts, as there is between the trials of a run.
//! What it cannot see: the agents of other environments; there the stream between is another.

use std::path::Path;
use std::time::{Duration, Instant};

use tare::cx::observer::Silent;
use tare::cx::{Agents, Cancel, Context, SystemClock, SystemExec};
use tare::env::host::Host;
use tare::env::{Driver, StartMode};
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Params, ProbeCall, RunId};

/// How many dispatches are measured.
const DISPATCHES: u64 = 500;
/// How many starts are measured.
const STARTS: usize = 50;

#[allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that measures and prints"
)]
fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(path) = arguments.next() else {
        anyhow::bail!("name the agent's file");
    };
    let pause = match arguments.next() {
        Some(text) => Duration::from_millis(text.parse()?),
        None => Duration::from_millis(5),
    };
    let agents = Agents::only(Path::new(&path))?;
    let folder = std::env::temp_dir().join(format!("tare-dispatch-{}", std::process::id()));
    let run = RunId::new("dispatch")?;
    let cancel = Cancel::new();
    let cx = Context {
        exec: &SystemExec,
        clock: &SystemClock::default(),
        observer: &Silent,
        cancel: &cancel,
        agent: agents.host(),
        agents: &agents,
        scratch: &folder,
        run: &run,
        store: None,
    };
    println!("size          {} B", std::fs::metadata(&path)?.len());
    let mut host = Host.configure(ArmId::new("host")?, &Params::new())?;
    host.prepare(&cx)?;
    let limit = Duration::from_secs(10);

    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let begin = Instant::now();
        let mut instance = host.start(&cx, StartMode::Once)?;
        let channel = instance.channel();
        channel.send(&Request::Hello { protocol: PROTOCOL })?;
        channel.receive(limit)?;
        starts.push(begin.elapsed());
        instance.stop(&cx)?;
    }
    show("start → Hello", starts);

    let mut instance = host.start(&cx, StartMode::Resident)?;
    let workdir = instance.workdir();
    let channel = instance.channel();
    channel.send(&Request::Hello { protocol: PROTOCOL })?;
    channel.receive(limit)?;
    channel.send(&Request::Facts {
        paths: Vec::new(),
        tools: Vec::new(),
    })?;
    channel.receive(limit)?;
    let mut dispatches = Vec::new();
    for trial in 0..DISPATCHES {
        std::thread::sleep(pause);
        let request = Request::Run {
            trial,
            call: ProbeCall {
                name: "null".to_owned(),
                args: Params::new().with("canary", false),
            },
            target_ns: 0,
            limit_ns: 1_000_000_000,
            workdir: workdir.clone(),
            hold: false,
            turns: None,
            cpu: None,
        };
        let begin = Instant::now();
        channel.send(&request)?;
        let reply = channel.receive(limit)?;
        dispatches.push(begin.elapsed());
        anyhow::ensure!(matches!(reply, Reply::Done { .. }), "not done: {reply:?}");
    }
    show("dispatch", dispatches);
    resident(run.as_str());
    instance.stop(&cx)?;
    host.remove(&cx)?;
    std::fs::remove_dir_all(&folder).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    Ok(())
}

#[allow(
    clippy::print_stdout,
    reason = "a program of its own that measures and prints"
)]
fn show(what: &str, mut times: Vec<Duration>) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{what:<13} min {:?}  p50 {:?}  p90 {:?}  p99 {:?}",
        times[0],
        at(0.5),
        at(0.9),
        at(0.99)
    );
}

/// Resident memory of the agent and of the worker that waits.
#[allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program of its own that measures and prints"
)]
fn resident(run: &str) {
    let label = format!("TARE_RUN={run}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return;
    };
    for entry in entries.flatten() {
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        let is_ours = environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == label.as_bytes());
        if !is_ours {
            continue;
        }
        let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
        let value = |key: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .map_or("?", str::trim)
        };
        println!(
            "resident      now {}  most {}",
            value("VmRSS:"),
            value("VmHWM:")
        );
    }
}
