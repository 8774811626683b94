//! Measures the way from the host to a worker and back: the dispatch of a trial, the preparation of a block, and what
//! this machine's wake-ups alone cost.
//!
//! `cargo run --release -p tare --example dispatch -- PATH-OF-AGENT [PAUSE-IN-MS]`. Everything goes through the
//! channel that a run uses, with a pause before each time in which the next worker starts, as there is between the
//! trials of a run. `begun` is the time from sending `Run` until the worker's word that it has begun is there, `done`
//! until it has ended, was reaped and has been told of; `prepared` until the workers of a block of two arms that
//! take turns over a page are ready. `near` and `far` are four hand-overs of one byte between two threads, as many as
//! a dispatch has (host, agent, worker, agent, host), on one processor and on two: no program of four steps that
//! sleep can be faster. They are measured in turn with the dispatches.
//! What it cannot see: the agents of other environments; there the stream between is another.

use std::io::{PipeReader, PipeWriter, Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tare::cx::observer::Silent;
use tare::cx::processor::{self, Stay};
use tare::cx::{Agents, Cancel, Context, SystemClock, SystemExec, turn_page};
use tare::env::host::Host;
use tare::env::{Driver, Instance, StartMode};
use tare_model::wire::{PROTOCOL, Reply, Request};
use tare_model::{ArmId, Params, ProbeCall, RunId, TurnPage, Turns, whole_ns, whole_place};

/// How many of each are measured.
const TIMES: u64 = 300;
/// How many blocks are prepared.
const BLOCKS: u64 = 60;
/// The longest that an answer may take.
const LIMIT: Duration = Duration::from_secs(10);

#[allow(
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
        None => Duration::from_millis(20),
    };
    let agents = Agents::only(Path::new(&path))?;
    let folder = std::env::temp_dir().join(format!("tare-dispatch-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
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
    let measured = measure(&cx, pause);
    std::fs::remove_dir_all(&folder)?;
    measured
}

fn measure(cx: &Context<'_>, pause: Duration) -> anyhow::Result<()> {
    let mut host = Host.configure(ArmId::new("host")?, &Params::new())?;
    host.prepare(cx)?;
    turn_page::create(cx.scratch)?;
    let mut instances = Vec::new();
    for _ in 0..2 {
        let mut instance = host.start(cx, StartMode::Resident)?;
        let channel = instance.channel();
        channel.send(&Request::Hello { protocol: PROTOCOL })?;
        channel.receive(LIMIT)?;
        instances.push(instance);
    }
    let workdir = instances[0].workdir();
    let (near, far) = (Echo::start(true), Echo::start(false));
    let (mut begun, mut done, mut near_took, mut far_took) = (vec![], vec![], vec![], vec![]);
    for trial in 1..=TIMES {
        std::thread::sleep(pause);
        let args = Params::new().with("canary", false).with("announce", true);
        let request = run_request(trial, "null", args, &workdir, None);
        let channel = instances[0].channel();
        let begin = Instant::now();
        channel.send(&request)?;
        let first = channel.receive(LIMIT)?;
        begun.push(begin.elapsed());
        let last = channel.receive(LIMIT)?;
        done.push(begin.elapsed());
        anyhow::ensure!(
            matches!(
                (&first, &last),
                (Reply::Listening { .. }, Reply::Done { .. })
            ),
            "the trial ended with {first:?}, {last:?}"
        );
        near_took.extend(near.once(pause));
        far_took.extend(far.once(pause));
    }
    let mut prepared = Vec::new();
    for block in 1..=BLOCKS {
        std::thread::sleep(pause);
        prepared.push(prepare(cx, &mut instances, block)?);
    }
    for (what, times) in [
        ("begun", begun),
        ("done", done),
        ("near", near_took),
        ("far", far_took),
        ("prepared", prepared),
    ] {
        show(what, times);
    }
    for instance in instances {
        instance.stop(cx)?;
    }
    Ok(host.remove(cx)?)
}

/// Prepares a block of two arms, and ends it; how long it took until both workers were ready.
fn prepare(
    cx: &Context<'_>,
    instances: &mut [Box<dyn Instance>],
    block: u64,
) -> anyhow::Result<Duration> {
    let begin = Instant::now();
    turn_page::clear(cx.scratch, block)?;
    for (place, instance) in (0..).zip(instances.iter_mut()) {
        let path = turn_page::path(cx.scratch).display().to_string();
        let turns = Turns {
            place,
            rows: vec![vec![0, 1], vec![1, 0]],
            stages: None,
            page: Some(TurnPage { path, key: block }),
            check: false,
            patience_ns: whole_ns(LIMIT),
        };
        let workdir = instance.workdir();
        let number = TIMES + block;
        let request = run_request(number, "getppid", Params::new(), &workdir, Some(turns));
        instance.channel().send(&request)?;
    }
    for instance in instances.iter_mut() {
        let reply = instance.channel().receive(LIMIT)?;
        anyhow::ensure!(matches!(reply, Reply::Ready { .. }), "not ready: {reply:?}");
    }
    let took = begin.elapsed();
    for instance in instances.iter_mut() {
        let trial = TIMES + block;
        instance.channel().send(&Request::Cancel { trial })?;
        instance.channel().receive(LIMIT)?;
    }
    Ok(took)
}

fn run_request(
    trial: u64,
    probe: &str,
    args: Params,
    workdir: &str,
    turns: Option<Turns>,
) -> Request {
    Request::Run {
        trial,
        call: ProbeCall {
            name: probe.to_owned(),
            args,
        },
        target_ns: 0,
        limit_ns: whole_ns(LIMIT),
        workdir: workdir.to_owned(),
        hold: false,
        // All workers of a block share a processor.
        cpu: turns.as_ref().and_then(|_| processor::current()),
        turns,
    }
}

/// Two threads that hand one byte back and forth over pipes.
struct Echo {
    ask: mpsc::Sender<Duration>,
    took: mpsc::Receiver<Option<Duration>>,
}

impl Echo {
    /// On one processor, or on two.
    fn start(is_near: bool) -> Self {
        let (ask, asked) = mpsc::channel::<Duration>();
        let (tell, took) = mpsc::channel();
        std::thread::spawn(move || {
            let mut ends = partner(is_near);
            while let Ok(pause) = asked.recv() {
                std::thread::sleep(pause);
                let took = ends.as_mut().and_then(|ends| ends.twice().ok());
                if tell.send(took).is_err() {
                    return;
                }
            }
        });
        Self { ask, took }
    }

    /// Four hand-overs, after a pause; `None` where there are no two processors.
    fn once(&self, pause: Duration) -> Option<Duration> {
        self.ask.send(pause).ok()?;
        self.took.recv().ok()?
    }
}

/// The asking thread's ends of the pipes, and where it stays.
struct Ends {
    writer: PipeWriter,
    reader: PipeReader,
    _stay: Option<Stay>,
}

impl Ends {
    fn twice(&mut self) -> std::io::Result<Duration> {
        let begin = Instant::now();
        for _ in 0..2 {
            self.writer.write_all(&[1])?;
            self.reader.read_exact(&mut [0])?;
        }
        Ok(begin.elapsed())
    }
}

/// Starts the other thread, which stays where this one does, or elsewhere.
fn partner(is_near: bool) -> Option<Ends> {
    // The other one is to be started where this one may go, and moved by nobody afterwards.
    for _ in 0..200 {
        let stay = if is_near { Stay::here() } else { None };
        let (mut input, writer) = std::io::pipe().ok()?;
        let (reader, mut output) = std::io::pipe().ok()?;
        let (tell, place) = mpsc::channel();
        std::thread::spawn(move || {
            let _stay = Stay::here();
            let mut byte = [0];
            if tell.send(processor::current()).is_err() {
                return;
            }
            while input.read_exact(&mut byte).is_ok() && output.write_all(&byte).is_ok() {}
        });
        let there = place.recv().ok()?;
        let stay = stay.or_else(Stay::here);
        if (processor::current() == there) == is_near {
            return Some(Ends {
                writer,
                reader,
                _stay: stay,
            });
        }
    }
    None
}

#[allow(
    clippy::print_stdout,
    reason = "a program of its own that measures and prints"
)]
fn show(what: &str, mut times: Vec<Duration>) {
    if times.is_empty() {
        return;
    }
    times.sort();
    let at = |share: f64| {
        let place = whole_place((times.len() - 1) as f64 * share);
        times[place].as_nanos() as f64 / 1e3
    };
    println!(
        "{what} min {:.1} p50 {:.1} p90 {:.1} p99 {:.1}",
        at(0.0),
        at(0.5),
        at(0.9),
        at(0.99)
    );
}
