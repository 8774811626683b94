//! Measures the agent alone, over pipes and frames as the host uses it. `examples/dispatch.rs` and
//! `examples/hand_over.rs` measure the paths between host and workers with the host's and the agent's code.

use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tare_model::wire::{PROTOCOL, Reply, Request, read_frame, write_frame};
use tare_model::{Params, ProbeCall, ProbeReport};

use super::{Row, peak_mib};
use xtask_build::shell::cargo;

/// A resident agent on this machine.
pub(super) struct Agent {
    child: Child,
    stdin: BufWriter<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    workdir: PathBuf,
    n_trials: u64,
}

impl Agent {
    /// Starts `file` and waits until it has answered.
    pub(super) fn start(file: &Path, workdir: &Path) -> Result<Self> {
        let mut child = Command::new(file)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", file.display()))?;
        let stdin = BufWriter::new(
            child
                .stdin
                .take()
                .context("the agent has no standard input")?,
        );
        let stdout = BufReader::new(
            child
                .stdout
                .take()
                .context("the agent has no standard output")?,
        );
        let mut agent = Self {
            child,
            stdin,
            stdout,
            workdir: workdir.to_owned(),
            n_trials: 0,
        };
        match agent.ask(&Request::Hello { protocol: PROTOCOL })? {
            Reply::Hello { .. } => Ok(agent),
            other => bail!("the agent answered {other:?} to Hello"),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Reply> {
        write_frame(&mut self.stdin, request)?;
        Ok(read_frame(&mut self.stdout)?)
    }

    /// Runs a probe once.
    pub(super) fn probe(
        &mut self,
        name: &str,
        args: Params,
        target_ns: u64,
    ) -> Result<ProbeReport> {
        self.n_trials += 1;
        let call = ProbeCall {
            name: name.to_owned(),
            args,
        };
        let workdir = self.workdir.to_string_lossy().into_owned();
        let reply = self.ask(&Request::Run {
            hold: false,
            turns: None,
            cpu: None,
            trial: self.n_trials,
            call,
            target_ns,
            limit_ns: 60_000_000_000,
            workdir,
        })?;
        match reply {
            Reply::Done { raw, .. } => Ok(serde_json::from_slice(&raw.stdout.0)?),
            other => bail!("`{name}` did not run: {other:?}"),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = write_frame(&mut self.stdin, &Request::Bye);
        let _ = self.child.wait();
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures size, memory, start and dispatch.
pub(super) fn rows(file: &Path, workdir: &Path) -> Result<Vec<Row>> {
    let size = std::fs::metadata(file)?.len();
    let mut starts_ms = Vec::new();
    for _ in 0..100 {
        let begin = Instant::now();
        let agent = Agent::start(file, workdir)?;
        starts_ms.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(agent);
    }
    let mut agent = Agent::start(file, workdir)?;
    for _ in 0..500 {
        agent.probe("null", Params::new().with("canary", false), 0)?;
    }
    let resident = peak_mib(agent.child.id()).context("no VmHWM line")?;
    let start = median(&mut starts_ms);
    let mib = size as f64 / f64::from(1 << 20);
    let mut rows = ways(file)?;
    rows.extend([
        Row::checked(
            "agent: size",
            "≤ 2 MiB",
            format!("{mib:.2} MiB"),
            mib <= 2.0,
        ),
        Row::checked(
            "agent: peak resident memory after 500 trials",
            "≤ 4 MiB",
            format!("{resident:.2} MiB"),
            resident <= 4.0,
        ),
        Row::checked(
            "agent: start to first answer, p50",
            "≤ 2 ms",
            format!("{start:.2} ms"),
            start <= 2.0,
        ),
    ]);
    Ok(rows)
}

/// Measures dispatch, preparation and hand-over, and the time of this machine's wake-ups alone.
fn ways(file: &Path) -> Result<Vec<Row>> {
    let example = |package: &str, name: &str, arguments: &[&str]| {
        let run = ["run", "--quiet", "--release", "--package", package];
        cargo(&[&run[..], &["--example", name, "--"], arguments].concat()).output()
    };
    let file = file.to_string_lossy();
    let ways = example("tare", "dispatch", &[&file])?;
    let hand_over = example("tare-agent", "hand_over", &[])?;
    let [begun, done, near, prepared] =
        ["begun", "done", "near", "prepared"].map(|what| figures(&ways, what));
    let (begun, done, near, prepared) = (begun?, done?, near?, prepared?);
    let over = figures(&hand_over, "hand-over")?;
    let far = figures(&ways, "far").map_or_else(
        |_| "there is one processor".to_owned(),
        |far| {
            format!(
                "on two {:.0} µs, of which it is {:.2}",
                far.0,
                begun.0 / far.0
            )
        },
    );
    let row = |promise, bound, (p50, p90): (f64, f64), more: &str, most: Option<f64>| Row {
        promise,
        bound,
        figure: format!("{p50:.0} µs (p90 {p90:.0} µs){more}"),
        is_kept: most.map(|most| p50 <= most),
    };
    let alone = format!(
        "; four hand-overs of a byte between two threads, in turn: on one processor {:.0} µs, of which it is {:.1}, {far}",
        near.0,
        begun.0 / near.0
    );
    Ok(vec![
        row(
            "dispatching a trial to a warm local arm, until its worker's word that it has begun is back, p50",
            "≤ 100 µs",
            begun,
            &alone,
            Some(100.0),
        ),
        row(
            "the same until the worker has ended and was reaped, p50",
            "none",
            done,
            "",
            None,
        ),
        row(
            "preparing a block of two arms that take turns, until both workers are ready, p50",
            "none",
            prepared,
            "",
            None,
        ),
        row(
            "hand-over between prepared workers on one processor, p50",
            "≤ 30 µs",
            over,
            "",
            Some(30.0),
        ),
    ])
}

/// Parses the p50 and p90 on the line that begins with `what`, in the unit in which they are printed.
fn figures(text: &str, what: &str) -> Result<(f64, f64)> {
    let line = text.lines().find(|line| line.starts_with(what));
    let words: Vec<&str> = line.unwrap_or_default().split_whitespace().collect();
    let after = |word: &str| {
        let place = words.iter().position(|found| *found == word)?;
        words.get(place + 1)?.parse().ok()
    };
    let both = after("p50").zip(after("p90"));
    both.with_context(|| format!("no `{what}` in what was measured: {text}"))
}
