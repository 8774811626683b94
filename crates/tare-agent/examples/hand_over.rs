//! Measures what a hand-over between two prepared workers costs.
//!
//! `cargo run --release -p tare-agent --example hand_over`. Two processes on one processor pass the turn over a page as
//! workers do. The first works for as long as a slice of a loop lasts and passes it; the second gives it back at
//! once: the time until the first has it again is two hand-overs. Prints half of it, microseconds.
//! What it cannot see: how cold the caches are after another arm's slice.

#![cfg_attr(
    not(target_os = "linux"),
    allow(unused, reason = "pages are there on Linux only")
)]

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tare_agent::binding::Binding;
use tare_agent::turns::TurnTaker;
use tare_model::turns::{PAGE_BYTES, PAGE_KEY, TurnPage, Turns};
use tare_model::wire::{Reply, Request, read_frame, write_frame};

const KEY: u64 = 1;
const PATIENCE_NS: u64 = 20_000_000_000;
const ROUNDS: usize = 2_000;
/// What a slice of a loop aims at.
const SLICE: Duration = Duration::from_micros(500);

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => both(),
        [place, path, cpu] => one(place.parse()?, Path::new(path), cpu.parse()?),
        _ => Err("it takes no arguments".into()),
    }
}

/// Starts both, lets them go and waits for their ends.
fn both() -> Fallible<()> {
    let path = std::env::temp_dir().join(format!("tare-hand-over-{}", std::process::id()));
    let mut bytes = vec![0; PAGE_BYTES];
    bytes[PAGE_KEY..PAGE_KEY + 8].copy_from_slice(&KEY.to_ne_bytes());
    std::fs::write(&path, bytes)?;
    let ended = over(&path);
    std::fs::remove_file(&path)?;
    ended
}

#[allow(clippy::print_stdout, reason = "printing figures is what it is for")]
fn over(path: &Path) -> Fallible<()> {
    let cpu = Binding::here()?.cpu();
    let mut workers = Vec::new();
    for place in 0..2u64 {
        let mut worker = Command::new(std::env::current_exe()?)
            .args([
                place.to_string(),
                path.display().to_string(),
                cpu.to_string(),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let reply = worker.stdout.as_mut().map(read_frame::<Reply>);
        if !matches!(reply, Some(Ok(Reply::Ready { .. }))) {
            return Err(format!("a worker said {reply:?}").into());
        }
        workers.push(worker);
    }
    for (place, worker) in (0..).zip(&mut workers) {
        if let Some(stdin) = &mut worker.stdin {
            write_frame(stdin, &Request::Go { trial: place })?;
        }
    }
    for worker in workers {
        let ended = worker.wait_with_output()?;
        let stderr_text = String::from_utf8_lossy(&ended.stderr);
        if !ended.status.success() {
            return Err(format!("a worker ended with {}: {stderr_text}", ended.status).into());
        }
        if !stderr_text.is_empty() {
            println!("hand-over {}", stderr_text.trim());
        }
    }
    Ok(())
}

/// One worker; the first says on standard error what it found.
#[allow(clippy::print_stderr, reason = "standard output carries frames")]
fn one(place: u32, path: &Path, cpu: u32) -> Fallible<()> {
    let _bound = Binding::bind(cpu)?;
    let streams = [PathBuf::from("/dev/stdin"), PathBuf::from("/dev/stdout")];
    let input = File::open(&streams[0])?;
    let output = File::options().write(true).open(&streams[1])?;
    let turns = Turns {
        place,
        rows: vec![vec![0, 1]],
        stages: None,
        page: Some(TurnPage {
            path: path.display().to_string(),
            key: KEY,
        }),
        check: false,
        patience_ns: PATIENCE_NS,
    };
    let failed = |error| format!("{error:?}");
    let mut turns = TurnTaker::new(turns, u64::from(place), input, output).map_err(failed)?;
    turns.enter().map_err(failed)?;
    let mut took = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let slice = Instant::now();
        while place == 0 && slice.elapsed() < SLICE {}
        let begin = Instant::now();
        turns.take_next().map_err(failed)?;
        took.push(begin.elapsed() / 2);
    }
    turns.finish(true);
    if place == 0 {
        took.sort();
        let at = |share: usize| took[took.len() * share / 100].as_nanos() as f64 / 1e3;
        eprintln!("p50 {:.1} p90 {:.1}", at(50), at(90));
    }
    Ok(())
}
